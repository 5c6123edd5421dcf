package replication

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/state"
)

// Replay is a server's state worked out again from what it wrote down, with no
// server and no cluster: what a snapshot holds, and the entries after it.
type Replay struct {
	Snapshot io.Reader // that it begins with; nil: nothing
	// From and To are the entries that follow, both included. None where To is less.
	From, To uint64
	Entry    func(index uint64, into *raft.Log) error
	// Observe is told what each entry did; its error ends the replay. nil: nobody is told.
	Observe func(*Applied) error
}

// Run gives the state behind the last entry. Policy modules are not kept anywhere.
// Its error is a *SnapshotError, that of Entry or Observe, or that this release does
// not understand an entry.
func (r *Replay) Run(ctx context.Context) (*state.Snapshot, error) {
	f := newFSM(&Config{Store: state.New(), Modules: forgotten{}}, slog.New(slog.DiscardHandler))
	if r.Snapshot != nil {
		if err := f.Restore(io.NopCloser(r.Snapshot)); err != nil {
			return nil, err
		}
	}
	for index := r.From; index <= r.To; index++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var l raft.Log
		if err := r.Entry(index, &l); err != nil {
			return nil, err
		}
		if l.Type != raft.LogCommand {
			continue
		}
		a, err := f.one(&l)
		if err == nil && r.Observe != nil {
			err = r.Observe(&a)
		}
		if err != nil {
			return nil, fmt.Errorf("log entry %d: %w", index, err)
		}
	}
	return f.store.Snapshot(), nil
}

// forgotten keeps no module: a replay is about the state.
type forgotten struct{}

var _ Modules = forgotten{}

func (forgotten) PutChunk(string, int64, []byte) error { return nil }
func (forgotten) Finish(string, int64) error           { return nil }
func (forgotten) Delete(string) error                  { return nil }
func (forgotten) Get(string) ([]byte, error) {
	return nil, errors.New("a replay keeps no modules")
}
