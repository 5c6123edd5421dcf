package policy

import (
	"errors"
	"fmt"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

var errNoHook = errors.New("the policy does not implement this hook")

// native runs a policy that is linked into the binary.
type native struct {
	sdk.Policy
	info     sdk.Info
	hooks    Hooks
	delta    sdk.DeltaHook
	scorer   sdk.VictimScorer
	selector sdk.VictimSelector
	options  sdk.OptionScorer
	bindings sdk.BindingPreemptor
}

var _ Instance = (*native)(nil)

// Native returns a Module of code that is linked into the binary.
func Native(digest string, start func() sdk.Policy) Module {
	return &nativeModule{digest: digest, start: start}
}

type nativeModule struct {
	digest string
	start  func() sdk.Policy
}

func (m *nativeModule) Digest() string { return m.digest }

func (m *nativeModule) Settings() []sdk.Setting {
	if c, ok := m.start().(sdk.Configurable); ok {
		return c.Settings()
	}
	return nil
}

func (m *nativeModule) Start(config *sdk.Config) (in Instance, err error) {
	defer caught(&err)
	p := m.start()
	if c, ok := p.(sdk.Configurable); ok {
		if err := c.Configure(config); err != nil {
			return nil, err
		}
	}
	return newNative(p), nil
}

func newNative(p sdk.Policy) *native {
	n := &native{Policy: p, info: p.Info()}
	var ok bool
	if n.delta, ok = p.(sdk.DeltaHook); ok {
		n.hooks |= HookDelta
	}
	if n.scorer, ok = p.(sdk.VictimScorer); ok {
		n.hooks |= HookScoreVictims
	}
	if n.selector, ok = p.(sdk.VictimSelector); ok {
		n.hooks |= HookSelectVictims
	}
	if n.options, ok = p.(sdk.OptionScorer); ok {
		n.hooks |= HookScoreOptions
	}
	if n.bindings, ok = p.(sdk.BindingPreemptor); ok {
		n.hooks |= HookPreemptBindings
	}
	return n
}

func (n *native) Info() sdk.Info { return n.info }
func (n *native) Hooks() Hooks   { return n.hooks }
func (n *native) Fuel() uint64   { return 0 }
func (n *native) Alive() bool    { return true }
func (n *native) Close()         {}

func (n *native) PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) (err error) {
	if n.delta == nil {
		return errNoHook
	}
	defer caught(&err)
	return n.delta.PriorityDelta(in, gap, recheck)
}

func (n *native) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) (err error) {
	if n.scorer == nil {
		return errNoHook
	}
	defer caught(&err)
	return n.scorer.ScoreVictims(in, out)
}

func (n *native) SelectVictims(in *sdk.Candidates, out *sdk.Selection) (err error) {
	if n.selector == nil {
		return errNoHook
	}
	defer caught(&err)
	return n.selector.SelectVictims(in, out)
}

func (n *native) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) (err error) {
	if n.options == nil {
		return errNoHook
	}
	defer caught(&err)
	return n.options.ScoreOptions(in, out)
}

func (n *native) PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) (err error) {
	if n.bindings == nil {
		return errNoHook
	}
	defer caught(&err)
	return n.bindings.PreemptBindings(in, out)
}

// caught turns a panic of the policy into its fault: a policy must never crash the
// scheduler, native policies included.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v", r)
	}
}
