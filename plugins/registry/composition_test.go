//go:build unix

package registry_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/composition"
	"github.com/cede-scheduler/cede/plugins/composition/build"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/process"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/plugins/rules"
	"github.com/cede-scheduler/cede/plugins/wasm"
	defaults "github.com/cede-scheduler/cede/policies/default"
	"github.com/cede-scheduler/cede/policies/karmada"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/policies/protect"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/settings"
)

var linkedIn = map[string]policy.Module{
	"default":     policy.Native("sha256:default", defaults.New),
	"karmada":     policy.Native("sha256:karmada", func() sdk.Policy { return karmada.New() }),
	"least-waste": policy.Native("sha256:least-waste", func() sdk.Policy { return leastwaste.New() }),
	"protect":     policy.Native("sha256:protect", func() sdk.Policy { return protect.New() }),
}

func builtinOf(name string) (policy.Module, []string, bool) {
	m, ok := linkedIn[name]
	return m, nil, ok
}

func compositionBuilder() *build.Builder {
	return &build.Builder{
		Parse: func(text string) (string, map[string]any, error) {
			use, query, ok := strings.Cut(text, "?")
			if !ok {
				return use, nil, nil
			}
			key, value, _ := strings.Cut(query, "=")
			return use, map[string]any{key: value}, nil
		},
		Builtin: func(name string) (policy.Module, bool) {
			m, ok := linkedIn[name]
			return m, ok
		},
		Compile: func(name, text string) ([]byte, error) {
			source, err := rules.ParseInline(name, text)
			if err != nil {
				return nil, err
			}
			return rules.Compile(source)
		},
	}
}

// hostFunc is a host of modules.
type hostFunc func(context.Context, *bundle.Bundle, policy.Limits) (registry.Module, error)

func (f hostFunc) Load(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (registry.Module, error) {
	return f(ctx, b, limits)
}

// realHosts returns options with the hosts of a server.
func realHosts(t *testing.T) registry.Options {
	t.Helper()
	guests, err := wasm.NewHost(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	run, err := os.MkdirTemp("", "cede") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	processes, err := process.NewHost(process.Options{RunDir: run})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(guests.Close(), processes.Close(), os.RemoveAll(run)); err != nil {
			t.Error(err)
		}
	})
	return registry.Options{
		Hosts: map[bundle.Kind]registry.Host{
			bundle.Wasm: hostFunc(func(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (registry.Module, error) {
				return guests.Load(ctx, b.Code, limits)
			}),
			bundle.Process: hostFunc(func(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (registry.Module, error) {
				return processes.Load(ctx, b.Path, process.LoadOptions{SHA256: b.Manifest.Digest, Limits: limits})
			}),
		},
		Builtin: builtinOf, Names: []string{"default", "karmada", "least-waste", "protect"},
	}
}

// goProgram builds the guest in a folder for a system.
func goProgram(t *testing.T, dir, out string, environ ...string) {
	t.Helper()
	args := []string{"build", "-ldflags", "-s -w", "-o", out}
	if len(environ) > 0 {
		args = append(args, "-buildmode=c-shared")
	} else {
		args = append(args, "-tags", "process")
	}
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", dir, err, said)
	}
}

// heavy is the gate and the order of the rules in the test below, in Go.
type heavy struct{}

func (heavy) Info() sdk.Info {
	return sdk.Info{Name: "rules", Delta: 10, Columns: sdk.EvictionColumns}
}

func (heavy) PriorityDelta(in *sdk.Candidates, gap []int32, _ *sdk.Recheck) error {
	for row := range gap {
		gap[row] = sdk.NeverEligible
		if in.Rows.Evictions[row] < 3 {
			gap[row] = -1 << 31
		}
	}
	return nil
}

func (heavy) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	for row := range out.Tier {
		out.Tier[row] = int64(in.Rows.Evictions[row])
	}
	return nil
}

