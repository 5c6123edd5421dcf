package broker_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// naive is the broker as its description reads: one slice of everything, which
// every operation scans and sorts.
type naive struct {
	now   time.Time
	seq   int
	items []*item // all that is held
	turn  map[string]*item
	seen  map[string]uint64 // newest change, by job, while it has evaluations
}

func newNaive() *naive {
	return &naive{now: epoch, turn: map[string]*item{}, seen: map[string]uint64{}}
}

type item struct {
	ev        *model.Evaluation
	state     broker.State
	seq       int // arrival
	leased    int // order of lease starts
	failedAt  int
	index     uint64
	cover     uint64
	token     broker.Token
	attempts  int
	due       time.Time
	paused    bool
	newer     *model.Evaluation
	coveredBy string
}

func (n *naive) find(id string) *item {
	for _, x := range n.items {
		if x.ev.ID == id {
			return x
		}
	}
	return nil
}

func (n *naive) next() int { n.seq++; return n.seq }

func (n *naive) drop(x *item) {
	n.items = slices.DeleteFunc(n.items, func(o *item) bool { return o == x })
	if n.turn[x.ev.JobID] == x {
		delete(n.turn, x.ev.JobID)
		n.promote(x.ev.JobID)
	}
}

// of lists the items of a job that still have work, in some of the states.
func (n *naive) of(job string, states ...broker.State) []*item {
	var out []*item
	for _, x := range n.items {
		if x.ev.JobID == job && slices.Contains(states, x.state) {
			out = append(out, x)
		}
	}
	return out
}

// look notes the newest change of every job that has evaluations, and forgets
// those that have none.
func (n *naive) look() {
	seen := map[string]uint64{}
	for _, x := range n.items {
		job := x.ev.JobID
		if x.state != broker.StateCancelable && x.state != broker.StateFailed {
			seen[job] = max(seen[job], n.seen[job], x.index)
			if x.newer != nil {
				seen[job] = max(seen[job], x.newer.ModifyIndex)
			}
		}
	}
	n.seen = seen
}

func (n *naive) best(job string) *item {
	ps := n.of(job, broker.StatePending)
	if len(ps) == 0 {
		return nil
	}
	return slices.MaxFunc(ps, func(a, b *item) int {
		if a.ev.Priority != b.ev.Priority {
			return int(a.ev.Priority - b.ev.Priority)
		}
		if a.index != b.index {
			return int(a.index) - int(b.index)
		}
		return a.seq - b.seq
	})
}

func (n *naive) ready(x *item) {
	x.state = broker.StateReady
	n.turn[x.ev.JobID] = x
}

func (n *naive) promote(job string) {
	if best := n.best(job); best != nil && n.turn[job] == nil {
		n.ready(best)
	}
}

func (n *naive) contend(x *item) {
	x.state = broker.StatePending
	turn := n.turn[x.ev.JobID]
	switch {
	case turn == nil:
		n.ready(x)
	case turn.state == broker.StateReady && x.ev.Priority > turn.ev.Priority:
		turn.state = broker.StatePending
		n.ready(x)
	}
}

func (n *naive) place(x *item) {
	if until := time.Unix(0, x.ev.WaitUntil); x.ev.WaitUntil != 0 && until.After(n.now) {
		x.state, x.due = broker.StateDelayed, until
		return
	}
	n.contend(x)
}

func isNewer(a, b *model.Evaluation) bool {
	return a.ModifyIndex > b.ModifyIndex || a.ModifyIndex == b.ModifyIndex && a.Priority > b.Priority
}

func (n *naive) enqueue(ev *model.Evaluation) {
	x := n.find(ev.ID)
	switch {
	case x == nil:
		if ev.Status.Final() {
			return
		}
		x = &item{ev: ev, seq: n.next(), index: ev.ModifyIndex, cover: ev.ModifyIndex}
		n.items = append(n.items, x)
		n.place(x)
	case ev.Status.Final():
		if x.state != broker.StateUnacked {
			n.drop(x)
		}
	case x.state == broker.StateUnacked:
		known := x.ev
		if x.newer != nil {
			known = x.newer
		}
		if isNewer(ev, known) {
			x.newer = ev
		}
	case isNewer(ev, x.ev):
		n.update(x, ev)
	}
}

