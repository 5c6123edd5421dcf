package process

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// An instance is a policy in its own process.
type instance struct {
	m     *Module
	p     *process
	epoch int // restart epoch of the module at its start

	encoder abi.Encoder
	buffer  []byte
	info    sdk.Info
	hooks   policy.Hooks
}

var _ policy.Instance = (*instance)(nil)

// Info returns the description of the policy.
func (i *instance) Info() sdk.Info { return i.info }

// Hooks returns the hooks that the policy implements.
func (i *instance) Hooks() policy.Hooks { return i.hooks }

// Fuel returns 0: processes do not count fuel.
func (i *instance) Fuel() uint64 { return 0 }

// Alive reports whether the process runs.
func (i *instance) Alive() bool { return i.p.runner.isAlive() }

// Close ends the process and returns after its cleanup.
func (i *instance) Close() { i.p.close() }

// request sends the encoded request to the process and returns the frame with its answer.
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
		return nil, fault(policy.FaultABI, hintRebuild, "frame of %d bytes was answered with %d bytes at %d, and %d bytes of entries: %w",
			len(i.buffer), len(answer.GetFrame()), answer.GetFrom(), len(answer.GetEntries()), err)
	}
	return i.buffer, i.statusError(op, abi.Status(answer.GetStatus()), i.buffer)
}

// statusError converts a status to an error.
func (i *instance) statusError(op abi.Op, s abi.Status, frame []byte) error {
	switch s {
	case abi.OK:
		return nil
	case abi.PolicyError:
		words := clean(i.encoder.ErrorText(frame))
		words = cmp.Or(words, "the policy failed without an error text")
		return errors.New(words)
	case abi.BadFrame:
		return fault(policy.FaultABI, hintRebuild, "cannot decode the frame")
	case abi.UnsupportedOp:
		return fault(policy.FaultABI, hintRebuild, "declares %s but does not implement it", abi.Names[op])
	case abi.OutOfMemory:
		i.p.close()
		return fault(policy.FaultLimit, hintMemory, "out of memory")
	}
	i.p.close()
	return fault(policy.FaultABI, hintRebuild, "unknown status %d", s)
}

// candidates calls a hook with candidates.
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

// hookOf returns the hook of an operation.
func hookOf(op abi.Op) policy.Hooks {
	return policy.Hooks(1) << (op - abi.OpPriorityDelta)
}

func errNoHook(op abi.Op) error { return fmt.Errorf("the policy does not implement %s", abi.Names[op]) }

// PriorityDelta calls the hook that restricts candidates by priority.
func (i *instance) PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error {
	frame, err := i.candidates(abi.OpPriorityDelta, in)
	if err == nil {
		i.encoder.Gap(frame, gap, recheck)
	}
	return i.record(err)
}

// ScoreVictims calls the hook that orders victims.
func (i *instance) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	frame, err := i.candidates(abi.OpScoreVictims, in)
	if err == nil {
		i.encoder.VictimScores(frame, out)
	}
	return i.record(err)
}

// SelectVictims calls the hook that selects victims.
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

// ScoreOptions calls the hook that compares options.
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

// PreemptBindings calls the hook that selects bindings to evict from member clusters.
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

// record records the outcome of a call for later restarts.
func (i *instance) record(err error) error {
	i.m.recordOutcome(i, err)
	return err
}

// clean returns output of a guest in a form suitable for an error.
func clean(text string) string { return guestlog.Clean(text, maxOutputText) }
