package policies

import (
	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
)

// ServerOptions configure the policies of a server beyond the built-in ones.
type ServerOptions struct {
	Executables []registry.Executable
	// Limits apply to calls if the manifest of a policy sets none. Most bounds the
	// limits of manifests. Zero fields select the defaults, and no bound.
	Limits, Most policy.Limits
}

// ForServer returns the policy host of a server. Policies run until the loader is closed.
func (l *Loader) ForServer(o ServerOptions) (*registry.PolicyHost, error) {
	return registry.NewPolicyHost(registry.PolicyOptions{
		Options: registry.Options{
			Hosts: map[bundle.Kind]registry.Host{
				bundle.Wasm: hostFunc(l.loadWasm), bundle.Process: hostFunc(l.loadProcess),
			},
			Builtin: builtin.Module, Names: builtin.Names(), Older: builtin.Older(), Roots: l.o.Roots, RequireSignature: l.o.RequireSignature,
			Limits: o.Limits, MaxLimits: o.Most,
		},
		Executables: o.Executables,
	})
}
