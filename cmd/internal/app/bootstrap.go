package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

// readyTimeout limits the time until a single server is the leader.
const readyTimeout = 30 * time.Second

// bootstrap waits until the server answers, and sets it up.
func (s *serverComponents) bootstrap(ctx context.Context, c *config.Config) error {
	if err := s.awaitReady(ctx); err != nil {
		return err
	}
	return s.setUp(ctx, c)
}

// bootstrapAsync runs setUp once this server leads its pool, which may
// never happen: the leading server performs the setup. It does not wait for an
// election, because the other servers may start later.
func (s *serverComponents) bootstrapAsync(c *config.Config) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(bootstrapRetryInterval); ; {
			if s.log.IsLeader() && s.awaitReady(ctx) == nil {
				err := s.setUp(ctx, c)
				if err == nil {
					return
				}
				s.env.log.WarnContext(ctx, "failed to bootstrap cluster", "err", err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	s.env.down.push("setting up", func(context.Context) error {
		cancel()
		<-done
		return nil
	})
}

// bootstrapRetryInterval is the interval of checks whether this server is the leader.
const bootstrapRetryInterval = time.Second

// setUp performs the one-time setup: the first token, the resources of a development
// server, and the policies of the directory.
func (s *serverComponents) setUp(ctx context.Context, c *config.Config) error {
	if c.ACL.Enabled {
		if err := s.createFirstToken(ctx, c); err != nil {
			return err
		}
	}
	if c.Dev {
		if err := s.enableDevPreemption(ctx); err != nil {
			return err
		}
	}
	if _, err := s.loadPolicies(ctx, c); err != nil {
		s.env.log.ErrorContext(ctx, "failed to load some policies", "err", err)
	}
	return nil
}

// awaitReady waits until all readiness checks of the server pass.
func (s *serverComponents) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		var lacks []string
		for _, check := range s.server.Ready(ctx) {
			if !check.OK {
				lacks = append(lacks, check.Name+": "+check.Detail)
			}
		}
		if len(lacks) == 0 {
			return nil
		}
		select {
		case <-time.After(pause):
		case err := <-s.env.failed:
			s.env.fail(err) // store it again for Wait
			return err
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready: %s", strings.Join(lacks, "; "))
		}
	}
}

// createFirstToken creates the first management token of a cluster, once, and writes
// it to a file that only its owner can read.
func (s *serverComponents) createFirstToken(ctx context.Context, c *config.Config) error {
	if len(s.state.Snapshot().Tokens()) > 0 {
		return nil
	}
	f, err := os.OpenFile(c.ACL.BootstrapFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("acl.bootstrap_file: %s exists, but the cluster has no token yet: move the file", c.ACL.BootstrapFile)
	}
	if err != nil {
		return fmt.Errorf("acl.bootstrap_file: %w", err)
	}
	secret, _, err := s.server.BootstrapToken(ctx)
	if err == nil {
		_, err = f.WriteString(secret + "\n")
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(c.ACL.BootstrapFile) // the file holds no valid token
		return err
	}
	s.env.log.WarnContext(ctx, "management token created; store it and remove the file", "file", c.ACL.BootstrapFile)
	return nil
}

// nodeToken returns the token of this process's own node: the configured one if it is
// set, otherwise one that is generated once and stored.
func (p *Process) nodeToken(ctx context.Context, c *config.Config) (string, error) {
	if c.Client.Token != "" || !c.ACL.Enabled || p.server == nil {
		return string(c.Client.Token), nil
	}
	path := p.dataPath("client/token")
	if b, err := os.ReadFile(path); err == nil {
		token := strings.TrimSpace(string(b))
		if _, ok := p.server.server.Authenticate(token); ok {
			return token, nil
		}
		p.log.WarnContext(ctx, "stored token of the node is not valid and is replaced", "path", path)
	}
	secret, _, err := p.server.server.CreateToken(ctx, endpoint.NewToken{Name: "node " + c.Name, Roles: []string{string(acl.Node)}})
	if err != nil && c.Pooled() {
		return "", fmt.Errorf("client.token: a node in the process of a pooled server requires a token with the role node: %w", err)
	}
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return "", err
	}
	return secret, os.WriteFile(path, []byte(secret+"\n"), 0o600)
}

// enableDevPreemption enables preemption for every job type.
func (s *serverComponents) enableDevPreemption(ctx context.Context) error {
	_, err := s.server.UpdateConfig(ctx, nil, func(c *model.SchedulerConfig) error {
		for i := range c.Preemption {
			c.Preemption[i] = true
		}
		return nil
	})
	return err
}

// loadPolicies loads the policies of the directory into the cluster, without
// activating them. A policy that is already loaded is left unchanged. If policies are
// rejected, the error lists them.
func (s *serverComponents) loadPolicies(ctx context.Context, c *config.Config) (loaded []string, err error) {
	if c.Policy.Directory == "" {
		return nil, nil
	}
	if c.Pooled() && !s.log.IsLeader() {
		return nil, nil // the leader loads them
	}
	entries, err := os.ReadDir(c.Policy.Directory)
	if err != nil {
		return nil, fmt.Errorf("policy.directory: %w", err)
	}
	known := map[string]bool{}
	for _, v := range s.state.Snapshot().PolicyVersions() {
		known[v.ID] = true
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(c.Policy.Directory, e.Name())
		if !e.IsDir() && filepath.Ext(path) != ".wasm" && filepath.Ext(path) != ".tar" {
			continue
		}
		r, err := policyLoadRequest(path)
		var v *model.PolicyVersion
		if err == nil {
			v, err = s.server.LoadPolicy(ctx, r)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
			continue
		}
		if !known[v.ID] {
			loaded = append(loaded, v.Name+"@"+v.ID)
		}
	}
	return loaded, errors.Join(errs...)
}

// policyLoadRequest returns the request that loads the policy at a path.
func policyLoadRequest(path string) (r policy.LoadRequest, err error) {
	b, err := bundle.Open(path)
	if err != nil {
		return r, err
	}
	r = policy.LoadRequest{Module: b.Code}
	if b.Manifest.Kind == bundle.Process {
		r.Executable = b.Manifest.Digest
	}
	if b.Dir == "" {
		return r, nil
	}
	if r.Manifest, err = os.ReadFile(filepath.Join(b.Dir, bundle.ManifestFile)); err != nil {
		return r, err
	}
	if b.Signed() {
		r.Signature, err = os.ReadFile(filepath.Join(b.Dir, bundle.SignatureFile))
	}
	return r, err
}
