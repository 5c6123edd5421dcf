package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/suggest"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/composition"
)

// PoolPrefix marks a version that servers have loaded: pool://NAME or pool://NAME@VERSION.
const PoolPrefix = "pool://"

// A Builder creates archives.
type Builder struct {
	// Parse splits P?key=value into P and its settings.
	Parse func(text string) (use string, config map[string]any, err error)
	// Builtin returns a built-in policy by its name.
	Builtin func(name string) (m policy.Module, ok bool)
	// Builtins are the names of these policies, one of which may have been meant.
	Builtins []string
	// Compile compiles rules, rules: RULES, to a WebAssembly module.
	Compile func(name, text string) (module []byte, err error)
	// Fetch returns a version that servers have loaded, the active one if version is "". It
	// is nil if there are no servers to request.
	Fetch func(ctx context.Context, name, version string) (composition.Code, error)
}

// Archive returns the archive of a composition, and the paths of the executables that it
// uses, by digest. Paths are relative to dir. The error lists every policy that cannot be
// used.
func (b *Builder) Archive(ctx context.Context, name, dir string, use *bundle.Use) (archive []byte, executables map[string]string, err error) {
	r, err := b.resolve(ctx, dir, use)
	if err != nil {
		return nil, nil, err
	}
	archive, err = r.archive(name, use)
	return archive, r.executables, err
}

// Usable returns a composition of those policies of use that can be used, so that their problems
// can be reported with those of the others. It is nil if there are none.
func (b *Builder) Usable(ctx context.Context, dir string, use *bundle.Use) (*bundle.Bundle, error) {
	const name = "usable"
	r, _ := b.resolve(ctx, dir, use) // Archive reports the error
	if r == nil || len(r.parts) == 0 {
		return nil, nil
	}
	archive, err := r.archive(name, use)
	if err != nil {
		return nil, err
	}
	return assemble(name, use, archive, r.executables)
}

// resolve collects the parts of a composition. If there is an error, the result has the others.
func (b *Builder) resolve(ctx context.Context, dir string, use *bundle.Use) (*resolver, error) {
	r := &resolver{Builder: b, dir: dir, executables: map[string]string{}, names: map[string]string{}}
	own, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, ref := range use.Refs() {
		err := checkCycles(dir, ref, []string{own})
		if err == nil {
			err = r.add(ctx, ref)
		}
		if err != nil {
			errs = append(errs, bundle.PrefixLines(use.Place(ref)+": "+ref, err))
		}
	}
	return r, errors.Join(errs...)
}

// archive returns the archive of the parts.
func (r *resolver) archive(name string, use *bundle.Use) (archive []byte, err error) {
	a := composition.Archive{Name: name, Parts: r.parts, Uses: composition.Uses{
		Eligible: r.namesOf(use.Eligible), Order: r.namesOf(use.Order), Option: r.namesOf(use.Option), Bindings: r.namesOf(use.Bindings),
	}}
	archive, err = a.Encode()
	if err == nil && len(archive) > policy.MaxModuleSize {
		err = fmt.Errorf("the composition has %d bytes: must be at most %d MiB", len(archive), policy.MaxModuleSize>>20)
	}
	return archive, err
}

// Bundle returns a composition that is written on a command line, with a manifest. Paths are
// relative to dir.
func (b *Builder) Bundle(ctx context.Context, name, dir, text string) (*bundle.Bundle, error) {
	use, invalid := bundle.ParseUse(text)
	archive, executables, err := b.Archive(ctx, name, dir, use)
	if err := errors.Join(invalid, err); err != nil {
		return nil, err
	}
	return assemble(name, use, archive, executables)
}

// assemble returns a composition with a manifest.
func assemble(name string, use *bundle.Use, archive []byte, executables map[string]string) (*bundle.Bundle, error) {
	m := &bundle.Manifest{
		Version: 1, Name: name, Kind: bundle.Composition, Module: "build/" + name + ".tar", Digest: bundle.Digest(archive),
		ABI: bundle.Range{Min: "1.1"}, Use: use, Build: &bundle.Build{Lang: bundle.Uses, Source: bundle.ManifestFile},
	}
	manifest, err := m.Encode()
	if err != nil {
		return nil, err
	}
	c, err := bundle.Assemble(name+".tar", manifest, nil, archive)
	if err != nil {
		return nil, err
	}
	c.Executables, c.Origin = executables, bundle.Uses
	return c, nil
}

// resolver collects the parts of one composition.
type resolver struct {
	*Builder
	dir         string
	parts       []composition.Code
	names       map[string]string // of parts, by the text that refers to them
	executables map[string]string
}

func (r *resolver) namesOf(refs bundle.Parts) (names []string) {
	for _, ref := range refs {
		if name, ok := r.names[ref]; ok {
			names = append(names, name)
		}
	}
	return names
}

