package broker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// naiveBlocked is the reference implementation of Blocked: a list of evaluations,
// and the whole history of changes.
type naiveBlocked struct {
	waiting []*sleeper
	dups    []string
	history []event // the last at each place
	floor   uint64  // index of the newest that was forgotten
	now     time.Time
}

type sleeper struct {
	ev    *model.Evaluation
	nodes []string
	seq   int
}

type event struct {
	class uint64
	node  string // "": any; with everywhere: all
	all   bool
	index uint64
	at    time.Time
}

const memory = 15 * time.Minute

func newness(ev *model.Evaluation) uint64 { return max(ev.CreateIndex, ev.SnapshotIndex) }

func (s *sleeper) waitsFor(e event) bool {
	if e.all {
		return true
	}
	if len(s.nodes) > 0 && e.node != "" {
		return slices.Contains(s.nodes, e.node)
	}
	ok, seen := s.ev.Classes[e.class]
	return s.ev.Escaped || ok || !seen
}

func allows(screen broker.UnblockFilter, ev *model.Evaluation, e event) bool {
	return screen == nil || e.all || e.node == "" || screen.MayPlace(ev, e.node, new(any))
}

func (n *naiveBlocked) block(ev *model.Evaluation, screen broker.UnblockFilter, seq int) broker.BlockResult {
	nodes := ev.BlockedNodes
	if !ev.Type.PerNode() {
		nodes = nil
	}
	s := &sleeper{ev, slices.Clone(nodes), seq}
	n.forget()
	missed := ev.SnapshotIndex < n.floor
	for _, e := range n.history {
		missed = missed || e.index > ev.SnapshotIndex && s.waitsFor(e) && allows(screen, ev, e)
	}
	if missed {
		n.drop(ev.ID)
		return broker.BlockReleased
	}
	for _, o := range n.waiting {
		if o.ev.ID == ev.ID && o.ev.ModifyIndex > ev.ModifyIndex {
			return broker.BlockTracked
		}
	}
	n.drop(ev.ID)
	return n.join(s)
}

func (n *naiveBlocked) join(s *sleeper) broker.BlockResult {
	var winner *sleeper
	var losers []*sleeper
	byNode := len(s.nodes) > 0
	for _, o := range n.waiting {
		if o.ev.JobID != s.ev.JobID || len(o.nodes) > 0 != byNode {
			continue
		}
		older, newer := o, s
		if newness(o.ev) > newness(s.ev) {
			older, newer = s, o
		}
		older.nodes = slices.DeleteFunc(older.nodes, func(x string) bool { return slices.Contains(newer.nodes, x) })
		if len(older.nodes) > 0 {
			continue
		}
		if older == s {
			if winner == nil || newness(newer.ev) > newness(winner.ev) {
				winner = newer
			}
		} else {
			losers = append(losers, older)
		}
	}
	if byNode && len(s.nodes) == 0 || !byNode && winner != nil {
		n.duplicate(s.ev.ID)
		return broker.BlockDuplicate
	}
	for _, o := range losers {
		n.drop(o.ev.ID)
		n.duplicate(o.ev.ID)
	}
	n.waiting = append(n.waiting, s)
	return broker.BlockTracked
}

// duplicate adds an evaluation to those to be cancelled, once.
func (n *naiveBlocked) duplicate(id string) {
	if !slices.Contains(n.dups, id) {
		n.dups = append(n.dups, id)
	}
}

func (n *naiveBlocked) forget() {
	n.history = slices.DeleteFunc(n.history, func(e event) bool {
		if n.now.Sub(e.at) <= memory {
			return false
		}
		n.floor = max(n.floor, e.index)
		return true
	})
}

func (n *naiveBlocked) drop(id string) {
	n.waiting = slices.DeleteFunc(n.waiting, func(s *sleeper) bool { return s.ev.ID == id })
}

