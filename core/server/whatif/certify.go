package whatif

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"

	"github.com/cede-scheduler/cede/core/certificate"
	"github.com/cede-scheduler/cede/core/counterfactual"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/state"
)

// DecisionKey returns the public key that verifies certificates of this server, or nil if it
// writes none.
func (e *Examiner) DecisionKey() ed25519.PublicKey {
	if e.signer.Key == nil {
		return nil
	}
	return e.signer.Key.Public().(ed25519.PublicKey)
}

// Certify returns a signed certificate of a decision, made again on this server.
func (e *Examiner) Certify(ctx context.Context, d *eventsink.Decision) ([]byte, error) {
	if e.signer.Key == nil {
		return nil, apierror.New(apierror.CodeConflict, "this server has no key to sign certificates with")
	}
	var log certificate.Log
	var file []byte
	err := e.reproduce(ctx, d, &log, func(_ context.Context, c *counterfactual.Case, _ *counterfactual.Explorer) error {
		versions, calls, failed := log.Stop()
		if errors.Is(failed, certificate.ErrTooLarge) {
			return apierror.New(apierror.CodeConflict, "cannot certify the decision: %v", failed).WithCause(failed)
		}
		if failed != nil {
			return failed
		}
		if len(calls) == 0 {
			return certificate.ErrNoCalls
		}
		doc := &certificate.Document{
			Version: certificate.Version, Release: e.signer.Release, ServerID: e.signer.ServerID, ABI: certificate.ABIVersion,
			StateIndex: d.PlannedOn, Now: d.PlannedAt, Written: e.clock.Now().UnixNano(), Calls: calls,
		}
		var err error
		if doc.Decision, err = json.Marshal(d); err != nil {
			return err
		}
		for _, id := range versions {
			p, err := e.certified(c.Snap, c.Policies, id)
			if err != nil {
				return err
			}
			doc.Policies = append(doc.Policies, *p)
		}
		file, err = certificate.Write(doc, e.signer.Key)
		return err
	})
	return file, err
}

// certified describes a version that was called, with its module.
func (e *Examiner) certified(snap *state.Snapshot, set *policy.Set, id string) (*certificate.Policy, error) {
	spec := snap.PolicyVersion(id)
	if spec == nil {
		for _, v := range set.Versions() {
			if v.ID == id {
				spec = &model.PolicyVersion{ID: id, Name: v.Name, Digest: v.Digest, Kind: model.PolicyBuiltin, Config: v.Config(), Grants: v.Grants}
			}
		}
	}
	p := &certificate.Policy{
		Name: spec.Name, Version: spec.ID, Digest: spec.Digest, Kind: spec.Kind, Config: spec.Config, Grants: spec.Grants, Limits: spec.Limits,
	}
	switch spec.Kind {
	case model.PolicyWasm, model.PolicyComposition:
		var err error
		if p.Module, err = e.policies.Module(spec); err != nil {
			return nil, err
		}
	case model.PolicyProcess:
		return nil, apierror.New(apierror.CodeConflict, "policy %s is an executable of the servers: a certificate cannot contain its code", spec.Name)
	}
	return p, nil
}