// A composition of a built-in policy, rules, a module of Go and an executable answers as the
// composition of the same policies that are linked in.
func TestComposition_OfAllKindsAnswersAsLinkedIn(t *testing.T) {
	t.Parallel()
	if soak.Race {
		t.Skip("compiling Go modules is slow under the race detector")
	}
	dir := t.TempDir()
	goProgram(t, "../../policies/protect/guest", filepath.Join(dir, "shield.wasm"), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	goProgram(t, "../../policies/least-waste/guest", filepath.Join(dir, "thrifty"))
	const rule = "rules: eligible: victim.evictions < 3; order: victim.evictions"
	b, err := compositionBuilder().Bundle(t.Context(), "mixed", dir,
		`use: eligible: [shield.wasm?minRuntime=1h, default, "`+rule+`"]; order: [default, "`+rule+`", thrifty?bands=15]; option: thrifty?bands=15; bindings: karmada`)
	if err != nil {
		t.Fatal(err)
	}
	v, err := registry.NewLoader(realHosts(t)).Load(t.Context(), registry.Spec{Use: "mixed", Bundle: b})
	if err != nil {
		t.Fatal(err)
	}
	v.AddRef()
	defer v.ReleaseRef()
	if err := registry.SelfTest(v); err != nil {
		t.Error(err)
	}
	mixed, err := v.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Release(mixed)

	part := func(name, config string) composition.Part {
		p := composition.Part{Name: name, Module: linkedIn[name]}
		if config != "" {
			p.Config = []byte(config)
		}
		return p
	}
	m, err := composition.New("mixed", "", []composition.Part{
		part("protect", `{"minRuntime":"1h"}`), part("default", ""), part("least-waste", `{"bands":15}`), part("karmada", ""),
		{Name: "rules", Module: policy.Native("", func() sdk.Policy { return heavy{} })},
	}, composition.Uses{
		Eligible: []string{"protect", "default", "rules"}, Order: []string{"default", "rules", "least-waste"},
		Option: []string{"least-waste"}, Bindings: []string{"karmada"},
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := settings.Read(m.Settings(), nil)
	if err != nil {
		t.Fatal(err)
	}
	native, err := m.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	defer native.Close()
	if diff := cmp.Diff(native.Info(), mixed.Info()); diff != "" || native.Hooks() != mixed.Hooks() {
		t.Errorf("%s\nhooks %b and %b", diff, native.Hooks(), mixed.Hooks())
	}
	r, metered := rand.New(rand.NewPCG(8, 2)), uint64(0)
	for i := range soak.Count(300, 10_000) {
		q := hosttest.RandomCase(r)
		want, got := hosttest.CallHooks(t, native, q), hosttest.CallHooks(t, mixed, q)
		if diff := cmp.Diff(want.Answers, got.Answers, hosttest.SameBits); diff != "" {
			t.Fatalf("case %d: linked in (-) and mixed (+) differ:\n%s", i, diff)
		}
		metered += got.Fuel[0]
	}
	if metered == 0 {
		t.Error("fuel of parts is not counted")
	}
	if again, err := compositionBuilder().Bundle(t.Context(), "mixed", dir, "use: order: thrifty"); err != nil || again.Manifest.Digest == b.Manifest.Digest {
		t.Errorf("another use has the same digest: %v", err)
	}
}

// manifest writes the manifest of a composition.
func composedIn(t *testing.T, dir, name, use string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	write(t, filepath.Join(path, bundle.ManifestFile), "name: "+name+"\nuse: "+use+"\n")
	return path
}

func buildIn(t *testing.T, dir string) (*bundle.Bundle, error) {
	t.Helper()
	m, _, err := bundle.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	archive, _, err := compositionBuilder().Archive(t.Context(), m.Name, dir, m.Use)
	if err != nil {
		return nil, err
	}
	write(t, filepath.Join(dir, filepath.FromSlash(m.Module)), string(archive))
	b, err := bundle.Rebuild(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b, b.Write(nil)
}

func TestComposition_OfCompositionsIsLoaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inner := composedIn(t, dir, "inner", "{eligible: 'protect?minRuntime=2m', order: least-waste}")
	if _, err := buildIn(t, inner); err != nil {
		t.Fatal(err)
	}
	b, err := buildIn(t, composedIn(t, dir, "outer", "{eligible: [../inner, default], order: ../inner}"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := registry.NewLoader(realHosts(t)).Load(t.Context(), registry.Spec{Use: b.Dir})
	if err != nil {
		t.Fatal(err)
	}
	v.AddRef()
	defer v.ReleaseRef()
	if !slices.ContainsFunc(v.Settings(), func(s sdk.Setting) bool { return s.Name == "innerProtectMinRuntime" && s.Default == "2m0s" }) {
		t.Errorf("settings %+v", v.Settings())
	}
	if v.Digest != b.Manifest.Digest || v.Info().Name != "outer" || v.PartOf(policy.HookSelectVictims) != "inner" {
		t.Errorf("%s, %+v", v.Digest, v.Info())
	}
}

func TestBuild_ListsEveryProblemOfParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	composedIn(t, dir, "ring", "{order: [../chain, nosuch, 'rules: order: victim.foo']}")
	composedIn(t, dir, "chain", "{order: ../ring}")
	write(t, filepath.Join(dir, "newer", bundle.ManifestFile), "name: newer\nversion: 1\nkind: wasm\nmodule: m.wasm\nabi: {min: '9.1'}\n")
	_, err := buildIn(t, filepath.Join(dir, "ring"))
	if err == nil || !strings.Contains(err.Error(), "../chain: the composition uses itself") && !strings.Contains(err.Error(), "../ring: the composition uses itself") {
		t.Errorf("got %v", err)
	}
	_, err = buildIn(t, composedIn(t, dir, "bad", "{eligible: [nosuch, ../newer], order: 'rules: order: victim.foo', option: 'pool://least-waste'}"))
	for _, want := range []string{
		"nosuch: unknown policy", "../newer: ", "requires 9.1", `order: unknown name "victim.foo"`,
		"pool://least-waste: versions of servers are available",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q:\n%v", want, err)
		}
	}
}

func TestComposition_RejectsWhatThisProcessCannotLoad(t *testing.T) {
	t.Parallel()
	archive, err := (&composition.Archive{
		Name: "bad",
		Parts: []composition.Code{
			{Name: "gone", Kind: composition.Builtin, Builtin: "gone", Digest: "sha256:gone"},
			{Name: "away", Kind: bundle.Process, Digest: "sha256:away"},
			{Name: "odd", Kind: "odd", Digest: "sha256:odd"},
			{Name: "protect", Kind: composition.Builtin, Builtin: "protect", Digest: "sha256:protect", Config: []byte(`{"speed":1}`)},
		},
		Uses: composition.Uses{Eligible: []string{"away"}, Order: []string{"gone", "protect"}, Option: []string{"protect", "none"}},
	}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Assemble("bad", nil, nil, archive)
	if err != nil {
		t.Fatal(err)
	}
	_, err = registry.NewLoader(realHosts(t)).Load(t.Context(), registry.Spec{Use: "bad", Bundle: b})
	for _, want := range []string{
		"part gone: this version of cede has no built-in policy gone", "part away: the executable with checksum sha256:away was not found", `part odd: unknown kind "odd"`,
		"part protect: speed: unknown setting", "order: part protect has no hook scoreVictims or selectVictims", "option: part protect has no hook scoreOptions", `option: unknown part "none"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q:\n%v", want, err)
		}
	}
	deep := archive
	for range 9 {
		if deep, err = (&composition.Archive{
			Name:  "deep",
			Parts: []composition.Code{{Name: "next", Kind: bundle.Composition, Digest: bundle.Digest(deep), Code: deep}},
			Uses:  composition.Uses{Order: []string{"next"}},
		}).Encode(); err != nil {
			t.Fatal(err)
		}
	}
	b.Code = deep
	if _, err := registry.NewLoader(realHosts(t)).Load(t.Context(), registry.Spec{Use: "deep", Bundle: b}); err == nil || !strings.Contains(err.Error(), "more than 8 deep") {
		t.Errorf("got %v", err)
	}
}
