package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/plugins/wasm"
	"github.com/cede-scheduler/cede/policies/aging"
	defaults "github.com/cede-scheduler/cede/policies/default"
	fairshare "github.com/cede-scheduler/cede/policies/fair-share"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/policies/nomad"
	"github.com/cede-scheduler/cede/policies/optimal"
	"github.com/cede-scheduler/cede/policies/protect"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// builtins are the built-in policies that choose among pods. cmd/internal/builtin lists
// those of the program cede; a test there compares the two.
var builtins = map[string]func() sdk.Policy{
	policy.DefaultName: defaults.New,
	"aging":            func() sdk.Policy { return aging.New() },
	"fair-share":       func() sdk.Policy { return fairshare.New() },
	"kubernetes":       func() sdk.Policy { return kubernetes.New() },
	"least-waste":      func() sdk.Policy { return leastwaste.New() },
	"nomad":            func() sdk.Policy { return nomad.New() },
	"optimal":          func() sdk.Policy { return optimal.New() },
	"protect":          func() sdk.Policy { return protect.New() },
}

// builtin returns a built-in policy.
func builtin(name string) (policy.Module, []string, bool) {
	make, ok := builtins[name]
	if !ok {
		return nil, nil, false
	}
	var grants []string
	if name == "nomad" {
		grants = []string{policy.GrantKeepRedundant}
	}
	return policy.Native(policy.BuiltinDigest(name, rulesOf(name)), make), grants, true
}

// rulesOf returns the version of the rules of a built-in policy.
func rulesOf(name string) string {
	switch name {
	case policy.DefaultName, "least-waste":
		return "2"
	}
	return "1"
}

// A moduleHost loads WebAssembly modules, each with a host of its own: it starts none for
// built-in policies, and a plugin has one module.
type moduleHost struct{ log *slog.Logger }

// Load compiles a module within the budget of servers. The native code is in memory when it
// returns, so nothing remains on the disk, which a plugin could not remove when it ends.
func (h moduleHost) Load(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (registry.Module, error) {
	compiled, err := os.MkdirTemp("", "cede-compiled-")
	if err != nil {
		return nil, fmt.Errorf("directory of compiled policies: %w; set TMPDIR to a writable one", err)
	}
	defer func() { _ = os.RemoveAll(compiled) }() // the module works without it
	host, err := wasm.NewHost(wasm.Options{CacheDir: compiled, Log: h.log})
	if err != nil {
		return nil, err
	}
	m, err := host.Load(ctx, b.Code, limits)
	if err != nil {
		return nil, errors.Join(err, host.Close())
	}
	return m, nil
}

// loadPolicy returns the active policies: the configured one after its self-test, and the
// built-in default for the hooks that it lacks.
func loadPolicy(ctx context.Context, a *Args, log *slog.Logger) (*policy.ActiveSet, error) {
	loader := registry.NewLoader(registry.Options{
		Hosts: map[bundle.Kind]registry.Host{bundle.Wasm: moduleHost{log}}, Builtin: builtin, Names: slices.Sorted(maps.Keys(builtins)),
	})
	chosen, err := loader.Load(ctx, registry.Spec{Name: policy.DefaultName, Use: a.Policy, Config: a.PolicyConfig})
	if err == nil {
		err = registry.SelfTest(chosen)
	}
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", a.Policy, err)
	}
	fallback, err := loader.Load(ctx, registry.Spec{Name: "built-in default", Use: policy.DefaultName})
	if err != nil {
		return nil, err
	}
	set, err := policy.NewSetWithFallback(fallback, chosen)
	if err != nil {
		return nil, err
	}
	return policy.NewActiveSet(set), nil
}
