package composition

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

// Builtin is the kind of parts that are linked into the binary.
const Builtin bundle.Kind = "builtin"

// An Archive is the content of a composition: its parts with their code, and the hooks for
// which each is used. It contains modules of WebAssembly and other compositions as bytes,
// so that no part can disappear while the composition exists. Built-in policies and
// executables are identified by their digest.
type Archive struct {
	Name  string `json:"name"` // of the composition
	Parts []Code `json:"parts"`
	Uses  Uses   `json:"use"`
}

// Code is one part of an archive.
type Code struct {
	// Name is unique among the parts. Explanations, errors and settings refer to it.
	Name string      `json:"name"`
	Kind bundle.Kind `json:"kind"`
	// Builtin is the name of a built-in policy.
	Builtin string `json:"builtin,omitempty"`
	Digest  string `json:"digest"` // sha256:HEX of the code
	// Config holds the settings that the composition changes: a JSON object, or nil.
	Config json.RawMessage `json:"config,omitempty"`
	Limits policy.Limits   `json:"limits,omitzero"` // of one call; zero fields use those of the host

	Code []byte `json:"-"` // of kinds wasm and composition
}

// hasCode reports whether the archive contains the code of the part.
func (c *Code) hasCode() bool { return c.Kind == bundle.Wasm || c.Kind == bundle.Composition }

// file returns the name of the part's code in the archive.
func (c *Code) file() string {
	if c.Kind == bundle.Composition {
		return "parts/" + c.Name + ".tar"
	}
	return "parts/" + c.Name + ".wasm"
}

// Uses holds the names of the parts that each hook uses.
type Uses struct {
	Eligible []string `json:"eligible,omitempty"`
	Order    []string `json:"order,omitempty"`
	Option   []string `json:"option,omitempty"`
	Bindings []string `json:"bindings,omitempty"`
}

// Of returns the names of the hooks that use a part.
func (u *Uses) Of(part string) (hooks []string) {
	for _, h := range []struct {
		name string
		list []string
	}{{"eligible", u.Eligible}, {"order", u.Order}, {"option", u.Option}, {"bindings", u.Bindings}} {
		if slices.Contains(h.list, part) {
			hooks = append(hooks, h.name)
		}
	}
	return hooks
}

// Without returns the uses of the other parts than those that are removed.
func (u *Uses) Without(isRemoved func(part string) bool) Uses {
	others := func(list []string) []string { return slices.DeleteFunc(slices.Clone(list), isRemoved) }
	return Uses{Eligible: others(u.Eligible), Order: others(u.Order), Option: others(u.Option), Bindings: others(u.Bindings)}
}

// IsEmpty reports whether no hook uses a part.
func (u *Uses) IsEmpty() bool {
	return len(u.Eligible)+len(u.Order)+len(u.Option)+len(u.Bindings) == 0
}

// Encode returns the archive as a tar file: composition.json, then the code of the parts in
// their order. Equal archives have equal bytes.
func (a *Archive) Encode() ([]byte, error) {
	head, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	write := func(name string, content []byte) error {
		h := &tar.Header{Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	if err := write(bundle.CompositionFile, append(head, '\n')); err != nil {
		return nil, err
	}
	for i := range a.Parts {
		if p := &a.Parts[i]; p.hasCode() {
			if err := write(p.file(), p.Code); err != nil {
				return nil, err
			}
		}
	}
	err = w.Close()
	return b.Bytes(), err
}

var errDamaged = errors.New("not an archive of `cede policy build`, or damaged; build or download the composition again")

// Decode returns the content of an archive. It accepts only the bytes that Encode returns,
// so that equal compositions have equal digests. The error lists every part whose code does
// not match its digest.
func Decode(archive []byte) (*Archive, error) {
	r := tar.NewReader(bytes.NewReader(archive))
	next := func(name string) ([]byte, error) {
		h, err := r.Next()
		if err != nil || h.Name != name {
			return nil, errDamaged
		}
		return io.ReadAll(r)
	}
	head, err := next(bundle.CompositionFile)
	if err != nil {
		return nil, err
	}
	var a Archive
	if err := json.Unmarshal(head, &a); err != nil {
		return nil, fmt.Errorf("%s: %w", bundle.CompositionFile, err)
	}
	var errs []error
	for i := range a.Parts {
		p := &a.Parts[i]
		if p.Config != nil {
			var compact bytes.Buffer
			_ = json.Compact(&compact, p.Config) // it was decoded
			p.Config = compact.Bytes()
		}
		if !p.hasCode() {
			continue
		}
		if p.Code, err = next(p.file()); err != nil {
			return nil, err
		}
		if digest := bundle.Digest(p.Code); digest != p.Digest {
			errs = append(errs, fmt.Errorf("part %s has digest %s, but the composition expects %s", p.Name, digest, p.Digest))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if again, err := a.Encode(); err != nil || !bytes.Equal(again, archive) {
		return nil, errDamaged
	}
	return &a, nil
}
