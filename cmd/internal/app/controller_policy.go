package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/pool"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/oci"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/sdk/client"
)

// A watchedPolicy is the active policy of a controller, which is loaded again when its
// source changes.
type watchedPolicy struct {
	config *config.Config
	log    *slog.Logger
	loader *policies.Loader
	source policySource
	active *policy.ActiveSet

	version atomic.Value // string: of the active policy in the pool; "" outside of one

	mu     sync.Mutex
	loaded [sha256.Size]byte // content of the last attempt
	err    error             // of the last attempt
}

// newWatchedPolicy loads the policy and takes ownership of the source. It returns an error
// if the policy is invalid.
func newWatchedPolicy(ctx context.Context, c *config.Config, source policySource, log *slog.Logger, m *metrics) (*watchedPolicy, error) {
	roots, err := bundle.ReadRoots(c.Policy.Roots...)
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	p := &watchedPolicy{config: c, log: log, source: source, loader: policies.New(policies.Options{Roots: roots, RequireSignature: c.Policy.RequireSignature, Log: log})}
	fetched, err := source.Fetch(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kubernetes.policy: %w", err), p.closeFiles())
	}
	set, sum, err := p.load(ctx, &fetched)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kubernetes.policy: %w", err), p.closeFiles())
	}
	p.active, p.loaded = policy.NewActiveSet(set), sum
	p.version.Store(fetched.Version)
	m.recordReload(nil)
	return p, nil
}

// reload loads the policy again if it has changed. If it is invalid or cannot be fetched,
// the active policy stays, and the error is returned.
func (p *watchedPolicy) reload(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	fetched, err := p.source.Fetch(ctx)
	if err != nil {
		return fmt.Errorf("kubernetes.policy: %w", err)
	}
	if sum, err := p.sum(&fetched); err == nil && sum == p.loaded {
		return p.err
	}
	set, sum, err := p.load(ctx, &fetched)
	p.loaded, p.err = sum, nil
	if err != nil {
		p.err = fmt.Errorf("kubernetes.policy: %w", err)
		return p.err
	}
	p.active.Swap(set)
	p.version.Store(fetched.Version)
	p.log.InfoContext(ctx, "policy loaded", "policy", p.config.Kubernetes.Policy, "version", fetched.Version)
	return nil
}

// activeVersion returns the version of the active policy in the pool, or "". It never
// blocks.
func (p *watchedPolicy) activeVersion() string { return p.version.Load().(string) }

// load returns a set with the policy, after its self-test, and the built-in default for the
// hooks that it does not implement. It also returns the checksum of the files before they
// were read.
func (p *watchedPolicy) load(ctx context.Context, fetched *pool.Policy) (*policy.Set, [sha256.Size]byte, error) {
	sum, err := p.sum(fetched)
	if err != nil {
		return nil, sum, err
	}
	spec := fetched.PolicySpec
	spec.Name = p.config.Kubernetes.Policy // of its errors
	onFault, err := policy.ParseOnFault(cmp.Or(fetched.OnFault, p.config.Policy.OnFault))
	if err != nil {
		return nil, sum, err
	}
	v, err := p.loader.Load(ctx, policies.Request{PolicySpec: spec, OnFault: onFault, Limits: fetched.Limits})
	if err != nil {
		return nil, sum, err
	}
	if err := registry.SelfTest(v); err != nil {
		return nil, sum, fmt.Errorf("%s failed its self-test: %w", spec.Use, err)
	}
	if v.Hooks() == policy.HookPreemptBindings {
		return nil, sum, fmt.Errorf("%s decides about bindings of member clusters only, and chooses among no pods", spec.Use)
	}
	v.Name = policy.DefaultName // it decides for every pod
	fallback, err := p.loader.Load(ctx, policies.Request{PolicySpec: sim.PolicySpec{Name: "built-in default", Use: policy.DefaultName}})
	if err != nil {
		return nil, sum, err
	}
	set, err := policy.NewSetWithFallback(fallback, v)
	return set, sum, err
}

