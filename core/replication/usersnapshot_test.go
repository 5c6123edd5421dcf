package replication

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// saved is what an operator saved of a cluster.
func (c *cluster) saved() []byte {
	c.t.Helper()
	var file bytes.Buffer
	if err := c.leader().node.SaveSnapshot(c.t.Context(), &file); err != nil {
		c.t.Fatal(err)
	}
	return file.Bytes()
}

func jobs(m *member) (n int) {
	for range m.store.Snapshot().Jobs() {
		n++
	}
	return n
}

// A leader restores what an operator brings, and is lost before any other server has it. The
// others go on without. When it is back it has their state, or, where nobody can send that
// whole, stops; it is never another state that passes for theirs.
func TestRestore_IsLostWithItsLeader(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("others have no snapshot: %t, it dies: %t", keeps, dies), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { playLostRestore(t, keeps, dies) })
			})
		}
	}
}

func playLostRestore(t *testing.T, keeps, dies bool) {
	c := &cluster{t: t, gapless: true, keeps: keeps, hashes: map[uint64][32]byte{}}
	c.fill(3)
	defer c.close()
	c.register(5)
	file := c.saved()
	for i := range 10 {
		c.send(&Entry{Time: 1, Command: &RegisterJob{Job: countedJob(fmt.Sprint("new", i), i)}})
	}
	c.settle()
	lost := c.leader()
	had := jobs(lost)
	c.cut(true, lost)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := lost.node.RestoreSnapshot(ctx, bytes.NewReader(file)); err == nil {
		t.Fatal("a restore that nobody else has is said to be done")
	}
	if n := jobs(lost); n >= had {
		t.Fatalf("nothing was restored: %d jobs, as before", n)
	}
	if dies {
		c.halt(lost)
	}
	c.register(60)
	time.Sleep(10 * time.Second)
	if dies {
		c.start(lost)
	}
	c.cut(false, lost)
	time.Sleep(time.Minute)
	c.register(3)
	if !keeps {
		c.settle()
		return
	}
	if lost.node.Err() == nil {
		c.settle() // it got there, or this fails
		return
	}
	if !errors.Is(lost.node.Err(), errContradicted) {
		t.Error(lost.node.Err())
	}
}

// The state is not replaced while a snapshot of it is written: Raft would take that for the
// newest afterwards.
func TestRestore_WaitsForTheSnapshotThatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, gapless: true, hashes: map[uint64][32]byte{}}
		c.fill(3)
		defer c.close()
		c.register(5)
		file, lead := c.saved(), c.leader()
		written, err := lead.node.fsm.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- lead.node.RestoreSnapshot(t.Context(), bytes.NewReader(file)) }()
		time.Sleep(time.Second)
		select {
		case err := <-done:
			t.Fatalf("it was restored meanwhile: %v", err)
		default:
		}
		written.Release()
		written.Release() // twice is once
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if _, err := lead.node.fsm.Snapshot(); err != nil {
			t.Errorf("behind a restore: %v", err)
		}
	})
}
