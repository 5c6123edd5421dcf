package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/process"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/plugins/wasm"
)

// Options configure how policies run.
type Options struct {
	CacheDir         string // cache of compiled modules; empty: they are compiled once per loader
	RunDir           string // directory of process sockets; empty: the default of the host
	Roots            bundle.Roots
	RequireSignature bool
	Log              *slog.Logger
}

// Loader loads policies by name or path.
type Loader struct {
	o      Options
	loader *registry.Loader

	mu      sync.Mutex
	wasm    *wasm.Host
	process *process.Host
}

// New returns a loader. The caller must close it after the last use of its policies.
func New(o Options) *Loader {
	l := &Loader{o: o}
	l.loader = registry.NewLoader(registry.Options{
		Hosts: map[bundle.Kind]registry.Host{
			bundle.Wasm: hostFunc(l.loadWasm), bundle.Process: hostFunc(l.loadProcess),
		},
		Builtin: builtin.Module, Names: builtin.Names(), Older: builtin.Older(), Roots: o.Roots, RequireSignature: o.RequireSignature,
	})
	return l
}

// WithLog returns another loader with the same options, but for the log; nil: none. The caller
// must close it.
func (l *Loader) WithLog(log *slog.Logger) *Loader {
	o := l.o
	o.Log = log
	return New(o)
}

// Request selects a policy and configures how it runs.
type Request struct {
	sim.PolicySpec        // Use is P or P?key=value
	Dir            string // base of a relative path in Use; empty: the working directory
	OnFault        policy.OnFault
	Limits         policy.Limits     // of a call; zero fields select those of the bundle
	Observe        func(policy.Call) // nil if calls are not observed
}

// Policy is a version with its bundle and limits.
type Policy struct {
	*policy.Version
	Bundle *bundle.Bundle // nil for built-in policies
	Limits policy.Limits  // per call
}

// Resolve returns a version of the policy that spec names, P or P?key=value.
func (l *Loader) Resolve(spec sim.PolicySpec) (*policy.Version, error) {
	return l.Load(context.Background(), Request{PolicySpec: spec})
}

// Load returns a version of the requested policy.
func (l *Loader) Load(ctx context.Context, r Request) (*policy.Version, error) {
	p, err := l.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	return p.Version, nil
}

// Open returns a version of the requested policy with its bundle and limits.
func (l *Loader) Open(ctx context.Context, r Request) (*Policy, error) {
	if InlineName(r.Use) != "" {
		return l.openInline(ctx, r)
	}
	named, err := builtin.Parse(r.Use)
	if err != nil {
		return nil, err
	}
	config, err := configuration(r.Config, named.Config)
	if err != nil {
		return nil, fmt.Errorf("policy %s: configuration: %w", r.Use, err)
	}
	spec := registry.Spec{Name: r.Name, Use: named.Use, Config: config, Grants: r.Grants, OnFault: r.OnFault, Limits: r.Limits, Observe: r.Observe}
	if _, _, ok := builtin.Module(named.Use); !ok {
		if spec.Bundle, err = open(named.Use, r.Dir); err != nil {
			return nil, err
		}
	}
	return l.load(ctx, spec)
}

// OpenBundle returns a version of a bundle, and tests it as a server does before a
// version becomes active.
func (l *Loader) OpenBundle(ctx context.Context, b *bundle.Bundle) (*Policy, error) {
	p, err := l.load(ctx, registry.Spec{Use: b.Path, Bundle: b})
	if err != nil {
		return nil, err
	}
	if err := registry.SelfTest(p.Version); err != nil {
		return nil, fmt.Errorf("%s failed its self-test: %w", b.Named(), err)
	}
	return p, nil
}

func (l *Loader) load(ctx context.Context, spec registry.Spec) (*Policy, error) {
	v, err := l.loader.Load(ctx, spec)
	if err != nil {
		return nil, err
	}
	p := &Policy{Version: v, Bundle: spec.Bundle, Limits: policy.DefaultLimits}
	if p.Bundle != nil {
		own, err := p.Bundle.Manifest.Limits.Parse()
		if err != nil {
			return nil, err
		}
		p.Limits = spec.Limits.WithDefaults(own).WithDefaults(policy.DefaultLimits)
	}
	return p, nil
}

// open reads a bundle from disk. If the path does not exist and has the form of a
// name, it is treated as a name.
func open(use, dir string) (*bundle.Bundle, error) {
	path := use
	if dir != "" && !filepath.IsAbs(use) {
		path = filepath.Join(dir, use)
	}
	b, err := bundle.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(use, `/\`) && filepath.Ext(use) == "" {
		return nil, &UnknownError{Policy: use}
	}
	return b, err
}

// configuration merges a scenario's settings with those of the command line, which
// take precedence. It returns nil if there are none.
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
	host, err := l.wasmHost(ctx)
	if err != nil {
		return nil, err
	}
	m, err := host.Load(ctx, b.Code, limits)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// ErrNotStarted means that a policy is an executable, or has one as a part, which the context
// of WithoutProcesses does not permit to start.
var ErrNotStarted = errors.New("an executable was not started")

type withoutProcesses struct{}

// WithoutProcesses returns a context in which a Loader starts no executable. It returns
// ErrNotStarted instead.
func WithoutProcesses(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutProcesses{}, true)
}

func (l *Loader) loadProcess(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (registry.Module, error) {
	if ctx.Value(withoutProcesses{}) != nil {
		return nil, ErrNotStarted
	}
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

func (l *Loader) wasmHost(ctx context.Context) (*wasm.Host, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wasm != nil {
		return l.wasm, nil
	}
	host, err := wasm.NewHost(wasm.Options{CacheDir: l.o.CacheDir, Log: l.o.Log})
	if err != nil && l.o.CacheDir != "" { // an unwritable home directory must not prevent loading
		if l.o.Log != nil {
			l.o.Log.InfoContext(ctx, "compiled policies are not kept", "err", err)
		}
		host, err = wasm.NewHost(wasm.Options{Log: l.o.Log})
	}
	if err != nil {
		return nil, err
	}
	l.wasm = host
	return host, nil
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

// Close ends every policy process and frees compiled modules.
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
