package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/core/agent/driver/sim"
)

// fleetNode is one node of a fleet.
type fleetNode struct {
	fleet  *Fleet
	node   Node
	secret string
	silent atomic.Bool

	mu         sync.Mutex
	registered bool // the servers have registered it
	counted    bool // its first registration was counted
	allocs     map[string]*fleetAlloc
	updates    map[string]Update
	reporting  bool      // a report is scheduled or in flight
	polling    bool      // a poll is in flight
	pollAgain  bool      // the allocations changed during a poll
	pollAt     time.Time // time of the next poll; zero: none is scheduled
	index      uint64
}

// fleetAlloc is an allocation on a node of a fleet.
type fleetAlloc struct {
	alloc    *Allocation
	set      sim.Settings
	status   Status
	started  time.Time
	stopping bool
	listed   bool
}

func (a *fleetAlloc) over() bool { return a.status.Terminal() }

// lease registers the node or renews its lease, and polls its allocations.
func (n *fleetNode) lease(ctx context.Context) {
	if n.silent.Load() {
		return
	}
	f := n.fleet
	n.mu.Lock()
	registered := n.registered
	n.mu.Unlock()
	var lease Lease
	var err error
	if registered {
		lease, err = f.c.Servers.Heartbeat(ctx, n.node.ID, n.secret)
		f.stats.heartbeats.Add(1)
	} else {
		lease, err = f.c.Servers.Register(ctx, &n.node, n.secret)
		f.stats.registered.Add(1)
	}
	if err != nil {
		if errors.Is(err, ErrUnknownNode) {
			n.setRegistered(false)
		}
		f.timers.add(f.failed(ctx, "lease", n, err), n.lease)
		return
	}
	n.setRegistered(true)
	f.timers.add(time.Now().Add(halfTTL(lease.TTL)), n.lease)
	if f.c.Poll <= 0 || !registered {
		n.pollSoon(0)
	}
}

func (n *fleetNode) setRegistered(registered bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.registered = registered
	if registered && !n.counted {
		n.counted = true
		if n.fleet.unregistered.Add(-1) == 0 {
			close(n.fleet.allRegistered)
		}
	}
}

// pollSoon schedules a poll after d. Several calls share one poll: an earlier one
// replaces a later one.
func (n *fleetNode) pollSoon(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := time.Now().Add(d)
	switch {
	case n.polling:
		n.pollAgain = n.pollAgain || d == 0
	case n.pollAt.IsZero() || at.Before(n.pollAt):
		n.pollAt = at
		n.fleet.timers.add(at, func(ctx context.Context) { n.poll(ctx, at) })
	}
}

// poll requests the node's allocations and reconciles the node with them, unless
// another poll than that of at is scheduled.
func (n *fleetNode) poll(ctx context.Context, at time.Time) {
	f := n.fleet
	n.mu.Lock()
	if !n.pollAt.Equal(at) {
		n.mu.Unlock()
		return
	}
	n.pollAt, n.polling, n.pollAgain = time.Time{}, true, false
	n.mu.Unlock()
	var err error
	if !n.silent.Load() {
		var as *Assignment
		as, err = f.c.Servers.Allocations(ctx, n.node.ID, n.secret, 0, 0)
		f.stats.polls.Add(1)
		if err == nil {
			n.assign(as)
		}
	}
	n.mu.Lock()
	again := n.pollAgain
	n.polling = false
	n.mu.Unlock()
	switch {
	case err != nil:
		n.pollSoon(time.Until(f.failed(ctx, "allocations", n, err)))
	case again:
		n.pollSoon(0)
	case f.c.Poll > 0:
		n.pollSoon(f.c.Poll)
	}
}

// assign starts and stops allocations as assigned.
func (n *fleetNode) assign(as *Assignment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if as.Index < n.index {
		return // older than the last reconciliation
	}
	n.index = as.Index
	for _, a := range n.allocs {
		a.listed = false
	}
	for _, alloc := range as.Allocations {
		a := n.allocs[alloc.ID]
		if a == nil {
			if alloc.Status.Terminal() {
				continue
			}
			a = &fleetAlloc{alloc: alloc, status: StatusPending}
			n.allocs[alloc.ID] = a
		}
		a.listed = true
		if !alloc.Run {
			n.stop(a)
		}
		if alloc.Status != a.status && a.status != StatusPending {
			n.report(a, "")
		}
	}
	for id, a := range n.allocs {
		if !a.listed && !a.over() {
			n.stop(a)
		}
		if !a.listed && a.over() && n.gone(a.alloc.Preempted, map[string]bool{}) {
			delete(n.allocs, id)
		}
	}
	n.startReady()
}

