package evalqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/core/state"
)

// stateTimeout is how long a worker waits for this server's state to reach the index that
// its evaluation requires. Beyond that another server may be faster.
const stateTimeout = 5 * time.Second

// stateWaiter waits for the state with a time limit.
type stateWaiter struct {
	store  *state.Store
	onLate func(index uint64) // called with an index that was not reached; may be nil
}

// WaitIndex returns the state at index or later. It fails after stateTimeout.
func (w stateWaiter) WaitIndex(ctx context.Context, index uint64) (*state.Snapshot, error) {
	if snap := w.store.Snapshot(); snap.Index() >= index {
		return snap, nil
	}
	limited, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	snap, err := w.store.WaitIndex(limited, index)
	if err != nil && ctx.Err() == nil {
		if w.onLate != nil {
			w.onLate(index)
		}
		return nil, fmt.Errorf("not reached within %v: the state is at index %d", stateTimeout, w.store.Snapshot().Index())
	}
	return snap, err
}
