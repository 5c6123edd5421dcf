package preempt

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// twins are options that nothing which the policy reads tells from an earlier
// option of the same call. An option's answer depends on its own rows alone, so
// the earlier one's is theirs, too. Nodes that were bought together and run the
// same things are many in a large cluster, and a call to a policy, wherever that
// runs, then costs what the different ones among them cost.
//
// A twin is looked for in its own call only, and found or not by what it is: what
// a policy is asked depends on neither workers nor addresses.
type twins struct {
	usable  bool // the policy reads nothing that tells any two options apart
	byGroup bool // it reads what groups tell apart, beside amounts and priorities

	slots [twinSlots]int32 // position in batch.places + 1, by hash
	used  []int32          // of slots
	list  []twin
	rows  []*state.Row // candidates of all in list
}

// twin is a place that gets the answer of another one of the call.
type twin struct {
	place
	leader int32 // position in batch.places
	first  int32 // in twins.rows
}

const (
	twinSlots  = 1 << 11 // a call has blockNodes options, or what one placement changed
	twinProbes = 8

	amountColumns = sdk.UseColumns | sdk.MustLeaveColumn | sdk.DeviceColumns | sdk.VictimColumns |
		sdk.FitColumns | sdk.TimeColumns | sdk.SharedTables | sdk.TotalsColumn
	groupColumns = sdk.JobColumns | sdk.EvictionColumns | sdk.LabelColumns | sdk.AnnotationColumns
)

// begin prepares for a policy that reads these columns.
func (t *twins) begin(columns sdk.Columns) {
	t.usable = columns&^(amountColumns|groupColumns) == 0
	t.byGroup = columns&groupColumns != 0
	t.reset()
}

// reset forgets the options of a call.
func (t *twins) reset() {
	for _, slot := range t.used {
		t.slots[slot] = 0
	}
	t.used, t.list, t.rows = t.used[:0], t.list[:0], t.rows[:0]
}

// follow makes a place the twin of an earlier one of the call, when there is one
// to which it is equal. Otherwise later ones may become its twins.
func (s *searcher) follow(p *place, rows []*state.Row) bool {
	t := &s.twins
	at := hashPlace(s.lacks, rows)
	for range twinProbes {
		at %= twinSlots
		known := t.slots[at]
		if known == 0 {
			t.slots[at], t.used = int32(len(s.batch.places))+1, append(t.used, int32(at))
			return false
		}
		if s.alike(int(known)-1, p, rows) {
			t.list = append(t.list, twin{*p, known - 1, int32(len(t.rows))})
			t.rows = append(t.rows, rows...)
			return true
		}
		at++
	}
	return false
}

// hashPlace mixes some of what makes places equal.
func hashPlace(lacks []int64, rows []*state.Row) uint64 {
	h := uint64(len(rows))
	for _, lack := range lacks {
		h = (h ^ uint64(lack)) * 0x9e3779b97f4a7c15
	}
	h = (h ^ uint64(rows[0].Priority) ^ uint64(rows[0].Group.Ask.Vec[model.CPU])) * 0x9e3779b97f4a7c15
	return h >> 32
}

// alike is whether the policy sees the same in option o and in a place with these
// candidates.
func (s *searcher) alike(o int, p *place, rows []*state.Row) bool {
	b, watch := &s.batch, &s.f.watch
	theirs := b.rows[b.cand.FirstRow[o]:b.cand.FirstRow[o+1]]
	if len(theirs) != len(rows) {
		return false
	}
	for i, lack := range b.lacksOf(o, watch) {
		if lack != s.lacks[i] {
			return false
		}
	}
	for _, d := range watch.others {
		if b.places[o].free(int(d)) != p.free(int(d)) {
			return false
		}
	}
	for i, row := range rows {
		if !s.twins.same(row, theirs[i]) {
			return false
		}
	}
	return true
}

// same is whether the policy sees the same in two candidates.
func (t *twins) same(a, b *state.Row) bool {
	return a.Group == b.Group ||
		!t.byGroup && a.Priority == b.Priority && a.Group.Ask.Vec == b.Group.Ask.Vec
}

// finishTwins gives every twin its answer.
func (s *searcher) finishTwins() {
	f := s.f
	for i := range s.twins.list {
		t := &s.twins.list[i]
		leader := &s.batch.places[t.leader]
		f.why[t.k] = f.why[leader.k]
		if !f.options[leader.option].alive {
			continue
		}
		from := len(s.arena)
		for _, x := range s.kept[leader.kept : leader.kept+leader.keeps] {
			s.arena = append(s.arena, s.twins.rows[t.first+x])
		}
		s.fillTwin(&f.options[t.option], &f.options[leader.option], s.arena[from:len(s.arena):len(s.arena)], t)
	}
}

// fillTwin makes an option what its twin is, with victims of its own.
func (s *searcher) fillTwin(opt, leader *option, victims []*state.Row, t *twin) {
	s.answers.give(opt, t.rows)
	opt.victims, opt.need = victims, leader.need
	opt.highest, opt.sum, opt.violations = leader.highest, leader.sum, 0
	if s.f.columns.Has(sdk.BudgetColumns) {
		opt.violations = s.violations(victims)
	}
	if s.f.columns.Has(sdk.StartColumn) {
		opt.start = s.start(opt)
	}
	if s.f.columns.Has(sdk.LostWorkColumn) {
		opt.lost = s.lostWork(victims)
	}
	opt.fitBefore, opt.fitAfter = leader.fitBefore, leader.fitAfter
	if s.f.columns.Has(sdk.FitColumns) && !sameOffer(t, &s.batch.places[t.leader]) {
		s.rankTwin(opt, t)
	}
}

// sameOffer is whether two nodes with the same room offer the same when empty.
func sameOffer(t *twin, leader *place) bool {
	return t.offer(model.CPU) == leader.offer(model.CPU) && t.offer(model.Memory) == leader.offer(model.Memory)
}

// rankTwin ranks a node that has the same room as its twin, and another size.
func (s *searcher) rankTwin(opt *option, t *twin) {
	ask := &s.f.req.Group.Ask.Vec
	cpu, memory := t.free(model.CPU)-ask[model.CPU], t.free(model.Memory)-ask[model.Memory]
	rank := func() float64 {
		return fit.Score(s.f.req.Algorithm, t.offer(model.CPU), t.offer(model.Memory), cpu, memory)
	}
	opt.fitBefore = rank()
	for _, row := range opt.victims {
		cpu, memory = cpu+row.Group.Ask.Vec[model.CPU], memory+row.Group.Ask.Vec[model.Memory]
	}
	opt.fitAfter = rank()
}
