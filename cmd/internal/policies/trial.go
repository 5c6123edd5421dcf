package policies

import (
	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// Usage is the maximum resource usage of a policy's calls.
type Usage struct {
	Calls int
	// Fuel is the consumption of the call closest to its limit; 0 if fuel is not
	// metered.
	Fuel, Allowed uint64
	Memory        int64 // bytes of an instance; 0 if the host does not count memory
}

// Share returns the fraction of its fuel limit that this call used.
func (u Usage) Share() float64 {
	if u.Allowed == 0 {
		return 0
	}
	return float64(u.Fuel) / float64(u.Allowed)
}

// Trial runs test cases against a policy and records the resources that they use. It
// is not safe for concurrent use.
type Trial struct {
	policy *Policy
	guests []*meteredPolicy
	Usage  Usage
}

// NewTrial returns a trial. The caller must close it.
func NewTrial(p *Policy) *Trial {
	p.AddRef()
	return &Trial{policy: p}
}

// Close releases the resources of the trial.
func (t *Trial) Close() {
	for _, g := range t.guests {
		g.release()
	}
	t.policy.ReleaseRef()
}

// Subject returns an instance for tests.
func (t *Trial) Subject() (*policytest.Subject, error) {
	g := &meteredPolicy{trial: t}
	if err := g.acquire(); err != nil {
		return nil, err
	}
	t.guests = append(t.guests, g)
	p := t.policy
	s := &policytest.Subject{Info: p.Info(), KeepRedundant: p.KeepsRedundant()}
	hooks := p.Hooks()
	if hooks.Has(policy.HookDelta) {
		s.Delta = g
	}
	if hooks.Has(policy.HookScoreVictims) {
		s.Scorer = g
	}
	if hooks.Has(policy.HookSelectVictims) {
		s.Selector = g
	}
	if hooks.Has(policy.HookScoreOptions) {
		s.Options = g
	}
	if hooks.Has(policy.HookPreemptBindings) {
		s.Bindings = g
	}
	return s, nil
}

// meteredPolicy is an instance that is replaced when it dies, so that a test continues
// after a failure to find a smaller case.
type meteredPolicy struct {
	trial    *Trial
	instance policy.Instance
}

var (
	_ sdk.DeltaHook      = (*meteredPolicy)(nil)
	_ sdk.VictimScorer   = (*meteredPolicy)(nil)
	_ sdk.VictimSelector = (*meteredPolicy)(nil)
	_ sdk.OptionScorer   = (*meteredPolicy)(nil)

	_ sdk.BindingPreemptor = (*meteredPolicy)(nil)
)

func (g *meteredPolicy) acquire() (err error) {
	if g.instance != nil && g.instance.Alive() {
		return nil
	}
	g.release()
	g.instance, err = g.trial.policy.Acquire()
	return err
}

func (g *meteredPolicy) release() {
	if g.instance != nil {
		g.trial.policy.Release(g.instance)
		g.instance = nil
	}
}

// call calls a hook; size is the number of rows and options.
func (g *meteredPolicy) call(hook string, size int, call func() error) error {
	if err := g.acquire(); err != nil {
		return err
	}
	err := call()
	g.trial.count(g.instance, size)
	return g.trial.policy.RecordCall(hook, err)
}

// count records the resource usage of a call.
func (t *Trial) count(in policy.Instance, size int) {
	u := &t.Usage
	u.Calls++
	if used := in.Fuel(); used > 0 {
		allowed := t.allowance(in, size)
		if u.Allowed == 0 || float64(used)/float64(allowed) > u.Share() {
			u.Fuel, u.Allowed = used, allowed
		}
	}
	if m, ok := in.(interface{ Memory() int64 }); ok {
		u.Memory = max(u.Memory, m.Memory())
	}
}

// allowance returns the fuel limit of the last call of an instance, with that many rows and
// options. The parts of a composition have limits of their own.
func (t *Trial) allowance(in policy.Instance, size int) uint64 {
	if c, ok := in.(interface{ CallFuel(rows int) uint64 }); ok {
		return c.CallFuel(size)
	}
	return t.policy.Limits.CallFuel(size)
}

func (g *meteredPolicy) PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error {
	return g.call("PriorityDelta", in.Len()+in.Rows.Len(), func() error { return g.instance.PriorityDelta(in, gap, recheck) })
}

func (g *meteredPolicy) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	return g.call("ScoreVictims", in.Len()+in.Rows.Len(), func() error { return g.instance.ScoreVictims(in, out) })
}

func (g *meteredPolicy) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	return g.call("SelectVictims", in.Len()+in.Rows.Len(), func() error { return g.instance.SelectVictims(in, out) })
}

func (g *meteredPolicy) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error {
	return g.call("ScoreOptions", in.Len()+in.Victims.Len(), func() error { return g.instance.ScoreOptions(in, out) })
}

func (g *meteredPolicy) PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error {
	return g.call("PreemptBindings", in.Len()+in.Rows.Len(), func() error { return g.instance.PreemptBindings(in, out) })
}