func (n *naiveBlocked) unblock(e event, screen broker.UnblockFilter) []string {
	index := e.index
	for _, h := range n.history {
		if !e.all && !h.all {
			e.index = max(e.index, h.index) // an index that comes late counts as the newest
		}
	}
	n.history = slices.DeleteFunc(n.history, func(h event) bool {
		return h.class == e.class && h.node == e.node && h.all == e.all
	})
	n.history = append(n.history, e)
	if !e.all {
		n.forget()
	}
	slices.SortFunc(n.waiting, func(a, b *sleeper) int {
		if a.ev.Priority != b.ev.Priority {
			return int(b.ev.Priority - a.ev.Priority)
		}
		if a.ev.CreateIndex != b.ev.CreateIndex {
			return int(a.ev.CreateIndex) - int(b.ev.CreateIndex)
		}
		return a.seq - b.seq
	})
	var out []string
	for _, s := range slices.Clone(n.waiting) {
		if s.ev.SnapshotIndex < index && s.waitsFor(e) && allows(screen, s.ev, e) {
			out = append(out, s.ev.ID)
			n.drop(s.ev.ID)
		}
	}
	return out
}

// bits lets through an evaluation by its number and the node.
type bits uint

func (b bits) MayPlace(ev *model.Evaluation, node string, _ *any) bool {
	return b>>(int(number(ev.ID[1:])+number(node[1:]))%8)&1 == 1
}

func (bits) Excludes(*model.Evaluation, string, *any) bool { return false }

// shapeBits agree for one shape: by priority and node.
type shapeBits uint

func (b shapeBits) MayPlace(ev *model.Evaluation, node string, _ *any) bool {
	return b>>((int(ev.Priority)/10+int(number(node[1:])))%8)&1 == 1
}

func (shapeBits) Excludes(*model.Evaluation, string, *any) bool { return false }

// siftedBits are bits that exclude some of the evaluations that they reject.
type siftedBits struct {
	broker.UnblockFilter
	glance uint
	t      *rapid.T
}

func (b siftedBits) Excludes(ev *model.Evaluation, node string, noted *any) bool {
	if *noted != nil && *noted != ev.ID {
		b.t.Fatalf("%s has the note of %s", ev.ID, *noted)
	}
	*noted = ev.ID
	return !b.MayPlace(ev, node, noted) && b.glance>>(ev.Priority/10%8)&1 == 1
}

func TestBlocked_AgainstList(t *testing.T) {
	t.Parallel()
	for range soak.Count(1, 300) {
		rapid.Check(t, func(rt *rapid.T) { checkBlocked(t, rt, false) })
	}
}

// With equivalence classes, the result is that of the plain list.
func TestBlocked_EquivalenceClassesChangeNothing(t *testing.T) {
	t.Parallel()
	for range soak.Count(1, 300) {
		rapid.Check(t, func(rt *rapid.T) { checkBlocked(t, rt, true) })
	}
}

