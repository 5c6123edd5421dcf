package server

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

// clusterWatch knows by when each member cluster with an agent must report, and
// since when those that did not are silent, on the leader. There are hundreds of
// them at most, so one look at all is cheaper than anything clever.
type clusterWatch struct {
	s *Server

	mu     sync.Mutex
	due    map[string]int64 // deadlines, in ticks; nil between terms
	silent map[string]int64 // since when, in ticks, as far as this leader knows
}

// begin takes over all clusters. What they reported to the leader before is not
// known, so all are given time to find this one.
func (w *clusterWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due, w.silent = map[string]int64{}, map[string]int64{}
	now := w.s.ticks()
	for c := range w.s.Snapshot().Clusters() {
		if hasAgent(c) && !c.Down {
			w.due[c.ID] = now + int64(max(w.s.cfg.FailoverGrace, 3*w.s.cfg.HeartbeatTTL))
		}
	}
}

func (w *clusterWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due, w.silent = nil, nil
}

// beat notes that a cluster is there, and says within what time it must report
// again.
func (w *clusterWatch) beat(id string) time.Duration {
	base := w.s.cfg.HeartbeatTTL
	ttl := base + time.Duration(w.s.cfg.Random(int64(base)))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.due != nil {
		w.due[id] = w.s.ticks() + int64(ttl+w.s.cfg.HeartbeatGrace)
		delete(w.silent, id)
	}
	return ttl
}

func (w *clusterWatch) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.due, id)
	delete(w.silent, id)
}

// clusterChores is what is due on member clusters at a time.
type clusterChores struct {
	down []model.ClusterChange // that did not report in time
	ends []string              // assignments that ended by the clock
	lost map[string][]string   // assignments that are given up, by cluster
	next int64                 // nanoseconds until there is more to do
}

func (c *clusterChores) later(in int64) { c.next = min(c.next, in) }

// look finds what is due. Reports are counted in ticks; when work ends by the clock
// is in the state, and every leader must go by it.
func (w *clusterWatch) look(snap *state.Snapshot) *clusterChores {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, ticks := w.s.writer.Now(), w.s.ticks()
	chores := &clusterChores{lost: map[string][]string{}, next: math.MaxInt64}
	if w.due == nil {
		return chores
	}
	for c := range snap.Clusters() {
		if hasAgent(c) {
			w.lookAt(snap, c, ticks, chores)
		}
	}
	for a := range snap.Assignments() {
		if at := endsAt(snap, a); at <= now {
			chores.ends = append(chores.ends, a.ID)
		} else {
			chores.later(at - now)
		}
	}
	return chores
}

// lookAt is look for a cluster with an agent; now is in ticks.
func (w *clusterWatch) lookAt(snap *state.Snapshot, c *model.Cluster, now int64, chores *clusterChores) {
	switch at, known := w.due[c.ID]; {
	case c.Down:
		w.lookAtSilent(snap, c, now, chores)
	case !known: // it was registered under another leader, whose entry came late
		w.due[c.ID] = now + int64(w.s.cfg.FailoverGrace)
		chores.later(w.due[c.ID] - now)
	case at <= now:
		chores.down = append(chores.down, model.ClusterChange{ID: c.ID, Down: true})
	default:
		chores.later(at - now)
	}
}

// lookAtSilent gives up what is assigned to a cluster that has been silent for
// too long.
func (w *clusterWatch) lookAtSilent(snap *state.Snapshot, c *model.Cluster, now int64, chores *clusterChores) {
	if w.s.cfg.ClusterLost < 0 {
		return
	}
	since, known := w.silent[c.ID]
	if !known {
		since = now
		w.silent[c.ID] = now
	}
	if at := since + int64(w.s.cfg.ClusterLost); at > now {
		chores.later(at - now)
		return
	}
	for _, a := range snap.ClusterAssignments(c.ID) {
		if a.Live() {
			chores.lost[c.ID] = append(chores.lost[c.ID], a.ID)
		}
	}
}

// endsAt is when an assignment ends by the clock, in Unix nanoseconds: after its
// time to stop, or when its work is done. What is on a cluster with an agent ends
// when that says so.
func endsAt(snap *state.Snapshot, a *model.Assignment) int64 {
	cluster := snap.Cluster(a.ClusterID)
	if a.Done || cluster != nil && hasAgent(cluster) {
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

// tendPause is the least time between two looks at what is assigned.
const tendPause = 100 * time.Millisecond

// tendAtLeast is the longest time between two looks. What ends by the clock ends by the
// time of day, and no timer is told when that is set.
const tendAtLeast = 10 * time.Second

// tendClusters does what is due on member clusters, until ctx ends. It looks
// again when something of them changes, and when the next thing is due.
func (t *term) tendClusters(ctx context.Context) {
	for ctx.Err() == nil {
		watch := t.Watch(state.TableClusters.All(), state.TableAssignments.All())
		chores := t.clusters.look(t.Snapshot())
		wait := time.Duration(min(max(chores.next, int64(tendPause)), int64(tendAtLeast)))
		if !t.tend(ctx, chores) {
			wait = time.Second // and once more
		}
		limited, cancel := clock.WithTimeout(ctx, t.cfg.Clock, wait)
		select {
		case <-watch.C:
			clock.Sleep(ctx, t.cfg.Clock, tendPause)
		case <-limited.Done():
		}
		cancel()
		watch.Stop()
	}
}

// tend writes what is due, and tells whether all of it is written.
func (t *term) tend(ctx context.Context, chores *clusterChores) bool {
	var commands []replication.Command
	if len(chores.down) > 0 {
		commands = append(commands, &replication.ChangeClusters{Changes: chores.down})
	}
	if len(chores.ends) > 0 {
		commands = append(commands, &replication.EndAssignments{IDs: chores.ends})
	}
	for cluster, ids := range chores.lost {
		reason := fmt.Sprintf("cluster %s has been silent for %v", cluster, t.cfg.ClusterLost)
		commands = append(commands, &replication.StopAssignments{IDs: ids, Reason: reason})
	}
	for _, c := range commands {
		if _, err := t.writer.Commit(ctx, c); err != nil {
			if ctx.Err() == nil {
				t.logger.WarnContext(ctx, "what is due on member clusters was not written", "err", err)
			}
			return false
		}
	}
	for _, c := range chores.down {
		t.logger.InfoContext(ctx, "member cluster missed its heartbeats", "cluster_id", c.ID)
	}
	return true
}
