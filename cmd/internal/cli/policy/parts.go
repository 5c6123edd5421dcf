package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/composition"
	"github.com/cede-scheduler/cede/plugins/composition/build"
	"github.com/cede-scheduler/cede/sdk/client"
)

// poolBuilder returns a builder of compositions that can use versions of servers. It connects
// when it needs the first one.
func poolBuilder(server *cmdutil.Connection) *build.Builder {
	b := policies.NewBuilder()
	b.Fetch = func(ctx context.Context, name, version string) (code composition.Code, err error) {
		c, err := server.Dial()
		if err != nil {
			return code, err
		}
		return fetchPart(ctx, c, name, version)
	}
	return b
}

// fetchPart returns a version that servers have loaded as a part of a composition.
func fetchPart(ctx context.Context, c *client.Client, name, version string) (code composition.Code, err error) {
	v, err := loadedVersion(ctx, c, name, version)
	if err != nil {
		return code, err
	}
	code = composition.Code{Name: v.Name, Kind: bundle.Kind(v.Kind), Digest: v.Digest, Config: v.Config}
	switch v.Kind {
	case model.PolicyBuiltin:
		code.Builtin = builtin.OfDigest(v.Digest)
		return code, nil
	case model.PolicyProcess:
		return code, nil // the servers have their own copies
	}
	m, err := c.Policies().Module(ctx, v.Name, v.ID)
	if err != nil {
		return code, ofPolicy(err)
	}
	if m.Digest != v.Digest {
		return code, fmt.Errorf("the module of version %s has the digest %s instead of %s", v.ID, m.Digest, v.Digest)
	}
	code.Code = m.Code
	return code, nil
}

// loadedVersion returns the version with the prefix of an ID or of a digest; the active one
// if it is "".
func loadedVersion(ctx context.Context, c *client.Client, name, version string) (*client.PolicyVersion, error) {
	status, _, err := c.Policies().Status(ctx, name, nil)
	if err != nil {
		return nil, ofPolicy(err)
	}
	if version == "" {
		if version = status.Active; version == "" {
			return nil, errors.New("no version is active: name one, as in pool://NAME@VERSION")
		}
	}
	matches := func(id string) bool {
		return strings.HasPrefix(id, version) || strings.HasPrefix(strings.TrimPrefix(id, "sha256:"), version)
	}
	found := slices.DeleteFunc(slices.Clone(status.Loaded), func(v *client.PolicyVersion) bool { return !matches(v.ID) && !matches(v.Digest) })
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("no loaded version of %s begins with %s; `cede policy status %s` lists them", name, version, name)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%d loaded versions of %s begin with %s: name one by its whole ID", len(found), name, version)
}
