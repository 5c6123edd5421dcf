package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/plugins/wasm"
)

// bindingPolicy is the built-in policy that chooses among bindings, not pods.
const bindingPolicy = "karmada"

// podPolicies returns the names of the built-in policies that choose among pods.
func podPolicies() []string {
	return slices.DeleteFunc(builtin.Names(), func(name string) bool { return name == bindingPolicy })
}

// podPolicy returns a built-in policy that chooses among pods.
func podPolicy(use string) (policy.Module, []string, bool) {
	if name, _, _ := strings.Cut(use, "@"); name == bindingPolicy {
		return nil, nil, false
	}
	return builtin.Module(use)
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
		Hosts: map[bundle.Kind]registry.Host{bundle.Wasm: moduleHost{log}}, Builtin: podPolicy, Names: podPolicies(),
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
