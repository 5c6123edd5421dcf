package fsm

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/state"
)

// Config holds the dependencies of an FSM.
type Config struct {
	Store   *state.Store
	Modules Modules                     // nil: a command that requires a module halts the FSM
	Observe func([]replication.Applied) // nil: no observer
	// Timer is called before an entry is applied; the function that it returns is
	// called afterwards. nil: nothing is measured.
	Timer    func() func()
	Versions replication.Versions // that this release understands
	Logger   *slog.Logger         // required
}

// An FSM applies the log to the state, one entry after the other.
//
// Each entry gets its own transaction, although Raft delivers entries in batches:
// an entry's index is part of the rows that it writes and of the IDs that it derives, and
// observers need the state as each entry left it. A batch saves calls to
// observers only.
type FSM struct {
	store    *state.Store
	modules  *moduleStore
	observe  func([]replication.Applied)
	timer    func() func() // its result never reaches the state
	versions replication.Versions
	log      *slog.Logger

	mu     sync.Mutex
	err    error
	halted chan struct{} // closed when err is set
}

var _ raft.BatchingFSM = (*FSM)(nil)

// New returns an FSM on a store.
func New(cfg *Config) *FSM {
	f := &FSM{
		store: cfg.Store, modules: &moduleStore{Modules: cfg.Modules, log: cfg.Logger}, observe: cfg.Observe, timer: cfg.Timer,
		versions: cfg.Versions, log: cfg.Logger, halted: make(chan struct{}),
	}
	if f.observe == nil {
		f.observe = func([]replication.Applied) {}
	}
	if f.timer == nil {
		f.timer = func() func() { return func() {} }
	}
	return f
}

// Halt makes the FSM fail from now on: this server cannot apply an entry as every other
// server does, and would have another state if it continued. Only
// the first error is stored.
func (f *FSM) Halt(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.log.Error("cannot apply the log; this server stops", "err", err)
		f.err = err
		close(f.halted)
	}
}

// Halted returns a channel that is closed when the FSM halts.
func (f *FSM) Halted() <-chan struct{} { return f.halted }

// Err returns the error that the FSM halted with, or nil.
func (f *FSM) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// StateIndex returns the log index of the last entry in the state.
func (f *FSM) StateIndex() uint64 {
	snap := f.store.Snapshot()
	return snap.Index() - snap.Meta().IndexOffset
}

// Apply implements raft.FSM.
func (f *FSM) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM. The response to an entry is a
// *replication.Result, or an error if the FSM has halted. Entries that are not
// commands, or that are in the state already, have no response and no effect.
func (f *FSM) ApplyBatch(logs []*raft.Log) []any {
	responses := make([]any, len(logs))
	applied := make([]replication.Applied, 0, len(logs))
	for i, l := range logs {
		// After an outdated snapshot, Raft replays entries: see raftshim.FSM.
		if l.Type != raft.LogCommand || l.Index <= f.StateIndex() {
			continue
		}
		if err := f.Err(); err != nil {
			responses[i] = err
			continue
		}
		stop := f.timer()
		a, err := f.ApplyEntry(l)
		stop()
		if err != nil {
			err = fmt.Errorf("log entry %d: %w", l.Index, err)
			f.Halt(err)
			responses[i] = err
			continue
		}
		applied = append(applied, a)
		responses[i] = a.Result
	}
	if len(applied) > 0 {
		f.observe(applied)
	}
	return responses
}

// ApplyEntry applies one entry without observers. It returns an error, and leaves
// the state unchanged, if this server cannot apply the entry.
func (f *FSM) ApplyEntry(l *raft.Log) (replication.Applied, error) {
	e, err := codec.Decode(l.Data)
	if err != nil {
		return replication.Applied{}, err
	}
	a := f.begin(e, l.Index)
	defer func() { a.txn.Abort() }() // no effect after Commit
	if !a.lookupResult() {
		if refusal := a.apply(); refusal != nil {
			// Nothing of the command remains, but the state is at its index, so that
			// a caller that waits for the index of the response does not wait forever.
			a.txn.Abort()
			*a = *f.begin(e, l.Index)
			a.result.Err = refusal
		} else {
			storeAudit(e, a.txn)
		}
		a.storeResult()
	}
	if a.restore != nil {
		return f.replaceState(a, l.Index)
	}
	if err := f.versions.CheckNewest(a.txn.Meta().Version); err != nil {
		return replication.Applied{}, err
	}
	// Modules are stored before the commit: a state must not refer to a module that
	// this server does not have.
	if err := f.modules.store(a.modules); err != nil {
		return replication.Applied{}, err
	}
	snap := a.txn.Commit()
	f.modules.delete(snap, a.unused)
	a.result.Freed = append(a.result.Freed, snap.ChangedCohortNodes()...)
	a.result.Freed, a.result.Left, a.result.Placed = sortedSet(a.result.Freed), sortedSet(a.result.Left), sortedSet(a.result.Placed)
	return replication.Applied{Index: snap.Index(), Entry: e, Result: a.result, Snap: snap}, nil
}

// begin starts the application of the entry at a log index.
func (f *FSM) begin(e *replication.Entry, logIndex uint64) *applier {
	index := logIndex + f.store.Snapshot().Meta().IndexOffset
	return &applier{entry: e, now: e.Time, txn: f.store.Begin(index), result: &replication.Result{Index: index}}
}

// sortedSet sorts IDs in place and removes duplicates.
func sortedSet(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}
