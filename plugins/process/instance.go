package process

import (
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// instance is a policy in a process of its own.
type instance struct {
	m     *Module
	p     *process
	epoch int // of the module's restarts, when it was started

	encoder abi.Encoder
	buffer  []byte
	info    sdk.Info
	hooks   policy.Hooks
}

var _ policy.Instance = (*instance)(nil)

// Info is what the policy says of itself.
func (i *instance) Info() sdk.Info { return i.info }

// Hooks is what the policy implements.
func (i *instance) Hooks() policy.Hooks { return i.hooks }

// Fuel is 0: nobody counts it.
func (i *instance) Fuel() uint64 { return 0 }

// Alive is whether the process runs.
func (i *instance) Alive() bool { return i.p.runner.isAlive() }

// Close ends the process and returns when nothing of it is left.
func (i *instance) Close() { i.p.close() }

// request puts the request that the encoder has laid out to the process and returns
// the frame with its answer.
func (i *instance) request(op abi.Op) ([]byte, error) {
	i.buffer = abi.Grow(i.buffer, i.encoder.Size())
	i.encoder.Write(i.buffer)
	answer, bad := i.p.call(op, i.buffer, i.m.limits.Time)
	if bad != nil {
		return nil, bad
	}
	if op == abi.OpDescribe {
		if bad := checkVersion(answer.GetVersion()); bad != nil {
			return nil, bad
		}
	}
	if err := i.encoder.PutTail(i.buffer, answer.GetEntries(), answer.GetFrame(), int(answer.GetFrom())); err != nil {
		i.p.close()
		return nil, fault(policy.FaultABI, hintRebuild, "it answered a frame of %d bytes with %d from %d on, and %d bytes of entries: %w",
			len(i.buffer), len(answer.GetFrame()), answer.GetFrom(), len(answer.GetEntries()), err)
	}
	return i.buffer, i.statusError(op, abi.Status(answer.GetStatus()), i.buffer)
}

// statusError makes an error of a status.
func (i *instance) statusError(op abi.Op, s abi.Status, frame []byte) error {
	switch s {
	case abi.OK:
		return nil
	case abi.PolicyError:
		words := clean(i.encoder.ErrorText(frame))
		if words == "" {
			words = "the policy failed and did not say why"
		}
		return errors.New(words)
	case abi.BadFrame:
		return fault(policy.FaultABI, hintRebuild, "it cannot read the frame")
	case abi.UnsupportedOp:
		return fault(policy.FaultABI, hintRebuild, "it says that it has %s, and then that it has not", abi.Names[op])
	case abi.OutOfMemory:
		i.p.close()
		return fault(policy.FaultLimit, hintMemory, "it ran out of memory")
	}
	i.p.close()
	return fault(policy.FaultABI, hintRebuild, "it answered with the status %d, which is none", s)
}

// candidates asks a hook about candidates.
func (i *instance) candidates(op abi.Op, in *sdk.Candidates) ([]byte, error) {
	if !i.has(op) {
		return nil, errNoHook(op)
	}
	columns := i.info.Columns
	if op == abi.OpPreemptBindings {
		columns = sdk.BindingColumns
	}
	i.encoder.Candidates(op, in, columns)
	return i.request(op)
}

func (i *instance) has(op abi.Op) bool { return i.hooks.Has(hookOf(op)) }

// hookOf is the hook that an operation asks.
func hookOf(op abi.Op) policy.Hooks {
	return policy.Hooks(1) << (op - abi.OpPriorityDelta)
}

func errNoHook(op abi.Op) error { return fmt.Errorf("the policy has no %s", abi.Names[op]) }

// PriorityDelta asks which candidates may go.
func (i *instance) PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error {
	frame, err := i.candidates(abi.OpPriorityDelta, in)
	if err == nil {
		i.encoder.Gap(frame, gap, recheck)
	}
	return i.record(err)
}

// ScoreVictims asks who goes first.
func (i *instance) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	frame, err := i.candidates(abi.OpScoreVictims, in)
	if err == nil {
		i.encoder.VictimScores(frame, out)
	}
	return i.record(err)
}

// SelectVictims asks who goes.
func (i *instance) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	frame, err := i.candidates(abi.OpSelectVictims, in)
	if err == nil {
		if bad := i.encoder.Selection(frame, out); bad != nil {
			i.p.close()
			err = &policy.Error{Fault: policy.FaultAnswer, Err: bad}
		}
	}
	return i.record(err)
}

// ScoreOptions asks which option is best.
func (i *instance) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error {
	if !i.has(abi.OpScoreOptions) {
		return errNoHook(abi.OpScoreOptions)
	}
	i.encoder.Options(in, i.info.Columns)
	frame, err := i.request(abi.OpScoreOptions)
	if err == nil {
		i.encoder.OptionScores(frame, out)
	}
	return i.record(err)
}

// PreemptBindings asks which bindings leave which member cluster.
func (i *instance) PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error {
	frame, err := i.candidates(abi.OpPreemptBindings, in)
	if err == nil {
		if bad := i.encoder.BindingVictims(frame, out); bad != nil {
			i.p.close()
			err = &policy.Error{Fault: policy.FaultAnswer, Err: bad}
		}
	}
	return i.record(err)
}

// record counts what came of a call for restarts to come.
func (i *instance) record(err error) error {
	i.m.recordOutcome(i, err)
	return err
}

// clean makes a guest's words fit for an error.
func clean(text string) string { return guestlog.Clean(text, maxOutputText) }
