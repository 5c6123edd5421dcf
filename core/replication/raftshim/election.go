package raftshim

import (
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// elections replaces a failed leader sooner than Raft does.
//
// In Raft, each follower checks at random times, one to two heartbeat timeouts
// apart, whether it heard from the leader within the last timeout. A failed leader
// is therefore noticed after one to three timeouts. A follower refuses its vote
// until it has noticed the failure itself, so that the slower one of two remaining
// followers decides. If the faster one's log is the shorter one, it retries only
// after one to two more timeouts. The worst case is five timeouts; two are common.
//
// Here a follower starts an election once the leader has been silent for one
// timeout. The followers are staggered by ID, so that two rarely start together.
// A follower votes for another server once the leader has been silent for most of
// a timeout (voteAfter). Terms, persisted votes and the comparison of logs remain
// Raft's own, so that elections are as safe as before.
type elections struct {
	raft      *raft.Raft
	self      raft.ServerID
	heartbeat time.Duration // the heartbeat timeout
}

// stagger returns the delay between the starts of two followers. An election takes
// two round trips and a few writes to disk.
func stagger(heartbeat time.Duration) time.Duration { return heartbeat * 3 / 10 }

// run starts elections until stop is closed.
func (e *elections) run(stop <-chan struct{}) {
	timer := time.NewTimer(e.heartbeat) //nolint:forbidigo // Raft uses the real clock
	defer timer.Stop()
	deadline, deferred := time.Time{}, false
	for {
		select {
		case <-timer.C:
		case <-stop:
			return
		}
		now := time.Now() //nolint:forbidigo // see above
		wokeLate := !deadline.IsZero() && now.Sub(deadline) > e.heartbeat/5
		deadline = e.deadline()
		switch {
		case deadline.IsZero():
			timer.Reset(e.heartbeat / 2)
		case now.Before(deadline):
			deferred = false
			timer.Reset(deadline.Sub(now))
		case wokeLate && !deferred:
			// This process was not scheduled for some time, so that a heartbeat may
			// be waiting to be read.
			deferred = true
			timer.Reset(e.heartbeat / 5)
		default:
			deferred = false
			e.forceTimeoutCheck()
			deadline = time.Time{}
			timer.Reset(e.heartbeat)
		}
	}
}

// deadline returns the time at which this follower starts an election unless it
// hears from the leader. It is zero if this server follows no leader; Raft starts
// the election in that case.
func (e *elections) deadline() time.Time {
	_, leader := e.raft.LeaderWithID()
	contact := e.raft.LastContact()
	if e.raft.State() != raft.Follower || leader == "" || contact.IsZero() {
		return time.Time{}
	}
	return contact.Add(e.heartbeat + time.Duration(e.rank(leader))*stagger(e.heartbeat))
}

// rank returns the number of voters that start before this server, at most 3.
func (e *elections) rank(leader raft.ServerID) int {
	var voters []string
	f := e.raft.GetConfiguration()
	if f.Error() != nil {
		return 0
	}
	for _, s := range f.Configuration().Servers {
		if s.Suffrage == raft.Voter && s.ID != leader {
			voters = append(voters, string(s.ID))
		}
	}
	slices.SortFunc(voters, strings.Compare)
	return min(max(slices.Index(voters, string(e.self)), 0), 3)
}

// forceTimeoutCheck makes Raft check the heartbeat timeout now. Raft does so
// whenever the timeout is shortened; so it is lengthened by a nanosecond first.
func (e *elections) forceTimeoutCheck() {
	timing := e.raft.ReloadableConfig()
	longer := timing
	longer.HeartbeatTimeout++
	longer.ElectionTimeout++
	if e.raft.ReloadConfig(longer) == nil {
		_ = e.raft.ReloadConfig(timing) // it was valid before
	}
}
