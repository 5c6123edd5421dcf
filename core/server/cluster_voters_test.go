package server

import (
	"context"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/membership"
)

// simVoters is the kind of change of voters in a simulated cluster.
type simVoters int

const (
	// sameVoters: every server that crashes comes back in time.
	sameVoters simVoters = iota
	// lostVoters: a server joins, and one leaves, or is lost with its disk and removed by
	// the operator. No other server is removed: without the lost one, the majority of the
	// remaining voters may depend on a server that another change has just removed.
	lostVoters
	// removedVoters: a server joins, and a server that is unreachable for some seconds is
	// removed, and added again when it returns, with a diverged log.
	removedVoters
)

func votersOf(seed uint64) simVoters { return simVoters(seed % 3) }

// poolTiming returns the timeouts of the pool.
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

// changeVoters makes the spare server join, before one of the first faults, and loses a
// server for good, once that is possible.
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

// leave makes a server leave by command. If it is not removed in time, it counts as lost,
// and the operator removes it.
func (c *simCluster) leave(s *simServer) {
	ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
	defer cancel()
	left, server := make(chan error, 1), s.run.Load().server
	c.group.Go(func() { left <- server.LeavePool(ctx) })
	select { // it calls others, of which one may be paused until this schedule continues
	case err := <-left:
		if err == nil {
			c.seen.left.Add(1)
		}
	case <-ctx.Done():
	}
}

// mayLose reports whether the cluster survives the loss of a server: all servers have
// joined, none was lost before, and the remaining voters are as many as in the beginning,
// whether or not all of them have applied the change.
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

// removeLost removes a lost server, as an operator does.
func (c *simCluster) removeLost(_ context.Context, s *Server) error {
	for _, o := range c.servers {
		if o.absent.Load() && o.began.Load() > 0 {
			return s.RemovePeer(context.Background(), o.id)
		}
	}
	return nil
}

// waitVotersStable waits until exactly the servers that are present vote.
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
	c.t.Errorf("voters are %v, want %v", voters, here)
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
