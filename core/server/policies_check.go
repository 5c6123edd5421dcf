package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
)

// policyRetry is how long run waits before it tries again what the log did not
// take.
const policyRetry = time.Second

// step does what the state asks for and returns when it wants to be called again
// by time; 0: not by time.
func (p *policies) step(ctx context.Context) (again time.Duration) {
	snap := p.store.Snapshot()
	states := snap.PolicyStates()
	versions := urgentFirst(snap.PolicyVersions(), states)
	p.follow()
	p.forget(versions)
	p.followShadows(states)
	for _, v := range versions {
		p.open(ctx, v)
	}
	p.followShadows(states) // what a shadow run waited for may be there now
	for _, v := range versions {
		if err := p.tell(ctx, v); err != nil {
			again = policyRetry
		}
	}
	if due := p.endTrials(ctx, states); due > 0 && (again == 0 || due < again) {
		again = due
	}
	p.endStep()
	return again
}

// stepped is closed at the end of the step that is under way, or of the next.
func (p *policies) stepped() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.steps
}

// endStep wakes who waits for a step.
func (p *policies) endStep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.steps)
	p.steps = make(chan struct{})
}

// urgentFirst lists versions with those first that are active, which workers may
// be waiting for.
func urgentFirst(versions []*model.PolicyVersion, states []*model.PolicyState) []*model.PolicyVersion {
	isActive := func(v *model.PolicyVersion) bool {
		return slices.ContainsFunc(states, func(s *model.PolicyState) bool { return s.Active == v.ID })
	}
	var first, rest []*model.PolicyVersion
	for _, v := range versions {
		if isActive(v) {
			first = append(first, v)
		} else {
			rest = append(rest, v)
		}
	}
	return append(first, rest...)
}

// forget drops versions that are no longer in the state.
func (p *policies) forget(versions []*model.PolicyVersion) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.known() {
		if slices.ContainsFunc(versions, func(v *model.PolicyVersion) bool { return v.ID == id && p.isOf(v) }) {
			continue
		}
		if v := p.opened[id]; v != nil && !p.closed {
			v.ReleaseRef()
		}
		delete(p.opened, id)
		delete(p.failed, id)
		delete(p.told, id)
		delete(p.made, id)
		delete(p.tests, id)
	}
}

// isOf is whether what was tried is the version as the state has it now: it may
// have been loaded again with other grants. p.mu is held.
func (p *policies) isOf(v *model.PolicyVersion) bool {
	made := p.made[v.ID]
	return made == nil || madeAlike(made, v)
}

// known is the versions that were looked at. p.mu is held.
func (p *policies) known() map[string]bool {
	ids := map[string]bool{}
	for id := range p.opened {
		ids[id] = true
	}
	for id := range p.failed {
		ids[id] = true
	}
	return ids
}

// open makes a version ready, unless that was tried already.
func (p *policies) open(ctx context.Context, v *model.PolicyVersion) {
	p.mu.Lock()
	tried := p.opened[v.ID] != nil || p.failed[v.ID] != ""
	p.mu.Unlock()
	if tried || ctx.Err() != nil {
		return
	}
	opened, err := p.openFrom(ctx, v)
	if ctx.Err() != nil {
		if opened != nil {
			opened.AddRef()
			opened.ReleaseRef()
		}
		return // the server stops; that says nothing of the version
	}
	p.keep(v, opened, err)
}

// keep notes what came of opening a version.
func (p *policies) keep(v *model.PolicyVersion, opened *policy.Version, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[v.ID] = v
	check := model.PolicyCheck{OK: err == nil, Time: p.clock.Now().UnixNano()}
	if err != nil {
		check.Error = err.Error()
		p.failed[v.ID] = check.Error
		p.logger.Warn("policy refused", "policy", v.Name, "version", v.ID, "digest", v.Digest, "err", err)
	} else {
		opened.AddRef()
		p.opened[v.ID] = opened
		p.tests[v.ID], _ = opened.Stats()
		p.logger.Info("policy ready", "policy", v.Name, "version", v.ID, "digest", v.Digest)
		if states := p.store.Snapshot().PolicyStates(); slices.ContainsFunc(p.lacks, func(f inForce) bool { return f.version == v.ID }) {
			p.swap(states)
		}
	}
	p.told[v.ID] = check
}

// openFrom opens a version from the module that this server keeps.
func (p *policies) openFrom(ctx context.Context, v *model.PolicyVersion) (*policy.Version, error) {
	var module []byte
	if v.Kind == model.PolicyWasm {
		var err error
		if module, err = p.module(v); err != nil {
			return nil, err
		}
	}
	opened, err := p.host.Open(ctx, v, module)
	if err != nil {
		return nil, err
	}
	if opened.ID != v.ID {
		opened.AddRef()
		opened.ReleaseRef()
		return nil, fmt.Errorf("it makes another version here, %s: the servers do not run the same release", shortVersion(opened.ID))
	}
	return opened, nil
}

// module is the module of a version, checked.
func (p *policies) module(v *model.PolicyVersion) ([]byte, error) {
	if p.modules == nil {
		return nil, errors.New("this server keeps no modules")
	}
	module, err := p.modules.Get(v.Digest)
	if err != nil {
		return nil, fmt.Errorf("the module is not on this server: %w", err)
	}
	sum := sha256.Sum256(module)
	if digest := "sha256:" + hex.EncodeToString(sum[:]); digest != v.Digest {
		return nil, fmt.Errorf("the module on this server is damaged: it has %s", digest)
	}
	return module, nil
}

// tell writes this server's check of a version into the log, where that does not
// say so already.
func (p *policies) tell(ctx context.Context, v *model.PolicyVersion) error {
	p.mu.Lock()
	check, tried := p.told[v.ID]
	p.mu.Unlock()
	if was, there := v.Checks[p.id]; !tried || there && sameCheck(was, check) {
		return nil
	}
	_, err := p.apply(ctx, &replication.CheckPolicy{Version: v.ID, Server: p.id, Check: check})
	if refusal, ok := errors.AsType[*replication.Refusal](err); ok {
		p.logger.DebugContext(ctx, "check of a policy not recorded", "version", v.ID, "reason", refusal.Message)
		return nil // it was unloaded meanwhile
	}
	return err
}

// sameCheck is whether two checks found the same; when they did is of no account.
func sameCheck(a, b model.PolicyCheck) bool { return a.OK == b.OK && a.Error == b.Error }

// apply writes a command into the log. A refusal is an error of it.
func (p *policies) apply(ctx context.Context, c replication.Command) (*replication.Result, error) {
	result, err := p.log.Apply(ctx, &replication.Entry{Time: p.clock.Now().UnixNano(), Command: c})
	if err != nil {
		return nil, err
	}
	if result.Err != nil {
		return nil, result.Err
	}
	return result, nil
}

// retry makes this server try a version again that it refused.
func (p *policies) retry(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v := p.opened[id]; v != nil && !p.closed {
		v.ReleaseRef()
	}
	delete(p.opened, id)
	delete(p.failed, id)
	delete(p.told, id)
	p.look()
}
