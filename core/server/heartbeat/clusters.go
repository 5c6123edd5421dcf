package heartbeat

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

const (
	// minCheckInterval is the shortest time between two checks of the assignments.
	minCheckInterval = 100 * time.Millisecond
	// maxCheckInterval is the longest time between two checks. Assignments that end by the
	// clock end at a time of day, and setting the clock fires no timer.
	maxCheckInterval = 10 * time.Second
	// retryInterval is the wait after a failed write.
	retryInterval = time.Second
)

// Clusters tracks the deadlines of member clusters that have an agent, and since when
// those that missed theirs have been silent. There are hundreds of clusters at most, so
// that checking all of them is cheap enough.
type Clusters struct {
	cfg Config

	mu     sync.Mutex
	due    map[string]int64 // deadlines in ticks; nil when inactive
	silent map[string]int64 // start of the silence in ticks, as this leader observed it
}

// NewClusters returns a tracker that is inactive before Start.
func NewClusters(c Config) *Clusters { return &Clusters{cfg: c} }

// Start tracks all clusters that are up. The deadlines of the leader before are
// unknown, so every cluster gets time to find this one.
func (c *Clusters) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due, c.silent = map[string]int64{}, map[string]int64{}
	now := c.cfg.Ticks()
	for cluster := range c.cfg.Writer.Snapshot().Clusters() {
		if cluster.HasAgent() && !cluster.Down {
			c.due[cluster.ID] = now + int64(max(c.cfg.FailoverGrace, 3*c.cfg.TTL))
		}
	}
}

// Stop drops all deadlines.
func (c *Clusters) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due, c.silent = nil, nil
}

// Beat records that a cluster reported, and returns the time within which it must report
// again.
func (c *Clusters) Beat(id string) time.Duration {
	base := c.cfg.TTL
	ttl := base + time.Duration(c.cfg.Random(int64(base)))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.due != nil {
		c.due[id] = c.cfg.Ticks() + int64(ttl+c.cfg.Grace)
		delete(c.silent, id)
	}
	return ttl
}

// Remove stops tracking a cluster.
func (c *Clusters) Remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.due, id)
	delete(c.silent, id)
}

// An expiry holds the changes of member clusters that are due at one time.
type expiry struct {
	down  []model.ClusterChange // clusters that missed their deadline
	ended []string              // assignments that ended by the clock
	lost  map[string][]string   // assignments on clusters that were silent for too long, by cluster
	next  int64                 // nanoseconds until more may be due
}

func (e *expiry) checkAgainIn(d int64) { e.next = min(e.next, d) }

// check returns the changes that are due. Reports are counted in ticks. The end of an assignment by
// the clock is a time in the state, which every leader must apply.
func (c *Clusters) check(snap *state.Snapshot) *expiry {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, ticks := c.cfg.Writer.Now(), c.cfg.Ticks()
	e := &expiry{lost: map[string][]string{}, next: math.MaxInt64}
	if c.due == nil {
		return e
	}
	for cluster := range snap.Clusters() {
		if cluster.HasAgent() {
			c.checkCluster(snap, cluster, ticks, e)
		}
	}
	for a := range snap.Assignments() {
		if at := endTime(snap, a); at <= now {
			e.ended = append(e.ended, a.ID)
		} else {
			e.checkAgainIn(at - now)
		}
	}
	return e
}

// checkCluster adds the due changes of a cluster with an agent; now is in ticks.
func (c *Clusters) checkCluster(snap *state.Snapshot, cluster *model.Cluster, now int64, e *expiry) {
	switch at, known := c.due[cluster.ID]; {
	case cluster.Down:
		c.checkSilent(snap, cluster, now, e)
	case !known: // registered under another leader, whose entry arrived late
		c.due[cluster.ID] = now + int64(c.cfg.FailoverGrace)
		e.checkAgainIn(c.due[cluster.ID] - now)
	case at <= now:
		e.down = append(e.down, model.ClusterChange{ID: cluster.ID, Down: true})
	default:
		e.checkAgainIn(at - now)
	}
}

// checkSilent adds the assignments of a cluster that has been silent for too long.
func (c *Clusters) checkSilent(snap *state.Snapshot, cluster *model.Cluster, now int64, e *expiry) {
	if c.cfg.ClusterLost < 0 {
		return
	}
	since, known := c.silent[cluster.ID]
	if !known {
		since = now
		c.silent[cluster.ID] = now
	}
	if at := since + int64(c.cfg.ClusterLost); at > now {
		e.checkAgainIn(at - now)
		return
	}
	for _, a := range snap.ClusterAssignments(cluster.ID) {
		if a.Live() {
			e.lost[cluster.ID] = append(e.lost[cluster.ID], a.ID)
		}
	}
}

// endTime returns when an assignment ends by the clock, in Unix nanoseconds: after its
// kill timeout if it was stopped, or when its duration is over. It returns
// math.MaxInt64 for an assignment on a cluster with an agent, which reports the end.
func endTime(snap *state.Snapshot, a *model.Assignment) int64 {
	cluster := snap.Cluster(a.ClusterID)
	if a.Done || cluster != nil && cluster.HasAgent() {
		return math.MaxInt64
	}
	b := snap.Binding(a.Binding)
	switch {
	case !a.Live() && (cluster == nil || b == nil):
		return a.EndTime
	case !a.Live():
		return a.EndTime + b.KillTimeout
	case b != nil && b.Duration > 0:
		return a.StartTime + b.Duration
	}
	return math.MaxInt64
}

// Run writes due changes until ctx ends. It checks again when clusters or assignments
// change, and when more may be due.
func (c *Clusters) Run(ctx context.Context) {
	for ctx.Err() == nil {
		watch := c.cfg.Writer.Store.Watch(state.TableClusters.All(), state.TableAssignments.All())
		e := c.check(c.cfg.Writer.Snapshot())
		wait := time.Duration(min(max(e.next, int64(minCheckInterval)), int64(maxCheckInterval)))
		if !c.write(ctx, e) {
			wait = retryInterval
		}
		limited, cancel := clock.WithTimeout(ctx, c.cfg.Clock, wait)
		select {
		case <-watch.C:
			clock.Sleep(ctx, c.cfg.Clock, minCheckInterval)
		case <-limited.Done():
		}
		cancel()
		watch.Stop()
	}
}

// write writes the due changes and reports whether all of them are written.
func (c *Clusters) write(ctx context.Context, e *expiry) bool {
	var commands []replication.Command
	if len(e.down) > 0 {
		commands = append(commands, &replication.ChangeClusters{Changes: e.down})
	}
	if len(e.ended) > 0 {
		commands = append(commands, &replication.EndAssignments{IDs: e.ended})
	}
	for cluster, ids := range e.lost {
		reason := fmt.Sprintf("cluster %s has been silent for %v", cluster, c.cfg.ClusterLost)
		commands = append(commands, &replication.StopAssignments{IDs: ids, Reason: reason})
	}
	for _, command := range commands {
		if _, err := c.cfg.Writer.Commit(ctx, command); err != nil {
			if ctx.Err() == nil {
				c.cfg.Logger.WarnContext(ctx, "failed to write expired member clusters and assignments", "err", err)
			}
			return false
		}
	}
	for _, change := range e.down {
		c.cfg.Logger.InfoContext(ctx, "member cluster missed its heartbeats", "cluster_id", change.ID)
	}
	return true
}
