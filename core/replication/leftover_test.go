package replication

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// gapless is a log of memory without gaps, as ours has none.
type gapless struct{ *raft.InmemCommitTrackingStore }

func (gapless) IsMonotonic() bool { return true }

// A server led alone and has more entries of its own than the others keep behind their
// snapshot. It gets the snapshot, and goes on from there; with Raft alone it would get
// it again and again until theirs reaches as far as its log did.
func TestLeftover_IsReplacedBehindASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, gapless: true, hashes: map[uint64][32]byte{}}
		c.fill(3)
		defer c.close()
		for i := range 10 {
			c.send(&Entry{Time: 1, Command: &RegisterJob{Job: countedJob("web", i)}})
		}
		lead := c.leader()
		c.settle()
		c.cut(true, lead)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for i := range 60 {
			go func() {
				_, _ = lead.node.Apply(ctx, &Entry{Time: 1, Command: &RegisterJob{Job: countedJob("alone", i)}})
			}()
		}
		time.Sleep(5 * time.Second)
		own := lead.node.Raft().LastIndex()
		for i := range 20 {
			c.send(&Entry{Time: 1, Command: &RegisterJob{Job: countedJob("web", i)}})
		}
		time.Sleep(10 * time.Second) // the others take a snapshot
		now := c.leader()
		if now == lead || now.node.Stats().SnapshotAt == 0 || now.node.Raft().LastIndex() >= own {
			t.Fatalf("%s leads up to %d, %s ended at %d", now.id, now.node.Raft().LastIndex(), lead.id, own)
		}
		c.cut(false, lead)
		time.Sleep(time.Minute) // Raft was trying less and less often
		c.send(&Entry{Time: 1, Command: &RegisterJob{Job: countedJob("web", 1)}})
		time.Sleep(5 * time.Second)
		if at, want := lead.node.Raft().LastIndex(), now.node.Raft().LastIndex(); at != want {
			t.Errorf("its log ends at %d, that of the others at %d", at, want)
		}
		c.settle()
		c.halt(lead)
		c.start(lead)
		time.Sleep(5 * time.Second)
		c.settle()
	})
}
