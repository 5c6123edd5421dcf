package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/cmd/internal/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/oci"
	"github.com/cede-scheduler/cede/plugins/registry"
)

// A watchedPolicy is the active policy of a controller, loaded from files that may
// change.
type watchedPolicy struct {
	config *config.Config
	log    *slog.Logger
	loader *policies.Loader
	active *policy.ActiveSet
	pulled string // folder of the policies from registries; "" if the policy is not from one

	mu     sync.Mutex
	loaded [sha256.Size]byte // content of the files of the last attempt
	err    error             // of the last attempt
}

// newWatchedPolicy loads the policy. It returns an error if the policy is invalid.
func newWatchedPolicy(ctx context.Context, c *config.Config, log *slog.Logger, m *metrics) (*watchedPolicy, error) {
	roots, err := bundle.ReadRoots(c.Policy.Roots...)
	if err != nil {
		return nil, err
	}
	p := &watchedPolicy{config: c, log: log, loader: policies.New(policies.Options{Roots: roots, RequireSignature: c.Policy.RequireSignature, Log: log})}
	if strings.HasPrefix(c.Kubernetes.Policy, oci.Scheme) {
		if p.pulled, err = os.MkdirTemp("", "cede-policy-"); err != nil {
			return nil, errors.Join(err, p.loader.Close())
		}
	}
	use, err := p.resolve(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kubernetes.policy: %w", err), p.closeFiles())
	}
	set, sum, err := p.load(ctx, use)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kubernetes.policy: %w", err), p.closeFiles())
	}
	p.active, p.loaded = policy.NewActiveSet(set), sum
	m.recordReload(nil)
	return p, nil
}

// resolve returns the configured policy as a name or path with settings. A policy in a
// registry is pulled first.
func (p *watchedPolicy) resolve(ctx context.Context) (string, error) {
	k := &p.config.Kubernetes
	if p.pulled == "" {
		return k.Policy, nil
	}
	name, settings, configured := strings.Cut(k.Policy, "?")
	ref, err := oci.ParseReference(name)
	if err != nil {
		return "", err
	}
	client := &oci.Client{}
	if k.RegistryConfig != "" {
		client.Credentials = oci.DockerConfig(k.RegistryConfig)
	}
	path, err := client.Pull(ctx, &ref, p.pulled)
	if err != nil {
		return "", fmt.Errorf("pull %s: %w", name, err)
	}
	if configured {
		path += "?" + settings
	}
	return path, nil
}

// reload loads the policy again if its files have changed. If they are invalid or the
// registry cannot be reached, the active policy stays, and the error is returned.
func (p *watchedPolicy) reload(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	use, err := p.resolve(ctx)
	if err != nil {
		return fmt.Errorf("kubernetes.policy: %w", err)
	}
	if sum, err := p.sum(use); err == nil && sum == p.loaded {
		return p.err
	}
	set, sum, err := p.load(ctx, use)
	p.loaded, p.err = sum, nil
	if err != nil {
		p.err = fmt.Errorf("kubernetes.policy: %w", err)
		return p.err
	}
	p.active.Swap(set)
	p.log.InfoContext(ctx, "policy loaded", "policy", p.config.Kubernetes.Policy)
	return nil
}

// load returns a set with the configured policy, after its self-test, and the built-in
// default for the hooks that it does not implement. It also returns the checksum of the files before they were read.
func (p *watchedPolicy) load(ctx context.Context, use string) (*policy.Set, [sha256.Size]byte, error) {
	sum, err := p.sum(use)
	if err != nil {
		return nil, sum, err
	}
	spec := sim.PolicySpec{Name: policy.DefaultName, Use: use}
	if file := p.config.Kubernetes.PolicyConfig; file != "" {
		f, err := os.Open(file)
		if err != nil {
			return nil, sum, err
		}
		defer func() { _ = f.Close() }() // opened for reading only
		if spec.Config, err = policies.ReadConfig(file, f); err != nil {
			return nil, sum, err
		}
	}
	onFault, err := policy.ParseOnFault(p.config.Policy.OnFault)
	if err != nil {
		return nil, sum, err
	}
	v, err := p.loader.Load(ctx, policies.Request{PolicySpec: spec, OnFault: onFault})
	if err != nil {
		return nil, sum, err
	}
	if err := registry.SelfTest(v); err != nil {
		return nil, sum, fmt.Errorf("%s failed its self-test: %w", spec.Use, err)
	}
	fallback, err := p.loader.Load(ctx, policies.Request{PolicySpec: sim.PolicySpec{Name: "built-in default", Use: policy.DefaultName}})
	if err != nil {
		return nil, sum, err
	}
	set, err := policy.NewSetWithFallback(fallback, v)
	return set, sum, err
}

// sum returns a checksum of the files of the policy and of its settings.
func (p *watchedPolicy) sum(use string) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	var files []string
	if file := p.config.Kubernetes.PolicyConfig; file != "" {
		files = append(files, file)
	}
	named, err := builtin.Parse(use)
	if err != nil {
		return sum, err
	}
	if _, _, ok := builtin.Module(named.Use); !ok {
		files = append(files, named.Use)
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
		}); err != nil {
			return sum, err
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

func (p *watchedPolicy) close() error {
	p.active.Close()
	return p.closeFiles()
}

// closeFiles closes the loader and removes pulled files.
func (p *watchedPolicy) closeFiles() error {
	err := p.loader.Close()
	if p.pulled != "" {
		err = errors.Join(err, os.RemoveAll(p.pulled))
	}
	return err
}
