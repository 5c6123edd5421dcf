package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/cede-scheduler/cede/cmd/internal/builtin"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/process"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/plugins/wasm"
)

// Options say how policies are run.
type Options struct {
	CacheDir         string // of compiled modules; empty: none
	RunDir           string // of processes; empty: the host's default
	Roots            bundle.Roots
	RequireSignature bool
	Log              *slog.Logger
}

// Loader loads what users name.
type Loader struct {
	o      Options
	loader *registry.Loader

	mu      sync.Mutex
	wasm    *wasm.Host
	process *process.Host
}

// New makes a loader. Close it when nothing it loaded is in use.
func New(o Options) *Loader {
	l := &Loader{o: o}
	l.loader = registry.NewLoader(registry.Options{
		Hosts: map[bundle.Kind]registry.Host{
			bundle.Wasm: hostFunc(l.loadWasm), bundle.Process: hostFunc(l.loadProcess),
		},
		Builtin: builtin.Module, Roots: o.Roots, RequireSignature: o.RequireSignature, Log: o.Log,
	})
	return l
}

// Resolve makes a version of the policy that spec names, P or P?key=value.
func (l *Loader) Resolve(spec sim.PolicySpec) (*policy.Version, error) {
	return l.Load(context.Background(), spec, policy.Deny, nil)
}

// Load is Resolve with all that an operator may choose.
func (l *Loader) Load(ctx context.Context, spec sim.PolicySpec, onFault policy.OnFault, observe func(policy.Call)) (*policy.Version, error) {
	named, err := builtin.Parse(spec.Use)
	if err != nil {
		return nil, err
	}
	config, err := configuration(spec.Config, named.Config)
	if err != nil {
		return nil, fmt.Errorf("policy %s: configuration: %w", spec.Use, err)
	}
	v, err := l.loader.Load(ctx, registry.Spec{
		Name: spec.Name, Use: named.Use, Config: config, Grants: spec.Grants, OnFault: onFault, Observe: observe,
	})
	if unknown, ok := errors.AsType[*registry.UnknownError](err); ok {
		return nil, &UnknownError{Policy: unknown.Policy}
	}
	return v, err
}

// configuration is a scenario's settings with those of the command line in
// place of its own; nil: none.
func configuration(scenario, line map[string]any) ([]byte, error) {
	config := maps.Clone(scenario)
	if config == nil {
		config = line
	} else {
		maps.Copy(config, line)
	}
	if len(config) == 0 {
		return nil, nil
	}
	return json.Marshal(config)
}

type hostFunc func(context.Context, *bundle.Bundle, policy.Limits) (registry.Module, error)

func (f hostFunc) Load(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (registry.Module, error) {
	return f(ctx, b, limits)
}

func (l *Loader) loadWasm(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (registry.Module, error) {
	host, err := l.wasmHost()
	if err != nil {
		return nil, err
	}
	m, err := host.Load(ctx, b.Code, limits)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (l *Loader) loadProcess(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (registry.Module, error) {
	host, err := l.processHost()
	if err != nil {
		return nil, err
	}
	m, err := host.Load(ctx, b.Path, process.LoadOptions{SHA256: b.Manifest.Digest, Limits: limits})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (l *Loader) wasmHost() (*wasm.Host, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wasm != nil {
		return l.wasm, nil
	}
	var err error
	l.wasm, err = wasm.NewHost(wasm.Options{CacheDir: l.o.CacheDir, Log: l.o.Log})
	return l.wasm, err
}

func (l *Loader) processHost() (*process.Host, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.process != nil {
		return l.process, nil
	}
	var err error
	l.process, err = process.NewHost(process.Options{RunDir: l.o.RunDir, Log: l.o.Log})
	return l.process, err
}

// Close ends every process and frees what was compiled.
func (l *Loader) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	if l.wasm != nil {
		errs = append(errs, l.wasm.Close())
	}
	if l.process != nil {
		errs = append(errs, l.process.Close())
	}
	l.wasm, l.process = nil, nil
	return errors.Join(errs...)
}
