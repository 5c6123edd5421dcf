package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

// An Executable is a program that the operator permits as a policy. It runs only if its
// checksum matches.
type Executable struct {
	Name   string // name for operators; "": only the checksum identifies it
	Path   string
	SHA256 string // sha256:HEX
}

// PolicyOptions configure a PolicyHost.
type PolicyOptions struct {
	Options
	Executables []Executable
}

// A PolicyHost provides the policies of a server: it validates requests to load one, and
// creates versions from the replicated state. It is safe for concurrent use, and retains no
// version.
type PolicyHost struct {
	o      PolicyOptions
	loader *Loader
}

// NewPolicyHost returns a host. The error lists every invalid option.
func NewPolicyHost(o PolicyOptions) (*PolicyHost, error) {
	h := &PolicyHost{o: o, loader: NewLoader(o.Options)}
	var errs []error
	for _, name := range slices.Concat(o.Names, o.Older) {
		if _, _, ok := o.Builtin(name); !ok {
			errs = append(errs, &UnknownError{name})
		}
	}
	for i, e := range o.Executables {
		if err := bundle.CheckDigest(e.SHA256); err != nil {
			errs = append(errs, fmt.Errorf("executable %s: %w", e.Path, err))
		}
		if slices.ContainsFunc(o.Executables[:i], func(other Executable) bool { return e.Name != "" && other.Name == e.Name }) {
			errs = append(errs, fmt.Errorf("executable name %s is not unique", e.Name))
		}
	}
	if o.RequireSignature && len(o.Roots) == 0 {
		errs = append(errs, errors.New("signatures are required but no key is trusted; configure the public keys of trusted signers"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return h, nil
}

// Builtins returns versions of the built-in policies.
func (h *PolicyHost) Builtins() []*policy.Version {
	var list []*policy.Version
	for _, name := range h.o.Names {
		v, err := h.loader.Load(context.Background(), Spec{Use: name, OnFault: policy.AsConfigured})
		if err != nil {
			panic("registry: built-in policy " + name + ": " + err.Error()) // a defect of the built-in policy
		}
		list = append(list, v)
	}
	return list
}

// Describe validates a request to load a policy and returns the resulting version. It
// starts the policy to read its description, but does not test it. The error lists every
// problem, one per line.
func (h *PolicyHost) Describe(ctx context.Context, r policy.LoadRequest) (*model.PolicyVersion, error) {
	if err := validateRequest(r); err != nil {
		return nil, err
	}
	onFault, err := parseOnFault(r.OnFault)
	if err != nil {
		return nil, err
	}
	spec := Spec{Name: r.Name, Config: r.Config, Grants: r.Grants, OnFault: onFault}
	d := &model.PolicyVersion{OnFault: r.OnFault, Kind: model.PolicyBuiltin}
	if r.Builtin != "" {
		spec.Use = r.Builtin
		if _, _, ok := h.o.Builtin(r.Builtin); !ok {
			return nil, fmt.Errorf("unknown built-in policy %q: must be one of %s", r.Builtin, strings.Join(h.o.Names, ", "))
		}
	} else if err := h.describeBundle(r, &spec, d); err != nil {
		return nil, err
	}
	v, err := h.loader.Load(ctx, spec)
	if err != nil {
		return nil, err
	}
	v.AddRef()
	defer v.ReleaseRef()
	d.ID, d.Name, d.Digest, d.Config, d.Grants = v.ID, v.Name, v.Digest, v.Config(), v.Grants
	if r.Name == "" && spec.Bundle != nil && !spec.Bundle.HasManifest() {
		d.Name = v.Info().Name // a module without a manifest uses its own name
	}
	return d, bundle.CheckName(d.Name)
}

// describeBundle reads the bundle of a request and sets limits and signer of the version.
func (h *PolicyHost) describeBundle(r policy.LoadRequest, spec *Spec, d *model.PolicyVersion) error {
	b, err := h.bundle(r)
	if err != nil {
		return err
	}
	if r.Name == "" && !b.HasManifest() {
		spec.Name = "the policy" // until its description is read
	}
	own, err := b.Manifest.Limits.Parse()
	if err != nil {
		return err
	}
	if b.Manifest.Kind != bundle.Composition { // the limits of its parts are part of its module
		limits := h.o.bounded(own)
		d.Limits = model.PolicyLimits{
			Fuel: limits.Fuel, FuelPerRow: limits.FuelPerRow, Memory: limits.Memory, Time: int64(limits.Time),
		}
	}
	h.permitExecutables(b)
	if len(h.o.Roots) > 0 && b.Signed() {
		if d.Signer, err = h.o.verify(b); err != nil {
			return err
		}
	}
	spec.Bundle, d.Kind, d.Size = b, string(b.Manifest.Kind), int64(len(b.Code))
	return nil
}

// validateRequest checks a request without reading anything.
func validateRequest(r policy.LoadRequest) error {
	var errs []error
	given := 0
	for _, isSet := range []bool{len(r.Module) > 0, r.Builtin != "", r.Executable != ""} {
		if isSet {
			given++
		}
	}
	if given != 1 {
		errs = append(errs, fmt.Errorf("exactly one of module, built-in policy and executable is required: %d given", given))
	}
	if len(r.Module) > policy.MaxModuleSize {
		errs = append(errs, fmt.Errorf("module has %d bytes: must be at most %d MiB", len(r.Module), policy.MaxModuleSize>>20))
	}
	if r.Name != "" {
		if err := bundle.CheckName(r.Name); err != nil {
			errs = append(errs, err)
		}
	}
	for _, g := range r.Grants {
		if !slices.Contains(policy.Grants, g) {
			errs = append(errs, fmt.Errorf("grants: unknown grant %q: must be one of %s", g, strings.Join(policy.Grants, ", ")))
		}
	}
	if _, err := parseOnFault(r.OnFault); err != nil {
		errs = append(errs, fmt.Errorf("onFault: %w", err))
	}
	var settings map[string]json.RawMessage
	if len(r.Config) > 0 {
		if err := json.Unmarshal(r.Config, &settings); err != nil {
			errs = append(errs, fmt.Errorf("configuration: must be an object of settings: %w", err))
		}
	}
	return errors.Join(errs...)
}

// parseOnFault parses the reaction to faults; "" selects the configured default.
func parseOnFault(text string) (policy.OnFault, error) {
	if text == "" {
		return policy.AsConfigured, nil
	}
	return policy.ParseOnFault(text)
}

// bundle assembles the bundle of a request.
func (h *PolicyHost) bundle(r policy.LoadRequest) (*bundle.Bundle, error) {
	if r.Executable == "" {
		name := r.Name
		name = cmp.Or(name, "the module")
		return bundle.Assemble(name, r.Manifest, r.Signature, r.Module)
	}
	e, err := h.executable(r.Executable)
	if err != nil {
		return nil, err
	}
	b, err := bundle.AssembleExecutable(e.Path, e.SHA256, r.Manifest, r.Signature)
	if err == nil && !b.HasManifest() && e.Name != "" {
		b.Manifest.Name = e.Name
	}
	return b, err
}

// executable returns the permitted executable with the given name or checksum.
func (h *PolicyHost) executable(named string) (*Executable, error) {
	var names []string
	for i := range h.o.Executables {
		e := &h.o.Executables[i]
		if named == e.SHA256 || named == e.Name {
			return e, nil
		}
		if e.Name != "" {
			names = append(names, e.Name)
		}
	}
	if len(h.o.Executables) == 0 {
		return nil, fmt.Errorf("executable %s is not permitted: this server permits none; add it with its checksum to the configuration of the servers", named)
	}
	return nil, fmt.Errorf("executable %s is not one of the %d that this server permits (%s); add it with its checksum to the configuration of the servers",
		named, len(h.o.Executables), strings.Join(names, ", "))
}

// Open creates a version from the replicated state and tests it. The caller adds a
// reference; once all references are released, its module is closed.
func (h *PolicyHost) Open(ctx context.Context, v *model.PolicyVersion, module []byte) (*policy.Version, error) {
	opened, err := h.open(ctx, v, module)
	if err != nil {
		return nil, err
	}
	if err := SelfTest(opened); err != nil {
		opened.AddRef()
		opened.ReleaseRef()
		return nil, fmt.Errorf("self-test failed: %w", err)
	}
	return opened, nil
}

func (h *PolicyHost) open(ctx context.Context, v *model.PolicyVersion, module []byte) (*policy.Version, error) {
	onFault, err := parseOnFault(v.OnFault)
	if err != nil {
		return nil, err
	}
	src := policy.Source{Name: v.Name, Config: v.Config, Grants: v.Grants, OnFault: onFault}
	if v.Kind == model.PolicyBuiltin {
		if src.Module = h.o.builtin(v.Digest); src.Module == nil {
			return nil, fmt.Errorf("this version of cede has no built-in policy with digest %s", v.Digest)
		}
		return policy.NewVersion(src)
	}
	m, err := h.load(ctx, v, module)
	if err != nil {
		return nil, err
	}
	src.Module, src.OnClosed = m, m.Close
	opened, err := policy.NewVersion(src)
	if err != nil {
		m.Close()
	}
	return opened, err
}

// load has a host load the module of a version if this server's operator permits it.
func (h *PolicyHost) load(ctx context.Context, v *model.PolicyVersion, module []byte) (Module, error) {
	if h.o.RequireSignature && !slices.Contains(h.signers(), v.Signer) {
		if v.Signer == "" {
			return nil, errors.New("not signed, but policy.require_signature of this server is true")
		}
		return nil, fmt.Errorf("signed by %s, which is not one of the %d keys in policy.roots of this server", v.Signer, len(h.o.Roots))
	}
	b := &bundle.Bundle{Code: module, Path: v.Name, Manifest: bundle.Manifest{Name: v.Name, Kind: bundle.Kind(v.Kind), Digest: v.Digest}}
	switch b.Manifest.Kind {
	case bundle.Wasm, bundle.Composition:
		if digest := bundle.Digest(module); digest != v.Digest {
			return nil, fmt.Errorf("module has digest %s, but the version expects %s", digest, v.Digest)
		}
	case bundle.Process:
		e, err := h.executable(v.Digest)
		if err != nil {
			return nil, err
		}
		b.Path = e.Path
	}
	h.permitExecutables(b)
	l := v.Limits
	return h.o.load(ctx, b, policy.Limits{Fuel: l.Fuel, FuelPerRow: l.FuelPerRow, Memory: l.Memory, Time: time.Duration(l.Time)})
}

// permitExecutables lets a composition use the executables that the operator permits, and no
// others.
func (h *PolicyHost) permitExecutables(b *bundle.Bundle) {
	if b.Manifest.Kind != bundle.Composition {
		return
	}
	b.Executables = map[string]string{}
	for _, e := range h.o.Executables {
		b.Executables[e.SHA256] = e.Path
	}
}

// signers returns the IDs of the trusted keys.
func (h *PolicyHost) signers() []string {
	var ids []string
	for _, key := range h.o.Roots {
		ids = append(ids, bundle.KeyID(key))
	}
	return ids
}
