package raftnode

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/fsm"
	"github.com/cede-scheduler/cede/core/state"
)

// A Replay computes a server's state from what it stored, without a server or a
// cluster: a snapshot and the entries after it. It uses the same FSM as a server, so a
// difference to the server's state is a defect.
type Replay struct {
	Snapshot io.Reader // nil: start from an empty state
	// From and To are the indexes of the first and last entry. If To is less than
	// From, there are none.
	From, To uint64
	// Until ends the replay with the newest state that is not newer than this index; 0:
	// after To.
	Until uint64
	Entry func(index uint64, into *raft.Log) error
	// Observe is called with every applied entry. Its error ends the replay. nil: no
	// observer.
	Observe  func(*replication.Applied) error
	Versions replication.Versions // that are understood; zero: replication.Ours
}

// Run returns the state after the last entry. Policy modules are not stored. It
// returns the error of Entry or Observe, a *snapshot.Error, or a
// *replication.FormatError if this release does not understand an entry.
func (r *Replay) Run(ctx context.Context) (*state.Snapshot, error) {
	cfg := Config{Store: state.New(), Modules: noModules{}, Versions: r.Versions}
	f := cfg.fsm()
	if r.Snapshot != nil {
		if err := f.Restore(io.NopCloser(r.Snapshot)); err != nil {
			return nil, err
		}
	}
	for index := r.From; index <= r.To; index++ {
		before := cfg.Store.Snapshot()
		if r.Until > 0 && before.Index() >= r.Until {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var l raft.Log
		if err := r.Entry(index, &l); err != nil {
			return nil, err
		}
		// Entries of Raft itself (configurations, barriers) do not change the state.
		if l.Type != raft.LogCommand {
			continue
		}
		a, err := f.ApplyEntry(&l)
		if err == nil && r.Until > 0 && a.Index > r.Until {
			return before, nil
		}
		if err == nil && r.Observe != nil {
			err = r.Observe(&a)
		}
		if err != nil {
			return nil, fmt.Errorf("log entry %d: %w", index, err)
		}
	}
	return cfg.Store.Snapshot(), nil
}

// noModules accepts every module and stores none: a replay computes the state only.
type noModules struct{}

var _ fsm.Modules = noModules{}

func (noModules) PutChunk(string, int64, []byte) error { return nil }
func (noModules) Finish(string, int64) error           { return nil }
func (noModules) Delete(string) error                  { return nil }
func (noModules) Get(string) ([]byte, error) {
	return nil, errors.New("a replay stores no modules")
}