// sum returns a checksum of a policy: of its settings, version, grants, treatment of faults,
// limits and files. The ID of a version covers the settings and the code only. The loader
// reports files that do not exist.
func (p *watchedPolicy) sum(fetched *pool.Policy) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	settings, err := json.Marshal(fetched.Config)
	if err != nil {
		return sum, err
	}
	_, _ = fmt.Fprintf(h, "%q %q %s %q %q %v ", fetched.Use, fetched.Version, settings, fetched.Grants, fetched.OnFault, fetched.Limits)
	var files []string
	if policies.InlineName(fetched.Use) == "" { // otherwise the policy is part of the name
		named, err := builtin.Parse(fetched.Use)
		if err != nil {
			return sum, err
		}
		if _, _, ok := builtin.Module(named.Use); !ok {
			files = append(files, named.Use)
		}
	}
	for _, root := range files {
		// The files of a ConfigMap are links into a directory that is replaced as a whole.
		if resolved, err := filepath.EvalSymlinks(root); err == nil {
			root = resolved
		}
		if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if info, err := os.Stat(path); err != nil || info.IsDir() {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }() // opened for reading only
			_, _ = fmt.Fprintf(h, "%q ", path)
			_, err = io.Copy(h, f)
			return err
		}); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return sum, err
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

func (p *watchedPolicy) close() error {
	p.active.Close()
	return p.closeFiles()
}

// closeFiles closes the loader and the source.
func (p *watchedPolicy) closeFiles() error { return errors.Join(p.loader.Close(), p.source.Close()) }

// A policySource provides the policy of a controller, which may change.
type policySource interface {
	// Fetch returns the current policy. Its files remain until the next change or Close.
	Fetch(ctx context.Context) (pool.Policy, error)
	// Watch calls changed when Fetch may return another policy, until the context is
	// cancelled. It returns at once if the source does not report changes.
	Watch(ctx context.Context, changed func())
	Close() error
}

// newPolicySource returns the source of the configured policy. servers is the client of
// the pool.
func newPolicySource(k *config.Kubernetes, servers *client.Client) (policySource, error) {
	if name, ok := strings.CutPrefix(k.Policy, config.PoolScheme); ok {
		return pool.NewSource(servers, name, k.PolicyInterval)
	}
	files := localSource{use: k.Policy, settings: k.PolicyConfig}
	if !strings.HasPrefix(k.Policy, oci.Scheme) {
		return files, nil
	}
	name, _, _ := strings.Cut(k.Policy, "?")
	ref, err := oci.ParseReference(name)
	if err != nil {
		return nil, err
	}
	s := &registrySource{local: files, ref: ref, client: &oci.Client{}}
	if k.RegistryConfig != "" {
		s.client.Credentials = oci.DockerConfig(k.RegistryConfig)
	}
	s.dir, err = os.MkdirTemp("", "cede-policy-")
	return s, err
}

// A localSource is a built-in policy or files, with settings in a file.
type localSource struct {
	use      string
	settings string // file; "": none
}

func (s localSource) Fetch(context.Context) (p pool.Policy, err error) {
	p.Use = s.use
	if s.settings == "" {
		return p, nil
	}
	f, err := os.Open(s.settings)
	if err != nil {
		return p, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	p.Config, err = policies.ReadConfig(s.settings, f)
	return p, err
}

func (localSource) Watch(context.Context, func()) {}
func (localSource) Close() error                  { return nil }

// A registrySource is a policy in a container registry.
type registrySource struct {
	local  localSource // use is the reference, with settings
	ref    oci.Reference
	client *oci.Client
	dir    string // of the pulled files
}

func (s *registrySource) Fetch(ctx context.Context) (pool.Policy, error) {
	p, err := s.local.Fetch(ctx)
	if err != nil {
		return p, err
	}
	name, settings, configured := strings.Cut(p.Use, "?")
	if p.Use, err = s.client.Pull(ctx, &s.ref, s.dir); err != nil {
		return p, fmt.Errorf("pull %s: %w", name, err)
	}
	if configured {
		p.Use += "?" + settings
	}
	return p, nil
}

func (*registrySource) Watch(context.Context, func()) {}
func (s *registrySource) Close() error                { return os.RemoveAll(s.dir) }

// dialPool returns a client of the configured servers, or nil if there are none.
func dialPool(k *config.Kubernetes, transport http.RoundTripper, version string) (*client.Client, error) {
	if len(k.Servers) == 0 {
		return nil, nil
	}
	return client.New(client.Config{
		Address: strings.Join(k.Servers, ","), Token: string(k.ServerToken), HTTPClient: &http.Client{Transport: transport},
		UserAgent: "cede-kubernetes/" + cmp.Or(version, "unknown"), Silence: serverResponseTimeout,
	})
}
