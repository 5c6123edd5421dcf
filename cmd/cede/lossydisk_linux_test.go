package main

import (
	"path/filepath"
	"testing"

	"github.com/cede-scheduler/cede/core/storage/storagetest/lossy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// cutPower kills servers and discards the unsynced writes of their disks, as a power cut
// does. It returns the number of lost pages.
func cutPower(t *testing.T, disks map[*poolServer]*lossy.Disk, servers ...*poolServer) (lost int) {
	t.Helper()
	for _, s := range servers {
		disks[s].PowerOff()
	}
	for _, s := range servers {
		select {
		case <-s.exited: // the server exited because a sync failed
		default:
			s.kill()
		}
	}
	for _, s := range servers {
		lost += disks[s].PowerOn(t)
	}
	return lost
}

// Power cuts under load hit the leader, a follower, and all servers at once. Unsynced
// writes are lost each time. Acknowledged writes survive, no server votes twice in a term,
// and all servers apply the same log.
func TestDisk_PoolSurvivesPowerCuts(t *testing.T) {
	t.Parallel()
	rounds := soak.Count(1, 20)
	p := newProcessPool(t)
	disks := map[*poolServer]*lossy.Disk{}
	for _, s := range p.servers {
		disks[s] = lossy.Mount(t, filepath.Join(p.dir, s.name))
		// The server snapshots under load and keeps its whole log for the replay.
		s.raftConfig = "snapshot_interval: 1s, snapshot_threshold: 100, trailing_logs: 1000000"
		s.start()
	}
	p.waitLeader()
	p.startNode("n1")
	h := newHistory(t, p.clients(3))
	h.waitWrites(20)
	lost := 0
	for range rounds {
		if !soak.Quick() { // a cut of all servers includes both
			lost += cutLeaderAndFollower(p, h, disks)
		}
		lost += cutPower(t, disks, p.servers...)
		for _, s := range p.servers {
			s.start()
		}
		p.waitConverged()
		h.waitWrites(20)
	}
	h.check(p.c)
	p.checkConverged([]string{"shared-0", "shared-1", "shared-2"})
	p.checkReplay()
	if lost == 0 {
		t.Error("no pages were lost: the disks do not discard unsynced writes, or every write is synced")
	}
	t.Logf("lost %d pages in %d rounds of power cuts", lost, rounds)
}

// cutLeaderAndFollower cuts the power of one server after the other while the others serve,
// and returns the number of lost pages.
func cutLeaderAndFollower(p *processPool, h *history, disks map[*poolServer]*lossy.Disk) (lost int) {
	lead := p.waitLeader()
	lost += cutPower(p.t, disks, lead)
	p.waitNewLeader(lead)
	h.waitWrites(20)
	lead.start()
	p.waitConverged()

	follower := p.follower(p.waitLeader())
	lost += cutPower(p.t, disks, follower)
	h.waitWrites(20)
	follower.start()
	p.waitConverged()
	return lost
}