// add adds the part that a text refers to.
func (r *resolver) add(ctx context.Context, ref string) error {
	code, err := r.part(ctx, ref)
	if err != nil {
		return err
	}
	base := code.Name
	for n := 2; slices.ContainsFunc(r.parts, func(p composition.Code) bool { return p.Name == code.Name }); n++ {
		code.Name = fmt.Sprintf("%s-%d", base, n)
	}
	r.names[ref] = code.Name
	r.parts = append(r.parts, code)
	return nil
}

// part returns the part that a text refers to. Its name need not be unique.
func (r *resolver) part(ctx context.Context, ref string) (code composition.Code, err error) {
	if strings.HasPrefix(ref, bundle.Rules+":") {
		return r.compiled(ref)
	}
	use, config, err := r.Parse(ref)
	if err != nil {
		return code, err
	}
	switch m, ok := r.Builtin(use); {
	case ok:
		name, _, _ := strings.Cut(use, "@")
		code = composition.Code{Name: name, Kind: composition.Builtin, Builtin: use, Digest: m.Digest()}
	case strings.HasPrefix(use, PoolPrefix):
		code, err = r.fetched(ctx, use)
	default:
		code, err = r.read(use)
	}
	if err == nil {
		err = setConfig(&code, config)
	}
	return code, err
}

// setConfig adds settings to those of the part, which have lower precedence.
func setConfig(code *composition.Code, config map[string]any) error {
	if len(config) == 0 {
		return nil
	}
	merged := map[string]any{}
	if len(code.Config) > 0 {
		var own map[string]json.RawMessage
		if err := json.Unmarshal(code.Config, &own); err != nil {
			return err
		}
		for name, value := range own {
			merged[name] = value
		}
	}
	maps.Copy(merged, config)
	text, err := json.Marshal(merged)
	code.Config = text
	return err
}

// compiled compiles rules to a part.
func (r *resolver) compiled(text string) (code composition.Code, err error) {
	module, err := r.Compile(bundle.Rules, text)
	return composition.Code{Name: bundle.Rules, Kind: bundle.Wasm, Digest: bundle.Digest(module), Code: module}, err
}

// fetched returns a version that servers have loaded.
func (r *resolver) fetched(ctx context.Context, use string) (code composition.Code, err error) {
	if r.Fetch == nil {
		return code, errors.New("versions of servers are available to `cede policy build` and `cede policy load` alone; `cede policy fetch` downloads one")
	}
	name, version, _ := strings.Cut(strings.TrimPrefix(use, PoolPrefix), "@")
	if err := bundle.CheckName(name); err != nil {
		return code, err
	}
	return r.Fetch(ctx, name, version)
}

// read returns the policy at a path.
func (r *resolver) read(use string) (code composition.Code, err error) {
	path, _ := bundle.PathOf(use, r.dir)
	b, err := bundle.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if strings.HasPrefix(use, bundle.UsePrefix) {
			return code, errors.New("a composition cannot contain another one in quotes: write it to the policy.yaml of a folder, and name the folder")
		}
		if strings.Contains(use, ",") {
			return code, errors.New("unknown policy: several policies are a list in brackets")
		}
		return code, errors.New("unknown policy: " + suggest.DidYouMean(use, r.Builtins, "neither built in nor a file or folder"))
	}
	if err != nil {
		return code, err
	}
	code = composition.Code{Name: b.Manifest.Name, Kind: b.Manifest.Kind, Digest: b.Manifest.Digest, Code: b.Code}
	if code.Limits, err = b.Manifest.Limits.Parse(); err != nil {
		return code, err
	}
	maps.Copy(r.executables, b.Executables)
	if b.Manifest.Kind == bundle.Process {
		r.executables[b.Manifest.Digest] = b.Path
	}
	err = setConfig(&code, b.Manifest.Config)
	return code, err
}

// checkCycles returns an error if a part of the composition in dir leads back to one of those
// in the folders opened.
func checkCycles(dir, ref string, opened []string) error {
	path, ok := bundle.PathOf(ref, dir)
	if !ok {
		return nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if at := slices.Index(opened, path); at >= 0 {
		cycle := append(slices.Clone(opened[at:]), path)
		return fmt.Errorf("the composition uses itself: %s", strings.Join(cycle, " uses "))
	}
	m, _, err := bundle.ReadManifest(path)
	if err != nil || m.Use == nil {
		return nil //nolint:nilerr // not a composition, or one whose errors are reported when it is opened
	}
	opened = append(slices.Clip(opened), path)
	var errs []error
	for _, ref := range m.Use.Refs() {
		errs = append(errs, checkCycles(path, ref, opened))
	}
	return errors.Join(errs...)
}
