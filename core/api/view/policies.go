package view

import (
	"encoding/json"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// PolicyVersion returns a version of a policy. awaited holds the servers whose check is
// missing, with the reason.
func PolicyVersion(v *model.PolicyVersion, awaited map[string]string) *client.PolicyVersion {
	out := &client.PolicyVersion{
		ID: v.ID, Name: v.Name, Digest: v.Digest, Kind: v.Kind, Size: v.Size, Grants: v.Grants, OnFault: v.OnFault, Signer: v.Signer,
		Time: v.Time, CreateIndex: v.CreateIndex, ModifyIndex: v.ModifyIndex,
	}
	out.Config = RawConfig(v.Config)
	if l := v.Limits; l != (model.PolicyLimits{}) {
		out.Limits = &client.PolicyLimits{Fuel: l.Fuel, FuelPerRow: l.FuelPerRow, Memory: l.Memory, Time: time.Duration(l.Time)}
	}
	for id, check := range v.Checks {
		if out.Checks == nil {
			out.Checks = map[string]client.PolicyCheck{}
		}
		out.Checks[id] = client.PolicyCheck{OK: check.OK, Error: check.Error, Time: check.Time}
	}
	if len(awaited) > 0 {
		out.Awaited = awaited
	}
	return out
}

// RawConfig returns a policy's configuration if it is valid JSON, or nil.
func RawConfig(text []byte) json.RawMessage {
	if len(text) == 0 || !json.Valid(text) {
		return nil
	}
	return text
}
