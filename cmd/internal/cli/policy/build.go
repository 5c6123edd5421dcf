package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/toolchain"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/composition/build"
)

// kinds lists the kinds of policies that can be built.
func kinds() []string { return []string{string(bundle.Wasm), string(bundle.Process)} }

func newPolicyBuildCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "build [DIR]",
		Short: "Build the module of a policy",
		Long: `Build the module of the policy in DIR (default: the working folder) as the build section
of policy.yaml specifies, load and test it, and write its digest, hooks and settings
into policy.yaml. The same sources and tools produce the same bytes.

The result is a WebAssembly module, unless policy.yaml contains kind: process. --kind
changes policy.yaml, and with it the kind of later builds. If policy.yaml contains use,
the result is a composition: an archive of the policies that it names. Only parts such
as pool://NAME@VERSION need servers. The module is not signed or loaded.`,
		Example: `  cede policy build
  cede policy build thrifty --kind process`,
		Args: cmdutil.PositionalArgs(0, 1, "one folder"),
	}
	out, server := cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env)
	kind := cmd.Flags().String("kind", "", "`KIND` of the policy, wasm or process; changes policy.yaml (default: that of policy.yaml)")
	cmdutil.CompleteFlag(cmd, "kind", kinds())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if *kind != "" && !slices.Contains(kinds(), *kind) {
			return cmdutil.Usagef("use "+cmdutil.JoinOr(kinds()), "invalid --kind %q", *kind)
		}
		dir := "."
		if len(args) == 1 {
			dir = args[0]
		}
		if err := buildable(dir); err != nil {
			return err
		}
		p, err := buildPolicy(cmd.Context(), env, dir, bundle.Kind(*kind), poolBuilder(server))
		if err != nil {
			warnOldModule(env, dir)
			return policyflags.BuildError(dir, err)
		}
		return out.Show(p.document())
	}
	return cmd
}

// buildable returns an error if dir is not a directory.
func buildable(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return isBuiltin(dir, "nothing to build")
	case !info.IsDir():
		return cmdutil.Usagef("use the folder, such as "+filepath.ToSlash(filepath.Dir(dir)), "%s is a file, not the folder of a policy", dir)
	}
	return nil
}

// isBuiltin returns an error if name is a built-in policy and no file or directory
// has that name.
func isBuiltin(name, why string) error {
	_, err := os.Stat(name)
	if err == nil || !slices.Contains(builtin.Names(), policyflags.BaseName(name)) {
		return nil
	}
	return cmdutil.Usagef("use the folder of your own policy; `cede policy init` creates one", "%s is a built-in policy: %s", policyflags.BaseName(name), why)
}

// builtPolicy is the result of cede policy build.
type builtPolicy struct {
	Policy string   `json:"policy"`
	Kind   string   `json:"kind"`
	Module string   `json:"module"`
	Bytes  int64    `json:"bytes"`
	Digest string   `json:"digest"`
	Hooks  []string `json:"hooks"`
}

