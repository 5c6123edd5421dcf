package replication

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/state"
)

// fsm applies the log to the state, one entry after the other.
//
// Each entry gets a transaction of its own, although Raft hands them over in
// batches: an entry's index is in what it writes and in the ids that it
// derives, and whoever watches wants the state as each left it. What a batch
// saves is that observers are called once.
type fsm struct {
	store   *state.Store
	modules *modules
	observe func([]Applied)
	timer   func() func() // nothing of what it does reaches the state
	version Versions
	log     *slog.Logger
	writing oneAtATime // a snapshot of it is written, or it is replaced by one

	applied atomic.Uint64
	unread  error // why a snapshot could not be restored; Raft keeps it to itself

	mu     sync.Mutex
	halted error
	halt   chan struct{} // closed with halted
}

var _ raft.BatchingFSM = (*fsm)(nil)

func newFSM(cfg *Config, log *slog.Logger) *fsm {
	f := &fsm{
		store: cfg.Store, modules: &modules{Modules: cfg.Modules, log: log}, observe: cfg.Observe, timer: cfg.Timer, log: log,
		version: cfg.Versions.orOurs(),
		halt:    make(chan struct{}), writing: make(oneAtATime, 1),
	}
	if f.observe == nil {
		f.observe = func([]Applied) {}
	}
	if f.timer == nil {
		f.timer = func() func() { return func() {} }
	}
	return f
}

// stop takes this server out: it cannot do what every other server does with
// an entry, and to go on without would make another state of it.
func (f *fsm) stop(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.halted == nil {
		f.log.Error("cannot apply the log; this server stops", "err", err)
		f.halted = err
		close(f.halt)
	}
}

func (f *fsm) stopped() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.halted
}

// Apply implements raft.FSM.
func (f *fsm) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM. The answer to an entry is a *Result,
// or an error when this server has stopped.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	answers := make([]any, len(logs))
	done := make([]Applied, 0, len(logs))
	for i, l := range logs {
		if l.Type != raft.LogCommand || l.Index <= f.store.Snapshot().Index() {
			continue // the second is applied already: see Restore
		}
		if err := f.stopped(); err != nil {
			answers[i] = err
			continue
		}
		applied := f.timer()
		a, err := f.one(l)
		applied()
		if err != nil {
			err = fmt.Errorf("log entry %d: %w", l.Index, err)
			f.stop(err)
			answers[i] = err
			continue
		}
		done = append(done, a)
		answers[i] = a.Result
	}
	if len(done) > 0 {
		f.applied.Store(done[len(done)-1].Index)
		f.observe(done)
	}
	return answers
}

func (f *fsm) one(l *raft.Log) (Applied, error) {
	e, err := Decode(l.Data)
	if err != nil {
		return Applied{}, err
	}
	a := &applier{entry: e, now: e.Time, txn: f.store.Begin(l.Index), result: &Result{Index: l.Index}}
	defer func() { a.txn.Abort() }()
	if !a.replay() {
		if refusal := a.run(); refusal != nil {
			// It leaves no trace, but the state is at its index, and its key is known.
			a.txn.Abort()
			*a = applier{entry: e, now: e.Time, txn: f.store.Begin(l.Index), result: &Result{Index: l.Index, Err: refusal}}
		}
		a.remember()
	}
	if err := f.version.tooNew(a.txn.Meta().Version); err != nil {
		return Applied{}, err
	}
	if err := f.modules.add(a.modules); err != nil {
		return Applied{}, err
	}
	snap := a.txn.Commit()
	f.modules.drop(snap, a.unused)
	a.result.Rooms = append(a.result.Rooms, snap.ChangedCohortNodes()...)
	a.result.Rooms, a.result.Placed = distinct(a.result.Rooms), distinct(a.result.Placed)
	return Applied{Index: l.Index, Entry: e, Result: a.result, Snap: snap}, nil
}

func distinct(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}
