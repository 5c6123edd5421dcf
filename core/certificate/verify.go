package certificate

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
)

// ErrNoCalls means that a certificate proves nothing, because no policy was called.
var ErrNoCalls = errors.New("the decision was made without a call of a policy")

// A Host opens policies: *registry.PolicyHost.
type Host interface {
	Open(ctx context.Context, v *model.PolicyVersion, module []byte) (*policy.Version, error)
}

// Verify makes every call of a document again and compares the answers. It returns an error
// for the first that differs, or if a policy cannot be run by this process.
func Verify(ctx context.Context, d *Document, host Host) error {
	if len(d.Calls) == 0 {
		return ErrNoCalls
	}
	versions := make([]*policy.Version, len(d.Policies))
	defer func() {
		for _, v := range versions {
			if v != nil {
				v.ReleaseRef()
			}
		}
	}()
	for i := range d.Policies {
		v, err := open(ctx, &d.Policies[i], host)
		if err != nil {
			return fmt.Errorf("policy %s: %w", d.Policies[i].Name, err)
		}
		versions[i] = v
	}
	for i := range d.Calls {
		c := &d.Calls[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.Policy < 0 || c.Policy >= len(versions) {
			return fmt.Errorf("call %d is of policy %d of %d", i, c.Policy, len(versions))
		}
		if err := verifyCall(versions[c.Policy], c); err != nil {
			return fmt.Errorf("call %d, %s of policy %s: %w", i, c.Hook, d.Policies[c.Policy].Name, err)
		}
	}
	return nil
}

// open opens a policy with a reference.
func open(ctx context.Context, p *Policy, host Host) (*policy.Version, error) {
	v, err := host.Open(ctx, p.spec(), p.Module)
	if err != nil {
		return nil, err
	}
	v.AddRef()
	if v.ID != p.Version {
		v.ReleaseRef()
		return nil, fmt.Errorf("code and configuration give version %s, the certificate states %s", v.ID, p.Version)
	}
	return v, nil
}

func (p *Policy) spec() *model.PolicyVersion {
	return &model.PolicyVersion{
		ID: p.Version, Name: p.Name, Digest: p.Digest, Kind: p.Kind, Config: p.Config, Grants: p.Grants, Limits: p.Limits, Size: int64(len(p.Module)),
	}
}

// verifyCall makes a call. Answers depend on the frame alone.
func verifyCall(v *policy.Version, c *Call) error {
	in, err := v.Acquire()
	if err != nil {
		return err
	}
	defer v.Release(in)
	got, err := answerAgain(in, c.Frame)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, c.Answer) {
		return errors.New("made again, the call has another answer")
	}
	return nil
}

// ABIVersion is the version of the frames that this release writes.
var ABIVersion = fmt.Sprintf("%d.%d", abi.Major, abi.Minor)
