package certificate

import (
	"fmt"
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// MaxCalls is the maximum size of the calls and answers of a certificate, in bytes. The server
// holds them in memory, and several times as much while it encodes them.
const MaxCalls = 128 << 20

// ErrTooLarge means that a decision has more calls than a certificate can contain.
var ErrTooLarge = fmt.Errorf("the calls and answers of the policies exceed %d MiB, the limit of a certificate", MaxCalls>>20)

// A Log records the calls of policies, up to MaxCalls bytes. The zero value is ready.
type Log struct {
	mu       sync.Mutex
	stopped  bool
	versions []string // that were called, by position
	calls    []Call
	size     int   // of the calls
	failed   error // of the first call that failed, or ErrTooLarge
}

// Record returns a module whose instances record their calls under a version. It is an
// argument of policy.Set.Copy.
func (l *Log) Record(v *policy.Version, m policy.Module) policy.Module {
	return &recordedModule{Module: m, version: v.ID, log: l}
}

// RecordDescribed is Record for people: the input also has the columns that describe rows and
// nodes, whether the policy reads them or not.
func (l *Log) RecordDescribed(v *policy.Version, m policy.Module) policy.Module {
	return &recordedModule{Module: m, version: v.ID, log: l, columns: described}
}

// described are the columns that describe rows and nodes.
const described = sdk.UseColumns | sdk.StartColumn | sdk.LostWorkColumn | sdk.JobColumns | sdk.MustLeaveColumn | sdk.PlaceColumn | sdk.TotalsColumn

// Take returns the calls since the last Take, as Stop does, and continues the recording.
func (l *Log) Take() (versions []string, calls []Call, failed error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	versions, calls, failed = l.versions, l.calls, l.failed
	l.stopped, l.versions, l.calls, l.size, l.failed = false, nil, nil, 0, nil
	return versions, calls, failed
}

// Stop ends the recording and returns the versions that were called, their calls in order,
// and the error of the first call that failed. If they exceed MaxCalls bytes, it returns
// ErrTooLarge and no calls.
func (l *Log) Stop() (versions []string, calls []Call, failed error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	return l.versions, l.calls, l.failed
}

func (l *Log) add(version string, op abi.Op, frame, answer []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped:
		return
	case err != nil && l.failed == nil:
		l.failed = err
	}
	l.size += len(frame) + len(answer)
	if l.size > MaxCalls {
		l.stopped, l.versions, l.calls, l.failed = true, nil, nil, ErrTooLarge
		return
	}
	at := slices.Index(l.versions, version)
	if at < 0 {
		at = len(l.versions)
		l.versions = append(l.versions, version)
	}
	l.calls = append(l.calls, Call{Policy: at, Hook: abi.Names[op], Frame: frame, Answer: answer})
}

// A recordedModule starts instances that record their calls.
type recordedModule struct {
	policy.Module
	version string
	log     *Log
	columns sdk.Columns // in addition to those that the policy reads
}

// Start creates an instance.
func (m *recordedModule) Start(c *sdk.Config) (policy.Instance, error) {
	in, err := m.Module.Start(c)
	if err != nil {
		return nil, err
	}
	return &recorded{Instance: in, m: m, columns: in.Info().Columns | m.columns}, nil
}

// A recorded instance encodes each request before the call and each answer after it.
type recorded struct {
	policy.Instance
	m       *recordedModule
	columns sdk.Columns
}

var _ policy.Instance = (*recorded)(nil)

// Info returns the description of the policy with the columns that are recorded.
func (r *recorded) Info() sdk.Info {
	info := r.Instance.Info()
	info.Columns = r.columns
	return info
}

func (r *recorded) call(op abi.Op, in *sdk.Candidates, columns sdk.Columns, call func() error, encode func(*answer)) error {
	frame := frameOf(func(e *abi.Encoder) int { return e.Candidates(op, in, columns) })
	err := call()
	var a answer
	encode(&a)
	r.m.log.add(r.m.version, op, frame, a.b, err)
	return err
}

// PriorityDelta records a call.
func (r *recorded) PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error {
	return r.call(abi.OpPriorityDelta, in, r.columns,
		func() error { return r.Instance.PriorityDelta(in, gap, recheck) }, func(a *answer) { a.gap(gap, recheck) })
}

// ScoreVictims records a call.
func (r *recorded) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	return r.call(abi.OpScoreVictims, in, r.columns,
		func() error { return r.Instance.ScoreVictims(in, out) }, func(a *answer) { a.scores(out) })
}

// SelectVictims records a call.
func (r *recorded) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	return r.call(abi.OpSelectVictims, in, r.columns,
		func() error { return r.Instance.SelectVictims(in, out) }, func(a *answer) { a.selection(out) })
}

// ScoreOptions records a call.
func (r *recorded) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error {
	frame := frameOf(func(e *abi.Encoder) int { return e.Options(in, r.columns) })
	err := r.Instance.ScoreOptions(in, out)
	var a answer
	a.options(out)
	r.m.log.add(r.m.version, abi.OpScoreOptions, frame, a.b, err)
	return err
}

// PreemptBindings records a call.
func (r *recorded) PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error {
	return r.call(abi.OpPreemptBindings, in, sdk.BindingColumns,
		func() error { return r.Instance.PreemptBindings(in, out) },
		func(a *answer) { a.selection(&out.Selection); a.tiers(&out.Tiers) })
}
