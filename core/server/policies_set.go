package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

var _ scheduler.Policies = (*policies)(nil)

// Pin is the set that the newest state wants in force, held until its Unpin.
func (p *policies) Pin() *policy.Set {
	p.follow()
	return p.active.Pin()
}

// follow puts in force what the newest state says.
func (p *policies) follow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if states := p.store.Snapshot().PolicyStates(); !p.closed && !follows(p.inForce, states) {
		p.swap(states)
	}
}

// follows is whether what is in force is what the state wants.
func follows(list []inForce, states []*model.PolicyState) bool {
	for _, s := range states {
		if s.Active == "" {
			continue
		}
		if len(list) == 0 || list[0].name != s.Name || list[0].version != s.Active {
			return false
		}
		list = list[1:]
	}
	return len(list) == 0
}

// swap makes the set that the states want and puts it in force. p.mu is held.
func (p *policies) swap(states []*model.PolicyState) {
	before := p.inForce
	versions := maps.Clone(p.builtins)
	p.inForce, p.lacks = nil, nil
	for _, s := range states {
		if s.Active == "" {
			continue
		}
		now := inForce{s.Name, s.Active}
		p.inForce = append(p.inForce, now)
		v := p.opened[s.Active]
		if v == nil {
			p.lacks = append(p.lacks, now)
			v = absent(now)
		} else if !slices.Contains(before, now) {
			v.Breaker.Reset() // what it did when it was in force before is forgiven
		}
		versions[s.Name] = v
	}
	set, err := policy.NewSetWithFallback(p.fallback, slices.Collect(maps.Values(versions))...)
	if err != nil {
		panic("server: " + err.Error()) // names of a map are unique
	}
	p.active.Swap(set)
	for _, hear := range p.hears {
		for name := range versions {
			hear(name)
		}
	}
	p.shadows.inForce(versions, p.fallback)
	p.gate()
	for _, f := range p.inForce {
		if !slices.Contains(before, f) {
			p.logger.Info("policy in force", "policy", f.name, "version", f.version, "ready", p.opened[f.version] != nil)
		}
	}
}

// named has somebody hear of every name that a policy is in force under, now and later.
func (p *policies) named(hear func(name string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hears = append(p.hears, hear)
	set := p.active.Pin() // not Pin, which takes the lock
	defer set.Unpin()
	for _, v := range set.Versions() {
		hear(v.Name)
	}
}

// gate holds workers up while something is lacking, and lets them go on when
// nothing is. p.mu is held.
func (p *policies) gate() {
	open := true
	select {
	case <-p.complete:
	default:
		open = false
	}
	switch {
	case len(p.lacks) > 0 && open:
		p.complete = make(chan struct{})
	case len(p.lacks) == 0 && !open:
		close(p.complete)
	}
}

// wait returns when this server has every version that is active: until then its
// workers must not decide anything.
func (p *policies) wait(ctx context.Context) error {
	for {
		p.follow()
		p.mu.Lock()
		complete, lacking := p.complete, len(p.lacks) > 0
		p.mu.Unlock()
		if !lacking {
			return nil
		}
		select {
		case <-complete:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// check is whether the server has every version that is active.
func (p *policies) check() Check {
	p.follow()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := Check{Name: "policies", OK: len(p.lacks) == 0}
	var words []string
	for _, l := range p.lacks {
		why := p.failed[l.version]
		if why == "" {
			why = "it is being opened"
		}
		words = append(words, fmt.Sprintf("%s %s is active and not ready here: %s", l.name, shortVersion(l.version), why))
	}
	c.Detail = strings.Join(words, "; ")
	return c
}

// errAbsent is the fault of a version that is active and that this server does
// not have.
var errAbsent = errors.New("this server does not have the version that is active; its workers wait for it")

// absent stands for a version that is active and not here. Workers wait, so it is
// asked only by an evaluation that was begun before; it evicts nobody.
func absent(f inForce) *policy.Version {
	v, err := policy.NewVersion(policy.Source{
		Name:   f.name,
		Module: policy.Native(f.version, func() sdk.Policy { return absentPolicy{f.name} }),
	})
	if err != nil {
		panic("server: " + err.Error()) // nothing in it can fail
	}
	return v
}

type absentPolicy struct{ name string }

var (
	_ sdk.DeltaHook    = absentPolicy{}
	_ sdk.VictimScorer = absentPolicy{}
)

func (a absentPolicy) Info() sdk.Info { return sdk.Info{Name: a.name} }

func (absentPolicy) PriorityDelta(*sdk.Candidates, []int32, *sdk.Recheck) error { return absentFault() }

func (absentPolicy) ScoreVictims(*sdk.Candidates, *sdk.VictimScores) error { return absentFault() }

func absentFault() error { return &policy.Error{Fault: policy.FaultHost, Err: errAbsent} }

// shortVersion is how versions are shown: the first digits of the hash.
func shortVersion(id string) string {
	const digits = 12
	hash := strings.TrimPrefix(id, "sha256:")
	return hash[:min(len(hash), digits)]
}
