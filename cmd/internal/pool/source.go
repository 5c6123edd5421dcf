package pool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/sdk/client"
)

// A Policy is a version of a policy that can be loaded.
type Policy struct {
	sim.PolicySpec               // Use is P or P?key=value
	OnFault        string        // default: that of the configuration
	Limits         policy.Limits // of a call; zero: those of the files
	Version        string        // in the pool; "" outside of one
}

// A Source is the active version of a policy in a pool of servers, which follows
// activations, trials and rollbacks there. Create one with NewSource.
type Source struct {
	policies client.Policies
	name     string
	dir      string        // of the modules
	retry    time.Duration // delay after a failed request
}

// NewSource returns the source of a policy. retry is the delay after a failed request.
func NewSource(servers *client.Client, name string, retry time.Duration) (*Source, error) {
	dir, err := os.MkdirTemp("", "cede-policy-")
	return &Source{policies: servers.Policies(), name: name, dir: dir, retry: retry}, err
}

// Fetch returns the active version. Its module remains until Close.
func (s *Source) Fetch(ctx context.Context) (p Policy, err error) {
	status, _, err := s.policies.Status(ctx, s.name, nil)
	if err != nil {
		return p, fmt.Errorf("read policy %s of the pool: %w", s.name, err)
	}
	if status.Active == "" && status.Builtin {
		p.Use = s.name
		return p, nil
	}
	at := slices.IndexFunc(status.Loaded, func(v *client.PolicyVersion) bool { return v.ID == status.Active })
	if at < 0 {
		return p, fmt.Errorf("policy %s has no active version in the pool: activate one", s.name)
	}
	v := status.Loaded[at]
	p.Version, p.Grants, p.OnFault = v.ID, v.Grants, v.OnFault
	if l := v.Limits; l != nil {
		p.Limits = policy.Limits{Fuel: l.Fuel, FuelPerRow: l.FuelPerRow, Memory: l.Memory, Time: l.Time}
	}
	if len(v.Config) > 0 {
		d := json.NewDecoder(bytes.NewReader(v.Config))
		d.UseNumber() // large integers are not floats
		if err := d.Decode(&p.Config); err != nil {
			return p, fmt.Errorf("settings of version %s: %w", v.ID, err)
		}
	}
	p.Use, err = s.code(ctx, v)
	return p, err
}

// code returns the name of the built-in policy of a version, or the path of its module.
func (s *Source) code(ctx context.Context, v *client.PolicyVersion) (string, error) {
	switch v.Kind {
	case "builtin":
		if name := builtin.OfDigest(v.Digest); name != "" {
			return name, nil
		}
		return "", fmt.Errorf("version %s is a built-in policy that this program does not have: run the release of the servers", v.ID)
	case "wasm", "composition":
	default:
		return "", fmt.Errorf("version %s is of the kind %s: a controller runs built-in policies, WebAssembly modules and compositions", v.ID, v.Kind)
	}
	path := filepath.Join(s.dir, strings.NewReplacer(":", "-", "/", "-").Replace(v.Digest)+".wasm")
	if _, err := os.Stat(path); err == nil {
		return path, nil // the name is the digest
	}
	m, err := s.policies.Module(ctx, s.name, v.ID)
	if err != nil {
		return "", fmt.Errorf("read module of version %s: %w", v.ID, err)
	}
	if m.Digest != v.Digest {
		return "", fmt.Errorf("the module of version %s has the digest %s instead of %s", v.ID, m.Digest, v.Digest)
	}
	part := path + ".part" // an interrupted write must not count as a module
	if err := os.WriteFile(part, m.Code, 0o600); err != nil {
		return "", err
	}
	return path, os.Rename(part, path)
}

// Watch calls changed when the active version has changed, by blocking queries, until the
// context is cancelled.
func (s *Source) Watch(ctx context.Context, changed func()) {
	var index uint64
	last := ""
	for ctx.Err() == nil {
		status, meta, err := s.policies.Status(ctx, s.name, &client.QueryOptions{Index: index, Wait: 5 * time.Minute})
		if err != nil {
			index = 0
			pause(ctx, s.retry)
			continue
		}
		index = meta.LastIndex
		if now := activeVersion(status); now != last {
			last = now
			changed()
			continue
		}
		// Servers that do not support the query respond at once.
		pause(ctx, min(s.retry, time.Second))
	}
}

// activeVersion returns a text that differs if Fetch would return another policy.
func activeVersion(status *client.PolicyStatus) string {
	active := &client.PolicyVersion{}
	if at := slices.IndexFunc(status.Loaded, func(v *client.PolicyVersion) bool { return v.ID == status.Active }); at >= 0 {
		active = status.Loaded[at]
	}
	limits, _ := json.Marshal(active.Limits) // numbers always marshal
	return fmt.Sprintf("%q %t %s %s %q %q %s", status.Active, status.Builtin, active.Digest, active.Config, active.Grants, active.OnFault, limits)
}

// pause returns after d, or when the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Close removes the modules.
func (s *Source) Close() error { return os.RemoveAll(s.dir) }
