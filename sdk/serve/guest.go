package serve

import (
	"errors"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
)

// Version is the policy's own version, shown to operators. Set it in init or with the
// linker.
var Version string

// registered returns the policy that this program serves.
var registered func() policy.Policy

// Register sets the policy that this program serves. Call it once, in init. It panics
// if it is called twice.
func Register(start func() policy.Policy) {
	if registered != nil {
		panic("serve: Register was called twice")
	}
	registered = start
}

// guest calls a policy with the input of a frame and writes the result into the frame.
type guest struct {
	policy     policy.Policy
	decoder    abi.Decoder
	selection  policy.Selection
	victims    policy.VictimScores
	options    policy.OptionScores
	bindings   policy.BindingVictims
	configured bool
}

func newGuest() *guest {
	if registered == nil {
		panic("serve: no policy is registered; call serve.Register in an init function")
	}
	return &guest{policy: registered()}
}

// call processes a frame in place.
func (g *guest) call(op abi.Op, frame []byte) abi.Status {
	d := &g.decoder
	encoded, err := d.Load(frame)
	if err != nil || encoded != op {
		return abi.BadFrame
	}
	err, supported := g.dispatch(op)
	switch {
	case !supported:
		return abi.UnsupportedOp
	case errors.As(err, new(abi.FrameError)):
		d.PutError(err.Error())
		return abi.BadFrame
	case err != nil:
		d.PutError(err.Error())
		return abi.PolicyError
	}
	return abi.OK
}

func (g *guest) dispatch(op abi.Op) (err error, supported bool) {
	switch op {
	case abi.OpDescribe:
		return g.describe(), true
	case abi.OpConfigure:
		return g.configure()
	case abi.OpPriorityDelta:
		if p, ok := g.policy.(policy.DeltaHook); ok {
			return g.priorityDelta(p), true
		}
	case abi.OpScoreVictims:
		if p, ok := g.policy.(policy.VictimScorer); ok {
			return g.scoreVictims(p), true
		}
	case abi.OpSelectVictims:
		if p, ok := g.policy.(policy.VictimSelector); ok {
			return g.selectVictims(p), true
		}
	case abi.OpScoreOptions:
		if p, ok := g.policy.(policy.OptionScorer); ok {
			return g.scoreOptions(p), true
		}
	case abi.OpPreemptBindings:
		if p, ok := g.policy.(policy.BindingPreemptor); ok {
			return g.preemptBindings(p), true
		}
	}
	return nil, false
}

func (g *guest) priorityDelta(p policy.DeltaHook) error {
	in, err := g.decoder.Candidates()
	if err != nil {
		return err
	}
	gap, err := g.decoder.Gap()
	if err != nil {
		return err
	}
	var recheck policy.Recheck
	if err := p.PriorityDelta(in, gap, &recheck); err != nil {
		return err
	}
	return g.decoder.PutRecheck(&recheck)
}

func (g *guest) scoreVictims(p policy.VictimScorer) error {
	in, err := g.decoder.Candidates()
	if err != nil {
		return err
	}
	if err := g.decoder.VictimScores(&g.victims); err != nil {
		return err
	}
	if err := p.ScoreVictims(in, &g.victims); err != nil {
		return err
	}
	return g.decoder.PutRecheck(&g.victims.Recheck)
}

func (g *guest) selectVictims(p policy.VictimSelector) error {
	in, err := g.decoder.Candidates()
	if err != nil {
		return err
	}
	g.selection.Reset()
	if err := p.SelectVictims(in, &g.selection); err != nil {
		return err
	}
	if err := g.decoder.PutSelection(&g.selection); err != nil {
		return err
	}
	return g.decoder.PutRecheck(&g.selection.Recheck)
}

func (g *guest) scoreOptions(p policy.OptionScorer) error {
	in, err := g.decoder.Options()
	if err != nil {
		return err
	}
	if err := g.decoder.OptionScores(&g.options); err != nil {
		return err
	}
	if err := p.ScoreOptions(in, &g.options); err != nil {
		return err
	}
	return g.decoder.PutRecheck(&g.options.Recheck)
}

func (g *guest) preemptBindings(p policy.BindingPreemptor) error {
	in, err := g.decoder.Candidates()
	if err != nil {
		return err
	}
	g.bindings.Reset()
	if err := g.decoder.BindingTiers(&g.bindings); err != nil {
		return err
	}
	if err := p.PreemptBindings(in, &g.bindings); err != nil {
		return err
	}
	if err := g.decoder.PutSelection(&g.bindings.Selection); err != nil {
		return err
	}
	return g.decoder.PutRecheck(&g.bindings.Recheck)
}
