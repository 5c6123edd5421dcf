package replication

import (
	"context"
	"errors"
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

// kept is a log of entries of a term and a snapshot, as a server leaves them.
func kept(t *testing.T, from, to, term, at, atTerm uint64) (gapless, *raft.InmemSnapshotStore) {
	t.Helper()
	log, snapshots := gapless{raft.NewInmemCommitTrackingStore()}, raft.NewInmemSnapshotStore()
	for i := from; i <= to; i++ {
		if err := log.StoreLog(&raft.Log{Index: i, Term: term}); err != nil {
			t.Fatal(err)
		}
	}
	sink, err := snapshots.Create(raft.SnapshotVersionMax, at, atTerm, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return log, snapshots
}

// A server that ended between installing a snapshot and emptying its log does that when it
// starts: what it held there may be what nobody else has.
func TestLeftover_IsGoneAfterARestart(t *testing.T) {
	for name, c := range map[string]struct {
		from, to, term, at, atTerm uint64
		stays                      bool
	}{
		"it ends before the snapshot":    {1, 5, 1, 9, 1, false},
		"it goes on with others' terms":  {1, 20, 1, 9, 2, false},
		"it holds the snapshot's entry":  {5, 20, 1, 9, 1, true},
		"it ends with the snapshot":      {5, 9, 1, 9, 1, true},
		"it begins behind the snapshot":  {10, 20, 1, 9, 1, true},
		"it ends with others' last term": {5, 9, 1, 9, 2, false},
	} {
		log, snapshots := kept(t, c.from, c.to, c.term, c.at, c.atTerm)
		if _, err := trackCommits(log, snapshots, raft.DefaultConfig()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		last, err := log.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		if (last == c.to) != c.stays || !c.stays && last != 0 {
			t.Errorf("%s: the log ends at %d", name, last)
		}
	}
}

// refusing is a log that cannot be cut.
type refusing struct {
	gapless
	full bool
}

func (r *refusing) DeleteRange(from, to uint64) error {
	if r.full {
		return errors.New("the disk is full")
	}
	return r.gapless.DeleteRange(from, to)
}

// A log that a snapshot replaced, and that the disk refused to empty, is not read any more,
// and nothing is put behind it before it is empty.
func TestLeftover_IsNotReadWhereItCouldNotBeDeleted(t *testing.T) {
	kept, snapshots := kept(t, 1, 20, 1, 9, 1)
	disk := &refusing{gapless: kept}
	log, err := trackCommits(disk, snapshots, raft.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	disk.full = true
	if err := log.DeleteRange(1, 20); err == nil {
		t.Fatal("it is said to be empty")
	}
	var l raft.Log
	for index, want := range map[uint64]error{5: raft.ErrLogNotFound, 8: raft.ErrLogNotFound, 21: raft.ErrLogNotFound} {
		if err := log.GetLog(index, &l); !errors.Is(err, want) {
			t.Errorf("entry %d: %v, want %v", index, err, want)
		}
	}
	for index, term := range map[uint64]uint64{9: 1, 10: 0, 20: 0} { // of the snapshot, and of what was there
		if err := log.GetLog(index, &l); err != nil || l.Term != term || l.Index != index {
			t.Errorf("entry %d: %+v, %v, want term %d", index, l, err, term)
		}
	}
	next := &raft.Log{Index: 10, Term: 2}
	if err := log.StoreLog(next); err == nil {
		t.Error("an entry was put behind others that are gone")
	}
	disk.full = false
	if err := log.StoreLog(next); err != nil {
		t.Fatal(err)
	}
	first, err := log.FirstIndex()
	if err != nil || first != 10 {
		t.Errorf("the log begins at %d, %v", first, err)
	}
	if err := log.GetLog(10, &l); err != nil || l.Term != 2 {
		t.Errorf("entry 10: %+v, %v", l, err)
	}
}
