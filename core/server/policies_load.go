package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// LoadPolicy takes a policy into the cluster and returns when every server that
// must has checked it, or when the context or r.Wait ends: Checks then lack some,
// and AwaitedChecks says which. It decides nothing until it is activated. Loading the same again changes nothing;
// a server that refused it tries once more.
func (s *Server) LoadPolicy(ctx context.Context, r LoadRequest) (*model.PolicyVersion, error) {
	return s.policies.load(ctx, r)
}

func (p *policies) load(ctx context.Context, r LoadRequest) (*model.PolicyVersion, error) {
	if err := p.leads(); err != nil {
		return nil, err
	}
	if len(r.Module) > policy.MaxModuleSize {
		return nil, apierror.New(apierror.CodeTooLarge, "the module has %d bytes, and a policy may have %d MiB", len(r.Module), policy.MaxModuleSize>>20).
			WithHint("strip it: -ldflags='-s -w' for Go, wasm-opt -Oz for any")
	}
	v, err := p.host.Describe(ctx, r)
	if err != nil {
		return nil, refusedPolicy(err)
	}
	select {
	case p.loading <- struct{}{}:
		defer func() { <-p.loading }()
	case <-ctx.Done():
		return nil, apierror.Interrupted(ctx.Err())
	}
	v.Time = p.clock.Now().UnixNano()
	if err := p.register(ctx, v, r.Module); err != nil {
		return nil, err
	}
	if r.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = clock.WithTimeout(ctx, p.clock, r.Wait)
		defer cancel()
	}
	return p.checked(ctx, v.ID)
}

// isLeader is nil on the leader.
func (p *policies) isLeader() error {
	if p.log.IsLeader() {
		return nil
	}
	return p.unwritten(replication.ErrNotLeader)
}

// unwritten is why the log did not take an entry, in words for the caller; nil
// stays nil.
func (p *policies) unwritten(err error) error {
	if err == nil {
		return nil
	}
	return logwriter.Unwritten(p.id, p.log, err)
}