// buildPolicy builds, loads and tests a policy. It replaces the module and the manifest
// last, so that a failed build changes neither of them.
func buildPolicy(ctx context.Context, env *cmdutil.Env, dir string, kind bundle.Kind, builder *build.Builder) (*builtPolicy, error) {
	m, _, err := bundle.ReadManifest(dir)
	project := toolchain.Project{Dir: dir, Manifest: m, Builder: builder, Say: func(text string) { _, _ = fmt.Fprintln(env.Stderr, text) }}
	if err != nil {
		return nil, errors.Join(err, project.CheckEntries(ctx), checkUsable(ctx, env, &project))
	}
	if kind != "" && m.Use != nil {
		return nil, cmdutil.Usagef("remove --kind", "%s is a composition: it contains modules of other kinds", dir)
	}
	asKind(m, kind)
	built, err := project.Build(ctx)
	if err != nil {
		return nil, errors.Join(err, checkUsable(ctx, env, &project))
	}
	defer built.Close()
	read := func() (*bundle.Bundle, error) {
		return bundle.Rebuild(dir, func(m *bundle.Manifest) {
			asKind(m, kind)
			m.Module = built.Module
			m.Hooks, m.Settings = nil, nil // the new module need not match those of the previous one
		})
	}
	tested, err := read()
	if err != nil {
		return nil, err
	}
	// The module is in a temporary folder until it has passed.
	tested.Origin = filepath.Join(dir, filepath.FromSlash(m.Module))
	if m.Use != nil {
		tested.Origin = filepath.Join(dir, bundle.ManifestFile)
	}
	tested.Origin = filepath.ToSlash(tested.Origin)
	p, err := env.Policies.OpenBundle(ctx, tested)
	if err != nil {
		return nil, err
	}
	defer hold(p)()
	b, err := read() // its author may have edited the manifest meanwhile
	if err != nil {
		return nil, err
	}
	b.Manifest.Module, b.Path = m.Module, filepath.Join(dir, filepath.FromSlash(m.Module))
	if err := b.Manifest.Describe(p.Hooks(), p.Settings()); err != nil {
		return nil, err
	}
	wasSigned := isSigned(dir)
	if err := b.Write(built.Commit); err != nil {
		return nil, err
	}
	if wasSigned {
		warnSignature(env, dir)
	}
	info, err := os.Stat(b.Path)
	if err != nil {
		return nil, err
	}
	return &builtPolicy{
		Policy: b.Manifest.Name, Kind: string(b.Manifest.Kind), Module: filepath.ToSlash(b.Path), Bytes: info.Size(),
		Digest: b.Manifest.Digest, Hooks: b.Manifest.Hooks,
	}, nil
}

// checkUsable returns the problems of the usable policies of a project that is a composition.
func checkUsable(ctx context.Context, env *cmdutil.Env, project *toolchain.Project) error {
	if project.Manifest == nil || project.Manifest.Use == nil {
		return nil
	}
	origin := filepath.ToSlash(filepath.Join(project.Dir, bundle.ManifestFile))
	return policies.CheckUsable(ctx, env.Policies, project.Builder, project.Dir, project.Manifest.Use, origin)
}

// warnOldModule warns about the module of an earlier build, which the next command would
// use.
func warnOldModule(env *cmdutil.Env, dir string) {
	m, _, err := bundle.ReadManifest(dir)
	if err != nil {
		return
	}
	module := filepath.Join(dir, filepath.FromSlash(m.Module))
	if _, err := os.Stat(module); err == nil {
		env.Warn(fmt.Sprintf("%s is the module of an earlier build", filepath.ToSlash(module)))
	}
}

func isSigned(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, bundle.SignatureFile))
	return err == nil
}

// warnSignature warns if a build removed the signature of a policy, or left one that was outdated
// before.
func warnSignature(env *cmdutil.Env, dir string) {
	if b, err := bundle.Open(dir); err == nil && b.Signed() {
		if err := b.CheckSignature(); err != nil {
			env.Warn(err.Error())
		}
		return
	}
	if !isSigned(dir) {
		env.Warn(fmt.Sprintf("the signature was removed: it was made for another content of %s; sign again with `cede policy sign %s --key FILE`",
			bundle.ManifestFile, filepath.ToSlash(dir)))
	}
}

// asKind sets the kind of a manifest; an empty kind leaves it unchanged.
func asKind(m *bundle.Manifest, kind bundle.Kind) {
	if kind == "" || kind == m.Kind {
		return
	}
	m.Kind = kind
	m.Module = strings.TrimSuffix(m.Module, ".wasm")
	if kind == bundle.Wasm {
		m.Module += ".wasm"
	}
}

// hold retains a reference to a policy until drop is called.
func hold(p *policies.Policy) (drop func()) {
	p.AddRef()
	return p.ReleaseRef
}

func (b *builtPolicy) document() cmdutil.Document {
	return cmdutil.Document{Data: b, Names: []string{b.Policy}, Page: func(p cmdutil.Page) {
		p.Printf("%s: %s, %s, module %s\n", b.Policy, b.Module, cmdutil.FormatBytes(b.Bytes), b.Digest)
		if !p.NoHeaders {
			p.Printf("hooks: %s\n", cmdutil.JoinOrNone(b.Hooks))
		}
	}}
}
