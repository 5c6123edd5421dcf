package policymgr

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
)

// compositionsFrom is the first cluster version in which servers load compositions.
const compositionsFrom = 2

// load implements Policies.LoadPolicy.
func (m *Manager) load(ctx context.Context, r policy.LoadRequest) (*model.PolicyVersion, error) {
	if err := m.cfg.CheckLeader(); err != nil {
		return nil, err
	}
	if len(r.Module) > policy.MaxModuleSize {
		return nil, apierror.New(apierror.CodeTooLarge, "module has %d bytes; the maximum is %d MiB", len(r.Module), policy.MaxModuleSize>>20).
			WithHint("strip it: -ldflags='-s -w' for Go, wasm-opt -Oz for any")
	}
	v, err := m.cfg.Host.Describe(ctx, r)
	if err != nil {
		return nil, invalidPolicy(err)
	}
	if version := m.cfg.Store.Snapshot().Meta().Version; v.Kind == model.PolicyComposition && version < compositionsFrom {
		return nil, apierror.New(apierror.CodeConflict, "cannot load a composition: the cluster is at version %d, and compositions require %d", version, compositionsFrom).
			WithHint("upgrade every server first")
	}
	select {
	case m.loading <- struct{}{}:
		defer func() { <-m.loading }()
	case <-ctx.Done():
		return nil, apierror.Interrupted(ctx.Err())
	}
	v.Time = m.cfg.Clock.Now().UnixNano()
	if err := m.register(ctx, v, r.Module); err != nil {
		return nil, err
	}
	if r.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = clock.WithTimeout(ctx, m.cfg.Clock, r.Wait)
		defer cancel()
	}
	return m.waitChecked(ctx, v.ID)
}

// invalidPolicy returns the error of a request that does not describe a valid policy.
// The cause may be a fault of the policy itself.
func invalidPolicy(err error) *apierror.Error {
	if own, ok := errors.AsType[*apierror.Error](err); ok {
		return own
	}
	problems := strings.Split(err.Error(), "\n")
	e := apierror.New(apierror.CodeInvalid, "%s", strings.Join(problems, "; ")).WithCause(err)
	details := map[string]any{}
	if fault, ok := errors.AsType[*policy.Error](err); ok {
		details["Fault"] = fault.Fault.String()
		e.Hint = fault.Hint
		e.Message = strings.TrimSuffix(e.Message, " ("+fault.Hint+")")
	}
	if len(problems) > 1 {
		details["Problems"] = problems
	}
	return e.WithDetails(details)
}

// register writes a version into the state, after its module if the servers do not have
// that.
func (m *Manager) register(ctx context.Context, v *model.PolicyVersion, module []byte) error {
	snap := m.cfg.Store.Snapshot()
	known := snap.PolicyVersion(v.ID)
	if known != nil {
		if err := checkLoaded(known, v, snap.PolicyState(known.Name)); err != nil {
			return err
		}
		if sameSettings(known, v) {
			if check, tried := known.Checks[m.cfg.ServerID]; tried && !check.OK {
				m.retry(v.ID)
			}
			return nil
		}
	}
	if v.HasModule() && !hasModule(snap, v.Digest) {
		if err := m.upload(ctx, v.Digest, module); err != nil {
			return err
		}
	}
	_, err := m.apply(ctx, &replication.LoadPolicy{Version: v})
	if refusal, ok := errors.AsType[*replication.Refusal](err); ok {
		return apierror.Refused(refusal)
	}
	if err == nil && known != nil {
		m.retry(v.ID)
	}
	return m.unwritten(err)
}

// checkLoaded returns an error if a version that is loaded cannot be loaded again: under
// another name, or with other settings while it has a role.
func checkLoaded(known, v *model.PolicyVersion, s *model.PolicyState) error {
	short := model.ShortVersion(v.ID)
	details := map[string]any{"Version": v.ID, "Name": known.Name}
	switch {
	case known.Name != v.Name:
		return apierror.New(apierror.CodeConflict, "version %s is already loaded, as %s", short, known.Name).WithDetails(details).
			WithHint("activate it under that name, or unload it first: cede policy unload %s@%s", known.Name, short)
	case !sameSettings(known, v) && s != nil && s.Uses(v.ID):
		return apierror.New(apierror.CodeConflict, "version %s is %s with other grants, limits, signer or fault handling", short, roleOf(s, v.ID)).
			WithDetails(details).WithHint("give its role to another version first")
	}
	return nil
}

// hasModule reports whether the servers have a module because of another version.
func hasModule(snap *state.Snapshot, digest string) bool {
	return slices.ContainsFunc(snap.PolicyVersions(), func(v *model.PolicyVersion) bool {
		return v.Digest == digest && v.HasModule()
	})
}

// upload writes a module into the log in chunks. It continues an earlier upload.
func (m *Manager) upload(ctx context.Context, digest string, module []byte) error {
	sent := int64(0)
	if up := m.cfg.Store.Snapshot().Upload(digest); up != nil && up.Size <= int64(len(module)) {
		sent = up.Size
	}
	for sent < int64(len(module)) {
		end := min(sent+replication.MaxChunk, int64(len(module)))
		_, err := m.apply(ctx, &replication.PutChunk{Digest: digest, Offset: sent, Data: module[sent:end]})
		if refusal, ok := errors.AsType[*replication.Refusal](err); ok {
			return apierror.Refused(refusal)
		}
		if err != nil {
			return notLoaded(m.unwritten(err))
		}
		sent = end
	}
	return nil
}

// notLoaded returns the error of an upload that failed. Chunks have no effect, so the outcome
// of the load is known even if that of a chunk is not.
func notLoaded(err error) error {
	if apierror.CodeOf(err) != apierror.CodeUnknownOutcome {
		return err
	}
	return apierror.New(apierror.CodeUnavailable, "the policy was not loaded: %v", errors.Unwrap(err)).
		WithCause(err).WithHint("send the request again: it continues the upload")
}

// waitChecked waits until every required server has checked a version, or ctx ends.
func (m *Manager) waitChecked(ctx context.Context, id string) (*model.PolicyVersion, error) {
	for {
		stepDone := m.stepDone()
		watch := m.cfg.Store.Watch(state.TablePolicies.Of(id))
		v := m.cfg.Store.Snapshot().PolicyVersion(id)
		if v == nil {
			watch.Stop()
			return nil, apierror.New(apierror.CodeConflict, "version %s was unloaded while it was being checked", model.ShortVersion(id))
		}
		if len(m.uncheckedBy(v)) == 0 && m.isReported(v) {
			watch.Stop()
			return v, nil
		}
		select {
		case <-watch.C:
		case <-stepDone:
			watch.Stop()
		case <-ctx.Done():
			watch.Stop()
			return v, nil
		}
	}
}

// uncheckedBy returns the required servers that have not checked a version.
func (m *Manager) uncheckedBy(v *model.PolicyVersion) []string {
	return slices.DeleteFunc(m.requiredServers(), func(id string) bool {
		_, checked := v.Checks[id]
		return checked
	})
}
