package preempt

import (
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Finder searches options for one group after another. Its buffers are kept
// between searches.
//
// A search is begun once for a group; Best may be asked for again after the
// scheduler has placed an instance and said with Changed what that touched.
// Options on other nodes keep their victims: the same version, preemptor, time
// and rows give the same answer.
type Finder struct {
	req       Request
	snap      *state.Snapshot
	dims      *model.Dimensions
	dimNames  []string
	preemptor sdk.Preemptor

	// options holds, for the node at req.Nodes[k], one entry for each way of
	// serving its devices: options[first[k]:first[k+1]]. Invariant: an option
	// is alive exactly when it fits after its victims go.
	options []option
	first   []int32
	why     []Outcome // by k: what became of the node
	slots   []int32   // k by node position, -1: not in the search
	slotted bool      // slots is of this search: it is made when first needed
	alike   []int32   // by k: that of the node whose answer it gets, mostly its own
	todo    []int32   // those with an answer of their own, ascending
	asking  []int32   // of them those that are being asked about
	// prospects is by todo, where the policy is asked in rounds, and waiting those that
	// have not been asked about. As long as no option is known the next round asks about
	// as many as round.
	prospects, waiting prospects
	round              int
	reach              []int32 // by k: highest priority of which the policy was shown somebody
	holders            holders
	kinds              kinds
	// holdsOwn is the nodes, by k, with allocations of the asking job.
	holdsOwn []int32
	allocs   []*model.Allocation // scratch

	// budgeted is whether what disruption budgets have left matters to the search;
	// slacks is that by position in the state's list, below zero where too few are
	// available already. stoppedBy is one more than the strict budget that kept
	// somebody, by k; 0: none did.
	budgeted bool
	slacks   []int
	// leastSlack is the smallest of them: no node with fewer candidates overruns any.
	leastSlack int
	before     []int   // scratch of refreshBudgets
	affected   []int32 // that refreshGuards found
	stoppedBy  []int32
	unsettled  bool

	// emptied is what nodes have with everybody gone who may be evicted up to some
	// priorities, and hopeless, by chunk, where that is too little for the ask; empty:
	// nobody has looked.
	emptied     []*emptied
	emptiedUses uint64
	hopeless    []uint64
	// ownBelow is whether the asking job itself may have something of low enough
	// priority, which is never evicted for it: an earlier version.
	ownBelow bool

	watch   watched
	workers []*searcher
	chooser asked       // who scores options
	columns sdk.Columns // that it reads
	table   table
	chosen  []*model.Allocation // Choice.Victims
	totals  *sdk.Shared         // of the search, once somebody asked for totals alone
	recheck sdk.Recheck
	fault   error
}

// option is a place for the preemptor and what it costs.
type option struct {
	pos    int32 // of the node
	device int16 // which of the node's ways of serving the devices
	alive  bool
	*answer
}

// answer is what an option that is alive costs. Options of nodes that are alike
// share one.
type answer struct {
	asked   int32 // position of the node that the policy was asked about
	shared  bool  // it stays as it is
	rows    []state.Row
	victims []*state.Row // of rows, and perhaps of other nodes, in picking order

	highest    int32
	violations int32 // only for policies that read it, as start
	start      int64
	sum        int64
	lost       int64
	fitBefore  float64
	fitAfter   float64
	// need is what was missing before any victim went, by dimension; kept only
	// for policies that read it.
	need []float64
}

// Outcome is what became of a node in a search.
type Outcome uint8

// The outcomes.
const (
	Unchecked    Outcome = iota
	Possible             // the group fits there once the victims are gone
	NoCandidates         // nothing there may be evicted for this preemptor
	Insufficient         // the group does not fit even with every candidate gone
	Declined             // the policy's victims free too little
	Protected            // strict disruption budgets keep too many
	// Outcomes is how many there are.
	Outcomes = iota
)

func (o Outcome) String() string {
	return [...]string{
		"not looked at", "possible", "nothing there may be evicted for this priority",
		"not enough room even with every candidate evicted", "the policy's victims free too little",
		"strict disruption budgets keep too many",
	}[o]
}

// Start starts a search on a snapshot.
func (f *Finder) Start(snap *state.Snapshot, req Request) error {
	f.req, f.snap, f.dims = req, snap, snap.Dims()
	f.dimNames = f.dims.AppendNames(f.dimNames[:0])
	req.describe(&f.preemptor, f.dims.Len())
	f.watch.reset(&req.Group.Ask, f.dims.Len())
	f.recheck, f.fault, f.slotted, f.totals, f.unsettled = sdk.Recheck{}, nil, false, nil, false
	scorer := req.Policy
	if !scorer.Hooks().Has(policy.HookScoreOptions) {
		scorer = req.Default
	}
	var err error
	if f.chooser, err = ask(scorer, req.OnCall); err != nil {
		return err
	}
	f.columns = scorer.Info().Columns
	f.layOut()
	f.lookAtBudgets()
	if err := f.hire(1); err != nil {
		return err
	}
	f.findAlike()
	f.findHopeless()
	if err := f.hire(max(1, min(f.req.Workers, len(f.todo)/blockNodes))); err != nil {
		return err
	}
	f.searchAll()
	return f.fault
}

// layOut makes an entry for every node and way of serving its devices.
func (f *Finder) layOut() {
	f.options, f.first = f.options[:0], append(f.first[:0], 0)
	f.why = slices.Grow(f.why[:0], len(f.req.Nodes))[:len(f.req.Nodes)]
	clear(f.why)
	f.reach = sized(f.reach, len(f.req.Nodes))
	f.holders.reset(len(f.req.Nodes))
	for _, pos := range f.req.Nodes {
		ways := 1
		if len(f.req.Group.Ask.Devices) > 0 {
			ways = len(f.snap.NodeAt(pos).DeviceChoices(&f.req.Group.Ask))
		}
		for w := range ways {
			f.addOption(pos, int16(w))
		}
		f.first = append(f.first, int32(len(f.options)))
	}
}

// addOption makes an entry in memory of an earlier one, of which only what an
// option that is not alive needs is written over.
func (f *Finder) addOption(pos int32, device int16) {
	n := len(f.options)
	f.options = slices.Grow(f.options, 1)[:n+1]
	o := &f.options[n]
	o.pos, o.device, o.alive, o.answer = pos, device, false, nil
}

// lookAtBudgets finds out whether budgets matter, and what they have left.
func (f *Finder) lookAtBudgets() {
	strict := f.snap.StrictBudgetCount() > 0
	reads := func(v *policy.Version) bool { return v.Info().Columns.Has(sdk.BudgetColumns) }
	f.budgeted = len(f.snap.Budgets()) > 0 && (strict || reads(f.req.Policy) || reads(f.req.Default))
	f.findSlacks()
	f.stoppedBy = f.stoppedBy[:0]
	if strict {
		f.stoppedBy = zeroed(f.stoppedBy, len(f.req.Nodes))
	}
}

// hire gets n workers ready, some of which may be.
func (f *Finder) hire(n int) error {
	for len(f.workers) < n {
		f.workers = append(f.workers, &searcher{idle: true})
	}
	for _, w := range f.workers[:n] {
		if !w.idle {
			continue
		}
		if err := w.begin(f); err != nil {
			return err
		}
	}
	return nil
}

// active are the workers of this search.
func (f *Finder) active() []*searcher {
	for i, w := range f.workers {
		if w.idle {
			return f.workers[:i]
		}
	}
	return f.workers
}

// blockNodes is how many nodes share calls to a policy. Calls never cross a
// block, so what a policy is asked does not depend on the number of workers.
const blockNodes = 512

// searchAll evaluates every node; workers take blocks in turn.
func (f *Finder) searchAll() {
	if f.waiting = f.waiting[:0]; f.asksInRounds() {
		f.searchInRounds()
		return
	}
	f.asking = append(f.asking[:0], f.todo...)
	f.sideBySide((*searcher).searchBlocks)
	f.shareAnswers()
	f.collect()
}

// sideBySide has every worker do its share: every step-th part, beginning with first.
func (f *Finder) sideBySide(share func(w *searcher, first, step int)) {
	workers := f.active()
	if len(workers) == 1 {
		share(workers[0], 0, 1)
		return
	}
	var wg sync.WaitGroup
	for i, w := range workers[1:] {
		wg.Go(func() { share(w, i+1, len(workers)) })
	}
	share(workers[0], 0, len(workers))
	wg.Wait()
}

// collect takes over what workers found beside options. Of several faults the
// one in the first block counts.
func (f *Finder) collect() {
	block := -1
	for _, w := range f.active() {
		if t := w.recheck.Time(); t != 0 {
			f.recheck.At(t)
		}
		f.unsettled = f.unsettled || w.unsettled
		if w.fault != nil && (block < 0 || w.faultBlock < block) {
			f.fault, block = w.fault, w.faultBlock
		}
	}
}

// Release gives the policies' instances back. It must follow every Begin.
func (f *Finder) Release() {
	f.chooser.release()
	for _, w := range f.workers {
		w.end()
	}
	f.snap = nil
	clear(f.allocs)
}

// Update tells that the proposed state is now snap, which differs from the
// last one in the room of the nodes at positions alone, and that the groups in
// evicted have more victims in the plan. Nodes that are no longer in the
// search are ignored.
func (f *Finder) Update(snap *state.Snapshot, positions []int32, evicted []*model.Group) error {
	f.snap = snap
	w := f.workers[0]
	clear(w.units)
	if w.reads(sdk.SharedTables) {
		f.findSlacks()
		return f.searchAgain() // what a namespace uses has changed, and with it every answer
	}
	if f.affected = f.affected[:0]; len(evicted) > 0 {
		f.refreshGuards(w, evicted)
	}
	for _, pos := range positions {
		f.hopes(pos)
		if k, ok := f.slot(pos); ok {
			w.queue(int(k))
		}
	}
	if len(evicted) > 0 && w.reads(sdk.EvictionColumns) {
		f.queueHolders(w, evicted)
	}
	for _, k := range f.affected {
		w.queue(int(k))
	}
	w.finish()
	f.collect()
	return f.fault
}

// searchAgain evaluates every node afresh on the snapshot at hand.
func (f *Finder) searchAgain() error {
	for _, w := range f.active() {
		w.renew()
	}
	f.findAlike()
	f.findHopeless()
	f.searchAll()
	return f.fault
}

// slot finds a node's place in the search.
func (f *Finder) slot(pos int32) (k int32, ok bool) {
	if !f.slotted {
		f.slotted = true
		f.slots = sized(f.slots, f.snap.ChunkCount()*state.ChunkSize)
		for i := range f.slots {
			f.slots[i] = -1
		}
		for k, p := range f.req.Nodes {
			f.slots[p] = int32(k)
		}
	}
	if int(pos) >= len(f.slots) {
		return 0, false
	}
	k = f.slots[pos]
	return k, k >= 0
}

// Outcomes tells what became of each node of the request, and which those are.
// Both are valid until the next search.
func (f *Finder) Outcomes() ([]Outcome, []int32) { return f.why, f.req.Nodes }

// NonFinal is whether something beside the room of nodes and time stood in the way
// of an eviction: a strict budget, or who would have to go elsewhere.
func (f *Finder) NonFinal() bool { return f.unsettled }

// BlockingBudget is the strict budget that kept somebody on the node at k of the
// request's; nil: none did.
func (f *Finder) BlockingBudget(k int) *model.Budget {
	if len(f.stoppedBy) == 0 || f.stoppedBy[k] == 0 {
		return nil
	}
	return f.snap.Budgets()[f.stoppedBy[k]-1]
}

// RecheckAt is the earliest time at which a policy wants to be asked again; 0
// when it does not.
func (f *Finder) RecheckAt() int64 { return f.recheck.Time() }
