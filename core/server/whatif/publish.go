package whatif

import (
	"context"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

const (
	// signersFrom is the first cluster version with keys of signers.
	signersFrom = 2
	// catchUpPoll is the interval at which the server is checked for having caught up.
	catchUpPoll = 100 * time.Millisecond
	// publishRetry is the wait before another attempt to publish the key.
	publishRetry = time.Second
)

// A Publisher writes the public key of a server into the log, so that every server can
// return it, also after the server was removed.
type Publisher struct {
	Examiner *Examiner
	Store    *state.Store
	// Apply writes an entry on the leader.
	Apply    func(context.Context, *replication.Entry) (*replication.Result, error)
	CaughtUp func() bool // before, the state may lack a key that was published
	Clock    clock.Clock
}

// Run publishes the key, and again if a restored state lacks it, until ctx ends. It returns
// at once if the server has no key.
func (p *Publisher) Run(ctx context.Context) {
	key := p.Examiner.DecisionKey()
	if key == nil {
		return
	}
	for !p.CaughtUp() {
		if !clock.Sleep(ctx, p.Clock, catchUpPoll) {
			return
		}
	}
	for ctx.Err() == nil {
		watch := p.Store.Watch(state.TableSigners.All(), state.TableConfig.All())
		if p.publish(ctx, [32]byte(key)) {
			select {
			case <-watch.C:
			case <-ctx.Done():
			}
		} else {
			clock.Sleep(ctx, p.Clock, publishRetry)
		}
		watch.Stop()
	}
}

// publish reports whether nothing is to be done until the state changes.
func (p *Publisher) publish(ctx context.Context, key [32]byte) bool {
	snap := p.Store.Snapshot()
	if snap.Meta().Version < signersFrom || snap.Signer(key) != nil {
		return true
	}
	now := p.Clock.Now().UnixNano()
	_, err := p.Apply(ctx, &replication.Entry{Time: now, Command: &replication.PutSigner{
		Signer: &model.Signer{ServerID: p.Examiner.signer.ServerID, Key: key, Time: now},
	}})
	return err == nil // a refusal would be repeated: the key is another server's, or there are too many
}
