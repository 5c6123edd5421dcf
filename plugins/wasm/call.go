package wasm

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// minStartFuel is the minimum fuel of each start step: start function, initializer,
// allocation, description and configuration. A Go runtime requires a million ticks.
const minStartFuel = 20_000_000

// startFuel returns the fuel of one start step.
func (m *Module) startFuel() int64 { return int64(max(minStartFuel, m.limits.Fuel)) }

// run calls a function with the arguments on the stack.
func (i *instance) run(f api.Function, now, fuel int64) *policy.Error {
	switch {
	case i.closed:
		return fault(policy.FaultHost, "", "instance was closed")
	case i.dead:
		return fault(policy.FaultHost, "", "instance ended with an earlier fault")
	}
	i.prepare(f, now, fuel)
	err := f.CallWithStack(i.ctx, i.stack[:])
	i.used = fuel - max(i.fuelLeft(), 0)
	if stackSize(f) > maxIdleStack {
		i.spoiled = true
	}
	if err == nil {
		return nil
	}
	i.dead = true
	return i.trapError(err, fuel)
}

// request sends the encoded request to the guest and returns the frame with its answer. The
// frame is valid until the next call.
func (i *instance) request(op abi.Op, now, fuel int64) ([]byte, error) {
	n := i.encoder.Size()
	if err := i.ensureFrame(n, now); err != nil {
		return nil, err
	}
	frame, ok := i.view(i.frame, uint64(n))
	if !ok {
		return nil, fault(policy.FaultHost, "", "memory of the guest has shrunk") // impossible by the specification
	}
	i.encoder.Write(frame)
	i.stack[0], i.stack[1] = api.EncodeU32(i.frame), api.EncodeU32(uint32(n))
	if err := i.run(i.ops[op], now, fuel); err != nil {
		return nil, err
	}
	frame, _ = i.view(i.frame, uint64(n)) // the memory may have moved when it grew
	return frame, i.statusError(op, abi.Status(api.DecodeI32(i.stack[0])), frame)
}

// statusError converts a status to an error.
func (i *instance) statusError(op abi.Op, s abi.Status, frame []byte) error {
	switch s {
	case abi.OK:
		return nil
	case abi.PolicyError:
		words := guestlog.Clean(i.encoder.ErrorText(frame), maxOutputText)
		words = cmp.Or(words, "the policy failed without an error text")
		return errors.New(words)
	case abi.BadFrame:
		return fault(policy.FaultABI, hintRebuild, "cannot decode the frame")
	case abi.UnsupportedOp:
		return fault(policy.FaultABI, hintRebuild, "declares %s but does not implement it", abi.Exports[op])
	}
	i.dead = true
	if s == abi.OutOfMemory {
		return fault(policy.FaultLimit, hintMemory, "out of memory, limit is %s", formatBytes(i.m.limits.Memory))
	}
	return fault(policy.FaultABI, hintRebuild, "%s returned unknown status %d", abi.Exports[op], s)
}

// ensureFrame obtains a buffer of at least n bytes from the guest. The returned address is
// only checked to lie in the guest's own memory.
func (i *instance) ensureFrame(n int, now int64) *policy.Error {
	if n <= int(i.frameSize) {
		return nil
	}
	want := uint64(n) + uint64(n)/4 // frames of a search vary in size
	want = (want + pageSize/16 - 1) &^ (pageSize/16 - 1)
	if want > math.MaxInt32 || want > uint64(i.m.limits.Memory) {
		return fault(policy.FaultLimit, hintMemory, "frame has %s, memory limit is %s",
			formatBytes(int64(n)), formatBytes(i.m.limits.Memory))
	}
	i.frame, i.frameSize = 0, 0
	i.stack[0] = want
	if err := i.run(i.alloc, now, i.m.startFuel()); err != nil {
		return withFunction(err, abi.ExportAlloc)
	}
	at := uint32(i.stack[0])
	switch {
	case at == 0:
		i.dead = true
		return fault(policy.FaultLimit, hintMemory, "%s returned no %s for a frame", abi.ExportAlloc, formatBytes(int64(want)))
	case at%abi.Alignment != 0:
		i.dead = true
		return fault(policy.FaultABI, "return a multiple of 16", "%s returned the unaligned address %#x", abi.ExportAlloc, at)
	case uint64(at)+want > uint64(i.memory.Size()):
		i.dead = true
		return fault(policy.FaultABI, "grow the memory first", "%s returned address %#x for %d bytes, memory ends at %#x",
			abi.ExportAlloc, at, want, i.memory.Size())
	}
	i.frame, i.frameSize = at, uint32(want)
	return nil
}

// fuelLimit returns the fuel of a call with the given numbers of rows and options.
func (i *instance) fuelLimit(rows, options int) int64 {
	return int64(i.m.limits.CallFuel(rows + options))
}

// candidates calls a hook with candidates.
func (i *instance) candidates(op abi.Op, in *sdk.Candidates) ([]byte, error) {
	if !i.has(op) {
		return nil, fmt.Errorf("the policy does not implement %s", abi.Names[op])
	}
	columns := i.info.Columns
	if op == abi.OpPreemptBindings {
		columns = sdk.BindingColumns
	}
	i.encoder.Candidates(op, in, columns)
	return i.request(op, in.Now, i.fuelLimit(in.Rows.Len(), in.Len()))
}

func (i *instance) has(op abi.Op) bool { return uint32(i.hooks)&hookBit(op) != 0 && i.ops[op] != nil }

// PriorityDelta calls the hook that restricts candidates by priority.
func (i *instance) PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error {
	frame, err := i.candidates(abi.OpPriorityDelta, in)
	if err == nil {
		i.encoder.Gap(frame, gap, recheck)
	}
	return err
}

// ScoreVictims calls the hook that orders victims.
func (i *instance) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	frame, err := i.candidates(abi.OpScoreVictims, in)
	if err == nil {
		i.encoder.VictimScores(frame, out)
	}
	return err
}

// SelectVictims calls the hook that selects victims.
func (i *instance) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	frame, err := i.candidates(abi.OpSelectVictims, in)
	if err != nil {
		return err
	}
	if err := i.encoder.Selection(frame, out); err != nil {
		return &policy.Error{Fault: policy.FaultAnswer, Err: err}
	}
	return nil
}

// ScoreOptions calls the hook that compares options.
func (i *instance) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error {
	if !i.has(abi.OpScoreOptions) {
		return fmt.Errorf("the policy does not implement %s", abi.Names[abi.OpScoreOptions])
	}
	i.encoder.Options(in, i.info.Columns)
	frame, err := i.request(abi.OpScoreOptions, in.Now, i.fuelLimit(in.Victims.Len(), in.Len()))
	if err == nil {
		i.encoder.OptionScores(frame, out)
	}
	return err
}

// PreemptBindings calls the hook that selects bindings to evict from member clusters.
func (i *instance) PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error {
	frame, err := i.candidates(abi.OpPreemptBindings, in)
	if err != nil {
		return err
	}
	if err := i.encoder.BindingVictims(frame, out); err != nil {
		return &policy.Error{Fault: policy.FaultAnswer, Err: err}
	}
	return nil
}
