package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cede-scheduler/cede/core/storage/storagetest/lossy"
)

// cutPower ends the power of servers at the same moment: they die, and their disks
// forget what was not synced. It tells how many pages that were.
func cutPower(t *testing.T, disks map[*poolServer]*lossy.Disk, servers ...*poolServer) (lost int) {
	t.Helper()
	for _, s := range servers {
		disks[s].PowerOff()
	}
	for _, s := range servers {
		select {
		case <-s.ended: // at a sync that failed
		default:
			s.kill()
		}
	}
	for _, s := range servers {
		lost += disks[s].PowerOn(t)
	}
	return lost
}

// The power of servers goes under load, and their disks lose whatever was not synced: of
// the one that leads, of one that follows, and of all at once. What was acknowledged is
// there, and nobody has voted twice or applied what the others have not.
func TestDisk_ThatForgetsWhatWasNotSynced(t *testing.T) {
	t.Parallel()
	rounds := 1
	if os.Getenv("CEDE_SOAK") != "" {
		rounds = 20
	}
	p := newProcessPool(t)
	disks := map[*poolServer]*lossy.Disk{}
	for _, s := range p.servers {
		disks[s] = lossy.Mount(t, filepath.Join(p.dir, s.name))
		// Snapshots are written meanwhile, and the log is kept to be replayed.
		s.raft = "snapshot_interval: 1s, snapshot_threshold: 100, trailing_logs: 1000000"
		s.start()
	}
	p.leader()
	p.node("n1")
	h := newHistory(t, p.people(3))
	h.goesOn(20)
	lost := 0
	for range rounds {
		lead := p.leader()
		lost += cutPower(t, disks, lead)
		p.otherLeader(lead)
		h.goesOn(20)
		lead.start()
		p.together()

		follower := p.follower(p.leader())
		lost += cutPower(t, disks, follower)
		h.goesOn(20)
		follower.start()
		p.together()

		lost += cutPower(t, disks, p.servers...)
		for _, s := range p.servers {
			s.start()
		}
		p.together()
		h.goesOn(20)
	}
	h.end(p.c)
	p.settled([]string{"shared-0", "shared-1", "shared-2"})
	p.replayed()
	if lost == 0 {
		t.Error("nothing was lost: the disks forget nothing, or everything is synced at once")
	}
	t.Logf("%d pages were lost in %d power cuts", lost, 5*rounds)
}