// refusedPolicy is a request that does not describe a policy which may be
// loaded. A fault is the policy's own.
func refusedPolicy(err error) *apierror.Error {
	if ours, ok := errors.AsType[*apierror.Error](err); ok {
		return ours
	}
	problems := strings.Split(err.Error(), "\n")
	e := apierror.New(apierror.CodeInvalid, "%s", strings.Join(problems, "; "))
	e.Err = err
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

// register makes a version known, with its module where that is not there yet.
func (p *policies) register(ctx context.Context, v *model.PolicyVersion, module []byte) error {
	snap := p.store.Snapshot()
	known := snap.PolicyVersion(v.ID)
	if known != nil {
		if err := taken(known, v, snap.PolicyState(known.Name)); err != nil {
			return err
		}
		if madeAlike(known, v) {
			if check, tried := known.Checks[p.id]; tried && !check.OK {
				p.retry(v.ID)
			}
			return nil
		}
	}
	if v.Kind == model.PolicyWasm && !hasModule(snap, v.Digest) {
		if err := p.send(ctx, v.Digest, module); err != nil {
			return err
		}
	}
	_, err := p.apply(ctx, &replication.LoadPolicy{Version: v})
	if refusal, ok := errors.AsType[*replication.Refusal](err); ok {
		return apierror.Refused(refusal)
	}
	if err == nil && known != nil {
		p.retry(v.ID)
	}
	return p.unwritten(err)
}

// taken is why a version cannot be loaded that is there: under another name, or
// at work with other settings. nil: it can.
func taken(known, v *model.PolicyVersion, s *model.PolicyState) error {
	short := shortVersion(v.ID)
	details := map[string]any{"Version": v.ID, "Name": known.Name}
	switch {
	case known.Name != v.Name:
		return apierror.New(apierror.CodeConflict, "version %s is loaded already, as %s", short, known.Name).WithDetails(details).
			WithHint("activate it under that name, or forget it first: cede policy unload %s@%s", known.Name, short)
	case !madeAlike(known, v) && s != nil && s.Uses(v.ID):
		return apierror.New(apierror.CodeConflict, "version %s is %s with other grants, limits, signer or another answer to faults", short, roleOf(s, v.ID)).
			WithDetails(details).WithHint("let another version take its role first")
	}
	return nil
}

// madeAlike is whether two loads of one version come to the same on every server.
func madeAlike(a, b *model.PolicyVersion) bool {
	return slices.Equal(slices.Sorted(slices.Values(a.Grants)), slices.Sorted(slices.Values(b.Grants))) &&
		a.OnFault == b.OnFault && a.Limits == b.Limits && a.Signer == b.Signer
}

// hasModule is whether the module came with another version, so that every
// server has it.
func hasModule(snap *state.Snapshot, digest string) bool {
	return slices.ContainsFunc(snap.PolicyVersions(), func(v *model.PolicyVersion) bool {
		return v.Digest == digest && v.Kind == model.PolicyWasm
	})
}

// send puts a module into the log, piece by piece. What has arrived of it before
// is not sent again.
func (p *policies) send(ctx context.Context, digest string, module []byte) error {
	sent := int64(0)
	if up := p.store.Snapshot().Upload(digest); up != nil && up.Size <= int64(len(module)) {
		sent = up.Size
	}
	for sent < int64(len(module)) {
		end := min(sent+replication.MaxChunk, int64(len(module)))
		_, err := p.apply(ctx, &replication.PutChunk{Digest: digest, Offset: sent, Data: module[sent:end]})
		if refusal, ok := errors.AsType[*replication.Refusal](err); ok {
			return apierror.Refused(refusal)
		}
		if err != nil {
			return p.unwritten(err)
		}
		sent = end
	}
	return nil
}

// checked waits until every server that must has checked a version.
func (p *policies) checked(ctx context.Context, id string) (*model.PolicyVersion, error) {
	for {
		stepped := p.stepped()
		watch := p.store.Watch(state.TablePolicies.Of(id))
		v := p.store.Snapshot().PolicyVersion(id)
		if v == nil {
			watch.Stop()
			return nil, apierror.New(apierror.CodeConflict, "version %s was unloaded while it was being checked", shortVersion(id))
		}
		if len(p.unchecked(v)) == 0 && p.isTold(v) {
			watch.Stop()
			return v, nil
		}
		select {
		case <-watch.C:
		case <-stepped:
			watch.Stop()
		case <-ctx.Done():
			watch.Stop()
			return v, nil
		}
	}
}

// unchecked is the servers that must still check a version.
func (p *policies) unchecked(v *model.PolicyVersion) []string {
	return slices.DeleteFunc(p.required(), func(id string) bool {
		_, checked := v.Checks[id]
		return checked
	})
}

// AwaitedChecks is the servers that must still check a version, each with why it has
// not yet as far as this server knows; empty: all that must have.
func (s *Server) AwaitedChecks(v *model.PolicyVersion) map[string]string {
	awaited := map[string]string{}
	for _, id := range s.policies.unchecked(v) {
		awaited[id] = s.whyUnchecked(id)
	}
	if s.writer.CheckLeader() == nil && awaited[s.cfg.ID] == "" && !s.policies.isTold(v) {
		awaited[s.cfg.ID] = busyChecking
	}
	return awaited
}

// busyChecking is why a server that is there has not told yet.
const busyChecking = "it is at it"

// whyUnchecked is why a server has not checked what it must, and what helps.
func (s *Server) whyUnchecked(id string) string {
	if s.cfg.Membership == nil || id == s.cfg.ID {
		return busyChecking
	}
	m, known := s.member(id)
	switch {
	case !known:
		return "the pool does not know it, so it is down: start it, or remove it for good: cede operator raft remove " + id
	case m.Status == MemberAlive:
		return "it is there, and has not told yet: it may be busy or lag behind; its log says more"
	}
	return fmt.Sprintf("it is %s since %s: start it, or remove it for good: cede operator raft remove %s",
		gone[m.Status], m.Since.UTC().Format(time.RFC3339), id)
}

// gone is what became of a member that is not there.
var gone = map[MemberStatus]string{MemberFailed: "down", MemberLeft: "gone"}

// isTold is whether the log has what this server found last when it tried the
// version.
func (p *policies) isTold(v *model.PolicyVersion) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, tried := p.told[v.ID]
	return tried && sameCheck(v.Checks[p.id], found)
}