func (n *naive) update(x *item, ev *model.Evaluation) {
	x.ev, x.index, x.cover = ev, max(x.index, ev.ModifyIndex), max(x.cover, ev.ModifyIndex)
	switch x.state {
	case broker.StateBackoff:
	case broker.StateReady:
		if time.Unix(0, ev.WaitUntil).After(n.now) {
			delete(n.turn, ev.JobID)
			n.place(x)
			n.promote(ev.JobID)
			return
		}
		if best := n.best(ev.JobID); best != nil && best.ev.Priority > ev.Priority {
			x.state = broker.StatePending
			n.ready(best)
		}
	case broker.StateCancelable, broker.StateFailed:
		x.attempts, x.coveredBy, x.cover = 0, "", x.index
		n.place(x)
	default:
		n.place(x)
	}
}

func (n *naive) firstReady(types []model.JobType) *item {
	var rs []*item
	for _, x := range n.items {
		if x.state == broker.StateReady && slices.Contains(types, x.ev.Type) {
			rs = append(rs, x)
		}
	}
	slices.SortFunc(rs, func(a, b *item) int {
		if a.ev.Priority != b.ev.Priority {
			return int(b.ev.Priority - a.ev.Priority)
		}
		if a.ev.CreateIndex != b.ev.CreateIndex {
			return int(a.ev.CreateIndex) - int(b.ev.CreateIndex)
		}
		return a.seq - b.seq
	})
	if len(rs) == 0 {
		return nil
	}
	return rs[0]
}

const lease = 60 * time.Second

func (n *naive) lease(x *item) { x.due, x.leased, x.paused = n.now.Add(lease), n.next(), false }

func (n *naive) ack(x *item, snapshot uint64) {
	job := x.ev.JobID
	delete(n.turn, job)
	for _, p := range n.of(job, broker.StatePending, broker.StateBackoff) {
		if p.index <= snapshot {
			p.state, p.coveredBy = broker.StateCancelable, x.ev.ID
		}
	}
	if best := n.best(job); best != nil {
		n.ready(best)
		for _, p := range n.of(job, broker.StatePending) {
			p.state, p.coveredBy = broker.StateCancelable, best.ev.ID
			best.cover = max(best.cover, p.cover)
		}
	}
	again := x.newer
	if again == nil || again.ModifyIndex <= snapshot {
		n.items = slices.DeleteFunc(n.items, func(o *item) bool { return o == x })
		return
	}
	*x = item{ev: again, seq: n.next(), index: again.ModifyIndex, cover: again.ModifyIndex}
	n.place(x)
}

func (n *naive) nack(x *item) {
	job := x.ev.JobID
	delete(n.turn, job)
	if x.newer != nil {
		x.ev, x.index, x.cover = x.newer, max(x.index, x.newer.ModifyIndex), max(x.cover, x.newer.ModifyIndex)
	}
	x.newer, x.token = nil, 0
	if x.attempts >= 3 {
		x.state, x.failedAt = broker.StateFailed, n.next()
	} else {
		x.state, x.due = broker.StateBackoff, n.now.Add(time.Second)
		if x.attempts > 1 {
			x.due = n.now.Add(time.Duration(x.attempts-1) * 20 * time.Second)
		}
	}
	n.promote(job)
}

// advance fires all that is due in order of time: leases, then delays.
func (n *naive) advance(to time.Time) {
	for {
		at := to
		for _, x := range n.items {
			if n.timed(x) && x.due.Before(at) {
				at = x.due
			}
		}
		n.now = at
		n.expire(broker.StateUnacked)
		n.expire(broker.StateDelayed, broker.StateBackoff)
		if at.Equal(to) {
			return
		}
	}
}

func (n *naive) timed(x *item) bool {
	return x.state == broker.StateUnacked && !x.paused || x.state == broker.StateDelayed || x.state == broker.StateBackoff
}

