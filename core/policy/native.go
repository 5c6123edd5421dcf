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
}

var _ Instance = (*native)(nil)

// Native configures p and makes it an Instance. config is a JSON object.
func Native(p sdk.Policy, config []byte) (Instance, error) {
	switch c := p.(type) {
	case sdk.Configurable:
		if err := c.Configure(config); err != nil {
			return nil, fmt.Errorf("policy %s: configuration: %w", p.Info().Name, err)
		}
	default:
		if string(config) != "{}" {
			return nil, fmt.Errorf("policy %s takes no configuration; remove %s", p.Info().Name, config)
		}
	}
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
	return n, nil
}

func (n *native) Info() sdk.Info { return n.info }
func (n *native) Hooks() Hooks   { return n.hooks }

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

// caught turns a panic of the policy into its fault: a guest must never take
// the scheduler down, native guests included.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v", r)
	}
}