// startReady starts allocations that wait for no victim. n.mu must be held.
func (n *fleetNode) startReady() {
	for _, a := range n.allocs {
		if a.status == StatusPending && !a.stopping && n.gone(a.alloc.Preempted, map[string]bool{}) {
			n.start(a)
		}
	}
}

// gone reports whether none of these allocations, and none of their victims, is left here.
func (n *fleetNode) gone(ids []string, seen map[string]bool) bool {
	for _, id := range ids {
		v := n.allocs[id]
		if v == nil || seen[id] {
			continue
		}
		seen[id] = true
		if !v.over() || !n.gone(v.alloc.Preempted, seen) {
			return false
		}
	}
	return true
}

// start simulates an allocation for the duration of its longest task. n.mu must be held.
func (n *fleetNode) start(a *fleetAlloc) {
	n.fleet.stats.started.Add(1)
	longest, forever := time.Duration(0), len(a.alloc.Tasks) == 0
	for i := range a.alloc.Tasks {
		t := &a.alloc.Tasks[i]
		set, err := sim.Parse(t.Config)
		if t.Driver != "sim" {
			err = fmt.Errorf("a simulated node has no driver %q", t.Driver)
		}
		if err != nil {
			n.end(a, StatusFailed, "task "+t.Name+": "+err.Error())
			return
		}
		run := time.Duration(set.RunFor)
		run = cmp.Or(run, a.alloc.Duration)
		forever = forever || run == 0
		if run >= longest {
			longest, a.set = run, set
		}
	}
	a.status, a.started = StatusRunning, time.Now()
	n.report(a, "")
	if !forever {
		n.endAfter(a, longest, func() (Status, string) {
			if a.set.ExitCode != 0 {
				return StatusFailed, fmt.Sprintf("exited with code %d", a.set.ExitCode)
			}
			return StatusComplete, ""
		})
	}
}

// stop ends an allocation after its configured stop time, or at its kill timeout.
// n.mu must be held.
func (n *fleetNode) stop(a *fleetAlloc) {
	if a.over() || a.stopping {
		return
	}
	a.stopping = true
	why := a.alloc.Reason
	if a.status == StatusPending {
		n.end(a, StatusComplete, "stopped before it started")
		return
	}
	after := time.Duration(a.set.StopAfter)
	for i := range a.alloc.Tasks {
		if t := &a.alloc.Tasks[i]; !sim.Stops(&a.set, killSignal(t)) {
			after = max(after, killTimeout(t))
		} else {
			after = min(after, killTimeout(t))
		}
	}
	if after <= 0 {
		n.end(a, StatusComplete, why)
		return
	}
	n.endAfter(a, after, func() (Status, string) { return StatusComplete, why })
}

func (n *fleetNode) endAfter(a *fleetAlloc, d time.Duration, how func() (Status, string)) {
	n.fleet.timers.add(time.Now().Add(d), func(context.Context) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if a.over() {
			return
		}
		status, text := how()
		n.end(a, status, text)
		n.startReady()
	})
}

// end records that an allocation has ended. n.mu must be held.
func (n *fleetNode) end(a *fleetAlloc, status Status, text string) {
	n.fleet.stats.ended.Add(1)
	a.status = status
	n.report(a, text)
}

// report adds a status to the node's next report. n.mu must be held.
func (n *fleetNode) report(a *fleetAlloc, text string) {
	if n.updates == nil {
		n.updates = map[string]Update{}
	}
	n.updates[a.alloc.ID] = Update{ID: a.alloc.ID, Status: a.status, Text: text, Started: a.started}
	if !n.reporting {
		n.reporting = true
		n.fleet.timers.add(time.Now().Add(n.fleet.c.ReportWindow), n.send)
	}
}

// send sends the gathered statuses and repeats the request until a server accepts them.
func (n *fleetNode) send(ctx context.Context) {
	f := n.fleet
	n.mu.Lock()
	batch := make([]Update, 0, len(n.updates))
	for _, u := range n.updates {
		batch = append(batch, u)
	}
	sending := n.updates
	n.updates = nil
	n.mu.Unlock()
	err := errors.New("the node is disconnected")
	if !n.silent.Load() {
		err = f.c.Servers.Update(ctx, n.node.ID, n.secret, batch)
		f.stats.reports.Add(1)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err != nil:
		maps.Copy(sending, n.updates) // newer statuses replace older ones
		n.updates = sending
		f.timers.add(f.failed(ctx, "report", n, err), n.send)
	case len(n.updates) > 0:
		f.timers.add(time.Now().Add(f.c.ReportWindow), n.send)
	default:
		n.reporting = false
	}
}