func (n *naive) expire(states ...broker.State) {
	var due []*item
	for _, x := range n.items {
		if n.timed(x) && slices.Contains(states, x.state) && !x.due.After(n.now) {
			due = append(due, x)
		}
	}
	slices.SortFunc(due, func(a, b *item) int {
		if c := a.due.Compare(b.due); c != 0 {
			return c
		}
		if a.state == broker.StateUnacked {
			return a.leased - b.leased
		}
		return a.seq - b.seq
	})
	for _, x := range due {
		if x.state == broker.StateUnacked {
			n.nack(x)
		} else {
			n.contend(x)
		}
	}
}

// pair drives the two side by side.
type pair struct {
	*fixture
	n     *naive
	index uint64
}

func (p *pair) draw(t *rapid.T) *model.Evaluation {
	id := rapid.IntRange(0, 11).Draw(t, "id")
	p.index++
	ev := &model.Evaluation{
		ID: fmt.Sprintf("e%d", id), Namespace: "default", JobID: fmt.Sprintf("j%d", id%4),
		Type:        model.JobType(rapid.IntRange(0, 2).Draw(t, "type")),
		Priority:    rapid.Int32Range(-1, 2).Draw(t, "priority") * 10,
		CreateIndex: rapid.Uint64Range(1, 3).Draw(t, "create"),
		ModifyIndex: p.index,
	}
	if rapid.IntRange(0, 3).Draw(t, "stale") == 0 {
		ev.ModifyIndex = rapid.Uint64Range(0, p.index).Draw(t, "modify")
	}
	if rapid.IntRange(0, 5).Draw(t, "later") == 0 {
		ev.WaitUntil = p.n.now.Add(time.Duration(rapid.IntRange(-1, 30).Draw(t, "wait")) * time.Second).UnixNano()
	}
	if rapid.IntRange(0, 9).Draw(t, "final") == 0 {
		ev.Status = model.EvalCancelled
	}
	return ev
}

// unacked is some delivery, or nil.
func (p *pair) unacked(t *rapid.T) *item {
	var out []*item
	for _, x := range p.n.items {
		if x.state == broker.StateUnacked {
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		t.Skip("nothing is delivered")
	}
	return rapid.SampledFrom(out).Draw(t, "delivery")
}

func (p *pair) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"enqueue": func(t *rapid.T) {
			for range rapid.IntRange(1, 3).Draw(t, "n") {
				ev := p.draw(t)
				p.Enqueue(ev)
				p.n.enqueue(ev)
				p.n.look()
			}
		},
		"dequeue": p.dequeue,
		"ack":     p.ackSome,
		"nack": func(t *rapid.T) {
			x := p.unacked(t)
			must(t, p.Nack(x.ev.ID, x.token))
			p.n.nack(x)
		},
		"renew": func(t *rapid.T) {
			x := p.unacked(t)
			must(t, p.Renew(x.ev.ID, x.token))
			if !x.paused {
				p.n.lease(x)
			}
		},
		"pauseTimer": func(t *rapid.T) {
			x := p.unacked(t)
			must(t, p.PauseTimer(x.ev.ID, x.token))
			x.paused = true
		},
		"resumeTimer": func(t *rapid.T) {
			x := p.unacked(t)
			must(t, p.ResumeTimer(x.ev.ID, x.token))
			if x.paused {
				p.n.lease(x)
			}
		},
		"advance": func(t *rapid.T) {
			d := time.Duration(rapid.SampledFrom([]int{1, 5, 20, 60}).Draw(t, "s")) * time.Second
			p.advance(d)
			p.n.advance(p.n.now.Add(d))
		},
		"reap":  p.reap,
		"flush": p.flush,
		"":      p.check,
	}
}

func (p *pair) dequeue(t *rapid.T) {
	types := rapid.SampledFrom([][]model.JobType{{0}, {1}, {0, 1}, {0, 1, 2}, {2, 1, 0}}).Draw(t, "types")
	x := p.n.firstReady(types)
	d, ok := p.TryDequeue(types)
	if ok != (x != nil) {
		t.Fatalf("delivered %v, want %v", d, x)
	}
	if !ok {
		return
	}
	x.state, x.token, x.attempts = broker.StateUnacked, d.Token, x.attempts+1
	p.n.lease(x)
	if d.Eval != x.ev || d.WaitIndex != p.n.seen[x.ev.JobID] || d.Attempt != x.attempts {
		t.Fatalf("delivered %s, wait index %d, attempt %d; want %s, %d, %d", d.Eval.ID, d.WaitIndex, d.Attempt,
			x.ev.ID, p.n.seen[x.ev.JobID], x.attempts)
	}
}

