package policies

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/composition"
	"github.com/cede-scheduler/cede/plugins/wasm"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// Inspection describes a policy.
type Inspection struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Kind        string `json:"kind"` // builtin, wasm, process, composition
	Module      string `json:"module,omitempty"`
	Digest      string `json:"digest"`
	// Version identifies the module with its configuration.
	Version   string          `json:"version"`
	Config    json.RawMessage `json:"config"`
	Grants    []string        `json:"grants,omitempty"`
	Signature string          `json:"signature"`
	ABI       string          `json:"abi,omitempty"`

	Hooks    []string         `json:"hooks"`
	Delta    int32            `json:"delta"`
	Columns  []string         `json:"columns"`
	Flags    []string         `json:"flags,omitempty"`
	Settings json.RawMessage  `json:"settings"`
	Limits   *Limits          `json:"limits,omitempty"`
	Wasm     *wasm.ModuleInfo `json:"wasm,omitempty"`
	Parts    []Part           `json:"parts,omitempty"` // of a composition

	list []sdk.Setting
}

// Part describes a policy of a composition.
type Part struct {
	Name   string          `json:"name"`
	Kind   string          `json:"kind"`
	Digest string          `json:"digest"`
	Use    []string        `json:"use"` // hooks for which it is used
	Config json.RawMessage `json:"config,omitempty"`
}

// Limits are the limits of a call.
type Limits struct {
	Fuel       uint64 `json:"fuel,omitempty"`
	FuelPerRow uint64 `json:"fuelPerRow,omitempty"`
	Memory     int64  `json:"memory,omitempty"`
	Time       string `json:"time,omitempty"`
}

// Builtin is the kind of built-in policies.
const Builtin = "builtin"

// SettingList returns the settings that the policy accepts.
func (i *Inspection) SettingList() []sdk.Setting { return i.list }

// Inspect describes a loaded policy.
func Inspect(ctx context.Context, p *Policy) (i *Inspection, err error) {
	info := p.Info()
	i = &Inspection{
		Name: p.Name, Kind: Builtin, Digest: p.Digest, Version: p.ID, Config: p.Config(), Grants: p.Grants,
		Signature: "none: it is part of cede", Hooks: bundle.HookNames(p.Hooks()), Delta: info.Delta,
		Columns: info.Columns.Names(), Flags: flagsOf(p), list: p.Settings(), Settings: settings.Encode(p.Settings()),
	}
	b := p.Bundle
	if b == nil {
		return i, nil
	}
	i.Kind, i.Description, i.Module = string(b.Manifest.Kind), b.Manifest.Description, b.Path
	i.Signature = signatureOf(b)
	i.ABI = fmt.Sprintf("%d.%d", abi.Major, abi.Minor)
	if r := b.Manifest.ABI; r.Min != "" {
		i.ABI = r.Min + " to " + r.Max
		if r.Max == "" {
			i.ABI = r.Min + " or newer"
		}
	}
	if b.Manifest.Kind == bundle.Composition {
		i.ABI = ""
		i.Parts, err = partsOf(b)
		return i, err
	}
	i.Limits = &Limits{Memory: p.Limits.Memory, Time: p.Limits.Time.String()}
	if b.Manifest.Kind != bundle.Wasm {
		i.Limits.Memory = 0 // the memory of a process is not limited
		return i, nil
	}
	i.Limits.Fuel, i.Limits.FuelPerRow, i.Limits.Time = p.Limits.Fuel, p.Limits.FuelPerRow, ""
	i.Wasm, err = wasm.Inspect(ctx, b.Code)
	return i, err
}

// partsOf describes the parts of a composition.
func partsOf(b *bundle.Bundle) (parts []Part, err error) {
	a, err := composition.Decode(b.Code)
	if err != nil {
		return nil, err
	}
	for i := range a.Parts {
		c := &a.Parts[i]
		parts = append(parts, Part{Name: c.Name, Kind: string(c.Kind), Digest: c.Digest, Use: a.Uses.Of(c.Name), Config: c.Config})
	}
	return parts, nil
}

// InspectFile describes a policy that is an executable without starting it: what its
// manifest declares, and nothing of what it does. It returns nil if the policy is not an
// executable.
func InspectFile(use string) (*Inspection, error) {
	named, err := builtin.Parse(use)
	if err != nil {
		return nil, err
	}
	if _, _, ok := builtin.Module(named.Use); ok {
		return nil, nil
	}
	b, err := open(named.Use, "")
	if err != nil || b.Manifest.Kind != bundle.Process {
		return nil, err
	}
	i := &Inspection{
		Name: named.Use, Kind: string(bundle.Process), Description: b.Manifest.Description, Module: b.Path, Digest: b.Manifest.Digest,
		Signature: signatureOf(b), Hooks: append([]string{}, b.Manifest.Hooks...), Columns: []string{},
	}
	if i.Settings, err = json.Marshal(b.Manifest.Settings); err != nil {
		return nil, err
	}
	if b.Manifest.Name != "" {
		i.Name = b.Manifest.Name
	}
	return i, nil
}

func signatureOf(b *bundle.Bundle) string {
	switch {
	case b.Dir == "":
		return "none: a module alone has no manifest to sign"
	case !b.Signed():
		return "none"
	case b.CheckSignature() != nil:
		return "by " + b.SignedBy() + ", for another content of " + bundle.ManifestFile
	}
	return "by " + b.SignedBy() + ", not checked: cede policy verify does"
}

// flagsOf lists the declared properties and requests of a policy.
func flagsOf(p *Policy) []string {
	info := p.Info()
	var list []string
	for _, f := range []struct {
		set  bool
		name string
	}{
		{info.Adaptive, "adaptive"},
		{info.Ascending, "ascending"},
		{info.KeepRedundant, policy.GrantKeepRedundant},
	} {
		if f.set {
			list = append(list, f.name)
		}
	}
	return list
}