func checkBlocked(t *testing.T, rt *rapid.T, shaped bool) {
	f := newFixture(t, func(c *broker.Config) {
		if shaped {
			c.EquivalenceClass = func(ev *model.Evaluation) uint64 { return uint64(ev.Priority) }
		}
	})
	n := &naiveBlocked{now: epoch}
	index, seq := uint64(10), 0
	drawIndex := func(rt *rapid.T, name string) uint64 {
		return index - min(index, uint64(rapid.IntRange(0, 4).Draw(rt, name)))
	}
	drawScreen := func(rt *rapid.T) broker.UnblockFilter {
		mask := rapid.UintRange(0, 511).Draw(rt, "screen")
		screen := broker.UnblockFilter(bits(mask))
		switch {
		case mask > 255:
			return nil
		case shaped:
			screen = shapeBits(mask)
		}
		if glance := rapid.UintRange(0, 511).Draw(rt, "glance"); glance <= 255 {
			return siftedBits{screen, glance, rt}
		}
		return screen
	}
	same := func(rt *rapid.T, got []*model.Evaluation, want []string) {
		if !slices.EqualFunc(got, want, func(ev *model.Evaluation, id string) bool { return ev.ID == id }) {
			rt.Fatalf("released %q, want %q", ids(got), want)
		}
		for _, ev := range got {
			if w := f.Locate(ev.ID); w.State == broker.StateUnknown || w.State == broker.StateBlocked {
				rt.Fatalf("%s was released and is %v", ev.ID, w.State)
			}
		}
	}
	rt.Repeat(map[string]func(*rapid.T){
		"block": func(rt *rapid.T) {
			index++
			ev := drawBlocked(rt, shaped)
			ev.ModifyIndex, ev.SnapshotIndex = index, drawIndex(rt, "snapshot")
			screen := drawScreen(rt)
			seq++
			want := n.block(ev, screen, seq)
			if got := f.blocked.Block(ev, screen); got != want {
				rt.Fatalf("%s: %v, want %v", ev.ID, got, want)
			}
		},
		"unblock": func(rt *rapid.T) {
			index++
			e := event{class: rapid.Uint64Range(0, 2).Draw(rt, "class"), index: drawIndex(rt, "index"), at: n.now}
			if nr := rapid.IntRange(-1, 4).Draw(rt, "node"); nr >= 0 {
				e.node = fmt.Sprintf("n%d", nr)
			}
			screen := drawScreen(rt)
			want := n.unblock(e, screen)
			same(rt, f.blocked.Unblock(e.class, e.node, e.index, screen), want)
		},
		"unblockAll": func(rt *rapid.T) {
			index++
			e := event{all: true, index: index, at: n.now}
			same(rt, f.blocked.UnblockAll(e.index), n.unblock(e, nil))
		},
		"untrack": func(rt *rapid.T) {
			job := fmt.Sprintf("j%d", rapid.IntRange(0, 2).Draw(rt, "job"))
			f.blocked.Untrack(model.JobKey{Namespace: "default", ID: job})
			n.waiting = slices.DeleteFunc(n.waiting, func(s *sleeper) bool { return s.ev.JobID == job })
		},
		"advance": func(rt *rapid.T) {
			n.now = n.now.Add(6 * time.Minute)
			f.clock.AdvanceTo(n.now)
		},
		"": func(rt *rapid.T) {
			s := f.blocked.Stats()
			if s.Total != len(n.waiting) || s.Duplicates != len(n.dups) || s.Total != s.Captured+s.Escaped+s.ByNode {
				rt.Fatalf("stats %+v, want %d waiting, %d duplicates", s, len(n.waiting), len(n.dups))
			}
			sum := f.Stats()
			if got := sum.Total().Blocked; got != s.Total {
				rt.Fatalf("broker counts %d blocked, want %d", got, s.Total)
			}
			for _, w := range n.waiting {
				if !f.blocked.Contains(w.ev.ID) {
					rt.Fatalf("%s is not held", w.ev.ID)
				}
			}
		},
	})
}

func drawBlocked(rt *rapid.T, shaped bool) *model.Evaluation {
	id := rapid.IntRange(0, 9).Draw(rt, "id")
	ev := &model.Evaluation{
		ID: fmt.Sprintf("e%d", id), Namespace: "default", JobID: fmt.Sprintf("j%d", id%3), Status: model.EvalBlocked,
		Priority:    rapid.Int32Range(1, 3).Draw(rt, "priority") * 10,
		CreateIndex: rapid.Uint64Range(1, 3).Draw(rt, "create"),
	}
	if id%3 == 0 {
		ev.Type = model.JobSystem
		mask := rapid.UintRange(0, 31).Draw(rt, "nodes")
		for nr := range 5 {
			if mask>>nr&1 == 1 {
				ev.BlockedNodes = append(ev.BlockedNodes, fmt.Sprintf("n%d", nr))
			}
		}
	}
	mask := rapid.UintRange(0, 31).Draw(rt, "classes")
	if shaped {
		mask = uint(ev.Priority)*7 + 1 // one shape has one set of classes
	}
	ev.Escaped = mask&1 == 0 && mask&2 == 0
	ev.Classes = map[uint64]bool{}
	for c := range uint64(2) {
		if mask>>(2*c)&1 == 1 {
			ev.Classes[c] = mask>>(2*c+1)&1 == 1
		}
	}
	return ev
}