func (p *pair) ackSome(t *rapid.T) {
	x := p.unacked(t)
	snapshot := rapid.Uint64Range(0, p.index+1).Draw(t, "snapshot")
	err := p.Ack(x.ev.ID, x.token, snapshot)
	if snapshot < x.cover {
		if !errors.Is(err, broker.ErrSnapshotTooOld) {
			t.Fatalf("ack on %d, which does not cover %d: %v", snapshot, x.cover, err)
		}
		return
	}
	must(t, err)
	p.n.ack(x, snapshot)
}

// reap takes everything; the order within one Ack is the broker's own affair.
func (p *pair) reap(t *rapid.T) {
	got, want := map[string]string{}, map[string]string{}
	for _, c := range p.PopCancelable(100) {
		got[c.Eval.ID] = c.SupersededBy
	}
	var failed []*item
	for _, x := range slices.Clone(p.n.items) {
		switch x.state {
		case broker.StateCancelable:
			want[x.ev.ID] = x.coveredBy
			p.n.drop(x)
		case broker.StateFailed:
			failed = append(failed, x)
			p.n.drop(x)
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("cancelable %v, want %v", got, want)
	}
	slices.SortFunc(failed, func(a, b *item) int { return a.failedAt - b.failedAt })
	fails := p.PopFailed(100)
	if len(fails) != len(failed) {
		t.Fatalf("failed %v, want %d", ids(fails), len(failed))
	}
	for i, ev := range fails {
		if ev != failed[i].ev {
			t.Fatalf("failed %s, want %s", ev.ID, failed[i].ev.ID)
		}
	}
}

func (p *pair) flush(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
		t.Skip("not now")
	}
	p.Disable()
	p.Enqueue(eval("ignored", 50, 1))
	p.Enable()
	now := p.n.now
	p.n = newNaive()
	p.n.now = now
}

func (p *pair) check(t *rapid.T) {
	p.n.look()
	var counts broker.Counts
	inflight := map[string]string{}
	for i := range 12 {
		id := fmt.Sprintf("e%d", i)
		got := p.Locate(id)
		want := broker.Location{}
		if x := p.n.find(id); x != nil {
			want = broker.Location{State: x.state, Attempt: x.attempts, CoveredBy: x.coveredBy}
			if p.n.timed(x) {
				want.Until = x.due.UTC()
			}
			if x.state == broker.StatePending {
				want.PendingBehind = p.n.turn[x.ev.JobID].ev.ID
			}
			if x.state == broker.StateUnacked {
				if other, ok := inflight[x.ev.JobID]; ok {
					t.Fatalf("%s and %s of one job are in flight", other, id)
				}
				inflight[x.ev.JobID] = id
			}
		}
		if got != want {
			t.Fatalf("%s is %+v, want %+v", id, got, want)
		}
		tally(&counts, want.State)
	}
	s := p.Stats()
	if got := s.Total(); got != counts {
		t.Fatalf("counts %+v, want %+v", got, counts)
	}
	if next, ok := p.clock.Next(); ok && counts.Unacked+counts.Delayed+counts.Backoff+counts.Ready == 0 {
		t.Fatalf("a timer waits for nothing until %v", next)
	}
}

func tally(c *broker.Counts, s broker.State) {
	switch s {
	case broker.StateReady:
		c.Ready++
	case broker.StateUnacked:
		c.Unacked++
	case broker.StatePending:
		c.Pending++
	case broker.StateDelayed:
		c.Delayed++
	case broker.StateBackoff:
		c.Backoff++
	case broker.StateCancelable:
		c.Cancelable++
	case broker.StateFailed:
		c.Failed++
	}
}

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func must(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestBroker_AgainstSortedSlices(t *testing.T) {
	t.Parallel()
	for range soak.Count(1, 300) {
		rapid.Check(t, func(rt *rapid.T) {
			p := &pair{fixture: newFixture(t), n: newNaive(), index: 3}
			rt.Repeat(p.actions())
		})
	}
}
