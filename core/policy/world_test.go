package policy_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// factory is a module that counts its instances, whose answers it makes fail
// at will.
type factory struct {
	name           string
	settings       []sdk.Setting
	fails, refuses error
	dies           bool
	started, open  atomic.Int64
}

func (f *factory) Digest() string          { return "sha256:" + f.name }
func (f *factory) Settings() []sdk.Setting { return f.settings }

func (f *factory) Start(c *sdk.Config) (policy.Instance, error) {
	if f.refuses != nil {
		return nil, f.refuses
	}
	f.started.Add(1)
	f.open.Add(1)
	return &product{factory: f}, nil
}

type product struct {
	*factory
	dead, closed bool
}

func (p *product) Info() sdk.Info      { return sdk.Info{Name: p.name, Delta: 10} }
func (p *product) Hooks() policy.Hooks { return policy.HookDelta }
func (p *product) Fuel() uint64        { return 7 }
func (p *product) Alive() bool         { return !p.dead }

func (p *product) Close() {
	if p.closed {
		panic("closed twice")
	}
	p.closed = true
	p.open.Add(-1)
}

func (p *product) PriorityDelta(*sdk.Candidates, []int32, *sdk.Recheck) error {
	if p.closed {
		panic("called after it was closed")
	}
	p.dead = p.dies
	return p.fails
}

func (p *product) ScoreVictims(*sdk.Candidates, *sdk.VictimScores) error {
	return errors.ErrUnsupported
}

func (p *product) SelectVictims(*sdk.Candidates, *sdk.Selection) error { return errors.ErrUnsupported }

func (p *product) ScoreOptions(*sdk.Options, *sdk.OptionScores) error { return errors.ErrUnsupported }

func (p *product) PreemptBindings(*sdk.Candidates, *sdk.BindingVictims) error {
	return errors.ErrUnsupported
}

func version(t testing.TB, f *factory, change ...func(*policy.Source)) *policy.Version {
	t.Helper()
	src := policy.Source{Name: f.name, Module: f}
	for _, c := range change {
		c(&src)
	}
	v, err := policy.NewVersion(src)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func set(t testing.TB, versions ...*policy.Version) *policy.Set {
	t.Helper()
	s, err := policy.NewSet(versions...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func acquire(t testing.TB, v *policy.Version) policy.Instance {
	t.Helper()
	in, err := v.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	return in
}
