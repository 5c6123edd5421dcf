package server

import (
	"context"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/membership"
)

// simVoters is what becomes of the servers that vote in a simulated cluster.
type simVoters int

const (
	// sameVoters: whoever crashes comes back in time.
	sameVoters simVoters = iota
	// lostVoters: a server joins, and one leaves, or is lost with its disk. An operator removes it.
	// Nobody else is removed: without the one that is lost, the majority of those who
	// are left may hang on a server that another change has just removed.
	lostVoters
	// removedVoters: a server joins, and whoever is away for some seconds is removed, and
	// taken in again when it is back, with a log that tells another story.
	removedVoters
)

func votersOf(seed uint64) simVoters { return simVoters(seed % 3) }

// poolTiming is how patient the pool is.
func (v simVoters) poolTiming() membership.Timing {
	t := membership.Timing{Dead: time.Hour, Poll: 2 * time.Second}
	if v != sameVoters {
		t.Reconcile, t.Stable, t.Promote, t.Health = time.Second, time.Second, time.Second, time.Second
	}
	if v == removedVoters {
		t.Dead = 3 * time.Second
	}
	return t
}

// changeVoters has the server join that is there for it, before one of the first faults, and
// one be lost for good, once that is possible.
func (c *simCluster) changeVoters(faults int) {
	if c.size.voters == sameVoters {
		return
	}
	newcomer := c.servers[simVotes]
	switch {
	case newcomer.began.Load() == 0:
		if c.rand.IntN(3) == 0 || faults > c.size.faults/4 {
			newcomer.absent.Store(false)
			newcomer.start()
		}
	case c.size.voters == lostVoters:
		if lost := c.target(); c.mayLose(lost) {
			lost.absent.Store(true)
			if c.rand.IntN(2) == 0 {
				c.leave(lost)
			}
			lost.crash()
		}
	}
}

// leave has a server leave by command. Where nobody lets it go in time, it is as good as
// lost, and the operator removes it.
func (c *simCluster) leave(s *simServer) {
	ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
	defer cancel()
	left, server := make(chan error, 1), s.run.Load().server
	c.group.Go(func() { left <- server.LeavePool(ctx) })
	select { // it asks others, of whom one may be paused until this schedule goes on
	case err := <-left:
		if err == nil {
			c.seen.left.Add(1)
		}
	case <-ctx.Done():
	}
}

// mayLose is whether the rest goes on without a server, once everybody is there: it has
// joined, nobody was lost before, and the others that vote are as many as in the beginning,
// whether all of them have heard of it or not.
func (c *simCluster) mayLose(s *simServer) bool {
	for _, o := range c.servers {
		if o.absent.Load() {
			return false
		}
	}
	if s.run.Load() == nil {
		return false
	}
	for _, o := range c.servers {
		r := o.run.Load()
		if r == nil || !r.node.IsLeader() {
			continue
		}
		voters := r.server.Voters()
		return len(voters) > simVotes || len(voters) == simVotes && !slices.Contains(voters, s.id)
	}
	return false
}

// removeLost is what an operator does about a server that was lost.
func (c *simCluster) removeLost(_ context.Context, s *Server) error {
	for _, o := range c.servers {
		if o.absent.Load() && o.began.Load() > 0 {
			return s.RemovePeer(context.Background(), o.id)
		}
	}
	return nil
}

// waitVotersStable waits until everybody who is there votes, and nobody else does.
func (c *simCluster) waitVotersStable() {
	if c.size.voters == sameVoters {
		return
	}
	c.t.Helper()
	var here, voters []string
	for _, s := range c.servers {
		if s.run.Load() != nil {
			here = append(here, s.id)
		}
	}
	for range 600 {
		c.must(func(ctx context.Context, s *Server) error {
			if err := c.removeLost(ctx, s); err != nil && apierror.CodeOf(err) != apierror.CodeNotFound {
				return err
			}
			voters = s.Voters()
			return nil
		})
		slices.Sort(voters)
		if slices.Equal(voters, here) {
			c.countVoters(here)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.t.Errorf("servers %v vote, and %v are there", voters, here)
}

func (c *simCluster) countVoters(here []string) {
	if slices.Contains(here, c.servers[simVotes].id) {
		c.seen.joined.Add(1)
	}
	for _, s := range c.servers {
		if s.absent.Load() && s.began.Load() > 0 {
			c.seen.lost.Add(1)
		}
	}
}
