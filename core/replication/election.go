package replication

import (
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// How a dead leader is replaced.
//
// Raft's own way: each follower looks, at random times one to two timeouts apart,
// whether it heard the leader within the last one, so a leader that is gone is
// noticed after one to three timeouts. Until a follower has noticed by itself it
// refuses its vote to others, so of three servers the slower of the two that are left
// counts; and where its log is the shorter one, the faster one asks again only one to
// two timeouts later. That is five at worst, and two are common.
//
// Here a follower begins when the leader has been silent for one timeout, the second
// in line a part of one later, so that two seldom begin together; and whoever has not
// heard the leader for most of a timeout votes for another, as Raft's authors have it
// (a vote is refused within the least election timeout of hearing a leader). What
// makes an election safe, terms, votes on the disk and the length of logs, stays
// Raft's own.
type elections struct {
	raft      *raft.Raft
	self      raft.ServerID
	heartbeat time.Duration
}

// quiet is for how long a leader is silent before a follower votes for another. The
// leader stepped down by then, if it reaches no majority: quiet is longer than its
// lease. It is shorter than the timeout, since the other follower may have heard the
// leader's last word later.
func quiet(heartbeat, lease time.Duration) time.Duration { return max(lease, heartbeat*3/4) }

// inLine is how much later than the one before it a follower begins: an election
// takes two round trips and a few writes to the disk.
func inLine(heartbeat time.Duration) time.Duration { return heartbeat * 3 / 10 }

// run begins elections until stop is closed.
func (e *elections) run(stop <-chan struct{}) {
	timer := time.NewTimer(e.heartbeat) //nolint:forbidigo // Raft goes by the real clock
	defer timer.Stop()
	due, rested := time.Time{}, false
	for {
		select {
		case <-timer.C:
		case <-stop:
			return
		}
		now := time.Now() //nolint:forbidigo // see above
		overslept := !due.IsZero() && now.Sub(due) > e.heartbeat/5
		due = e.due()
		switch {
		case due.IsZero():
			timer.Reset(e.heartbeat / 2)
		case now.Before(due):
			rested = false
			timer.Reset(due.Sub(now))
		case overslept && !rested:
			// This server did not get to run, so the leader's word may wait to be read.
			rested = true
			timer.Reset(e.heartbeat / 5)
		default:
			rested = false
			e.look()
			due = time.Time{}
			timer.Reset(e.heartbeat)
		}
	}
}

// due is when the leader that this server follows has been silent for too long; zero
// where it follows none, which Raft sees to.
func (e *elections) due() time.Time {
	_, leader := e.raft.LeaderWithID()
	heard := e.raft.LastContact()
	if e.raft.State() != raft.Follower || leader == "" || heard.IsZero() {
		return time.Time{}
	}
	return heard.Add(e.heartbeat + time.Duration(e.place(leader))*inLine(e.heartbeat))
}

// place is how many of those who may follow the leader begin before this server.
func (e *elections) place(leader raft.ServerID) int {
	var line []string
	f := e.raft.GetConfiguration()
	if f.Error() != nil {
		return 0
	}
	for _, s := range f.Configuration().Servers {
		if s.Suffrage == raft.Voter && s.ID != leader {
			line = append(line, string(s.ID))
		}
	}
	slices.SortFunc(line, strings.Compare)
	return min(max(slices.Index(line, string(e.self)), 0), 3)
}

// look has Raft look now whether the leader was heard within the timeout. It does so
// whenever the timeout becomes shorter; so it becomes longer for no time at all.
func (e *elections) look() {
	timing := e.raft.ReloadableConfig()
	longer := timing
	longer.HeartbeatTimeout++
	longer.ElectionTimeout++
	if e.raft.ReloadConfig(longer) == nil {
		_ = e.raft.ReloadConfig(timing) // it was good before
	}
}

// judge takes from a request for a vote what would have it refused though no leader is
// heard: because one is known, or because who asks is no voter as far as this server knows.
// Who was made one may be the only one that is left who knows it; and whose log is as new as
// this server's belongs to the cluster, whatever was written of it where nobody saw it.
func (b *inbox) judge(command any) any {
	leader, silent := b.silentLeader()
	if leader != "" && !silent {
		return command
	}
	switch asked := command.(type) {
	case *raft.RequestVoteRequest:
		free := *asked
		free.LeadershipTransfer = asked.LeadershipTransfer || silent
		if _, known := b.voter(asked.ID); !known {
			free.ID = nil // Raft looks no further where there is none
		}
		return &free
	case *raft.RequestPreVoteRequest:
		free := *asked
		if silent {
			// Raft compares who asks, which it goes by for nothing else, with who leads.
			free.Addr = []byte(leader)
		}
		if some, known := b.voter(asked.ID); !known {
			free.ID = some
		}
		return &free
	}
	return command
}

// voter is whether a server is a voter, as far as this one knows, and one that is.
func (b *inbox) voter(id []byte) (some []byte, known bool) {
	some = id
	f := b.raft.GetConfiguration()
	if f.Error() != nil {
		return some, true
	}
	for _, s := range f.Configuration().Servers {
		switch {
		case s.Suffrage != raft.Voter:
		case string(s.ID) == string(id):
			return id, true
		default:
			some = []byte(s.ID)
		}
	}
	return some, false
}

func (b *inbox) silentLeader() (address raft.ServerAddress, silent bool) {
	leader, _ := b.raft.LeaderWithID()
	return leader, leader != "" && b.raft.State() == raft.Follower && time.Since(b.raft.LastContact()) >= b.quiet //nolint:forbidigo // Raft's clock
}
