package preempt

import (
	"encoding/binary"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Nodes that offer the same and run the same amounts at the same priorities are
// alike: whatever a policy says of one that reads no more than that holds for all
// of them. A search asks about the first of those only, and the others share its
// answer. On a cluster of nodes that were bought together and run the same things
// this leaves a few nodes to look at, and of the others not one allocation.
//
// twins are the same on a smaller scale: they are equal as far as the candidates
// go that matter to the ask, which shows only once these have been collected.

// kinds knows what nodes offer and run, by amounts and priorities: a number for
// each different one, and which number each node had when it was last looked at. It
// is kept from one search to the next, since most nodes have not changed by then.
type kinds struct {
	numbers map[string]int32
	nodes   []content       // by position
	dims    int             // of the amounts in numbers
	strict  []*model.Budget // all budgets, where some are strict; else none matter
	bytes   int             // how long the keys of numbers are together
	key     []byte          // scratch
	pause   int             // searches to come in which nothing is looked for

	first []int32 // by number: one more than the place, in the search, of the first such node
	used  []int32 // numbers with a first
}

// content is a node, its rows, and the number of both. Neither is ever written to
// once it is in use, so where they are tells whether they are the same. They are kept
// so that nothing else comes to be there.
type content struct {
	node   *model.Node
	rows   []state.Row
	number int32
}

// is whether it is the node with these rows.
func (c *content) is(node *model.Node, rows []state.Row) bool {
	return c.node == node && len(c.rows) == len(rows) && (len(rows) == 0 || &c.rows[0] == &rows[0])
}

const (
	// maxKindBytes bounds the memory; beyond it everything is worked out again.
	maxKindBytes = 1 << 23
	// Where fewer nodes of a search than one in leastAlike share an answer, the
	// following searches go without: to work numbers out would cost more than it saves.
	leastAlike, pauseAfter = 16, 31
)

// begin forgets which nodes came first in an earlier search.
func (q *kinds) begin(snap *state.Snapshot) {
	positions, dims, strict := snap.ChunkCount()*state.ChunkSize, snap.Dims().Len(), []*model.Budget(nil)
	if snap.StrictBudgetCount() > 0 {
		strict = snap.Budgets()
	}
	for _, number := range q.used {
		q.first[number] = 0
	}
	q.used = q.used[:0]
	if dims != q.dims || !sameList(strict, q.strict) || q.bytes > maxKindBytes {
		clear(q.nodes)
		q.numbers, q.first, q.dims, q.strict, q.bytes = nil, q.first[:0], dims, strict, 0
	}
	if q.numbers == nil {
		q.numbers = map[string]int32{}
	}
	if missing := positions - len(q.nodes); missing > 0 {
		q.nodes = append(q.nodes, make([]content, missing)...)
	}
}

// sameList is whether two lists of budgets are one: a change makes another.
func sameList(a, b []*model.Budget) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// of is the number of node i of a chunk, which is at a position.
func (q *kinds) of(snap *state.Snapshot, pos int32, i int) int32 {
	chunk := snap.Chunk(int(pos) / state.ChunkSize)
	c, node, rows := &q.nodes[pos], chunk.Node(i), chunk.Rows(i)
	if !c.is(node, rows) {
		*c = content{node, rows, q.number(snap, node, rows)}
	}
	return c.number
}

// number finds or makes the number of what a node offers and runs. Equal keys mean
// that these are equal: every part has a fixed length, or says how long it is.
func (q *kinds) number(snap *state.Snapshot, node *model.Node, rows []state.Row) int32 {
	q.key = q.key[:0]
	q.addAmounts(&node.Avail)
	for i := range rows {
		g := rows[i].Group
		priority := uint64(uint32(rows[i].Priority))
		if g.Job.NonPreemptible {
			priority |= 1 << 32
		}
		q.key = binary.LittleEndian.AppendUint64(q.key, priority)
		q.addAmounts(&g.Ask.Vec)
		if len(q.strict) > 0 {
			q.addBudgets(snap, &rows[i])
		}
	}
	n, known := q.numbers[string(q.key)]
	if !known {
		n = int32(len(q.first))
		q.numbers[string(q.key)], q.first, q.bytes = n, append(q.first, 0), q.bytes+len(q.key)
	}
	return n
}

// addBudgets adds the budgets that evicting a row costs one of.
func (q *kinds) addBudgets(snap *state.Snapshot, row *state.Row) {
	var under []int32
	if row.Started {
		under = snap.GroupBudgets(row.Group)
	}
	q.key = binary.LittleEndian.AppendUint32(q.key, uint32(len(under)))
	for _, at := range under {
		q.key = binary.LittleEndian.AppendUint32(q.key, uint32(at))
	}
}

func (q *kinds) addAmounts(v *model.Vector) {
	for d := range q.dims {
		q.key = binary.LittleEndian.AppendUint64(q.key, uint64(v[d]))
	}
}

// sharesAnswers is whether answers hold for all nodes that are alike: nothing that
// is read of options and candidates tells such nodes apart.
func (f *Finder) sharesAnswers() bool {
	w := f.workers[0]
	const (
		ofVictims = amountColumns &^ sdk.SharedTables
		ofOptions = sdk.FitColumns | sdk.UseColumns | sdk.MustLeaveColumn | sdk.DeviceColumns | sdk.PlaceColumn |
			sdk.TotalsColumn
	)
	return w.quick && len(f.req.Excluded) == 0 && w.columns&^ofVictims == 0 && f.columns&^ofOptions == 0
}

// findAlike makes f.todo the nodes to ask about, and f.alike, for each node, the
// one whose answer it gets.
func (f *Finder) findAlike() {
	n := len(f.req.Nodes)
	f.todo, f.alike = f.todo[:0], sized(f.alike, n)
	shares := f.sharesAnswers()
	if shares && f.kinds.pause > 0 {
		f.kinds.pause--
		shares = false
	}
	if shares {
		f.kinds.begin(f.snap)
		f.findOwn()
	}
	own := f.holdsOwn
	for k, pos := range f.req.Nodes {
		first := int32(k)
		switch {
		case !shares:
		case len(own) > 0 && own[0] == first:
			own = own[1:]
		default:
			first = f.firstAlike(first, pos)
		}
		if f.alike[k] = first; first == int32(k) {
			f.todo = append(f.todo, first)
		}
	}
	if shares && n >= blockNodes && len(f.todo) > n-n/leastAlike {
		f.kinds.pause = pauseAfter
	}
}

// findOwn finds the nodes with allocations of the asking job, which are none of
// its candidates.
func (f *Finder) findOwn() {
	f.holdsOwn = f.holdsOwn[:0]
	f.allocs = f.snap.AppendJobAllocs(f.allocs[:0], f.req.Group.Job.Key())
	for _, a := range f.allocs {
		if !a.Live() {
			continue
		}
		if k, ok := f.slot(a.NodePos); ok {
			f.holdsOwn = append(f.holdsOwn, k)
		}
	}
	slices.Sort(f.holdsOwn)
	f.holdsOwn = slices.Compact(f.holdsOwn)
}

// firstAlike is the first node of the search that is like the one at k; k itself
// where there is none, or where more decides than what it offers and runs.
func (f *Finder) firstAlike(k, pos int32) int32 {
	chunk, i := f.snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	if (chunk.HasEvictionRules()|chunk.HasClaims())>>i&1 == 1 {
		return k
	}
	if rules := f.req.Rules; rules != nil && (!rules.Allows(pos) || rules.HasSeparatedRows(pos)) {
		return k
	}
	q := &f.kinds
	number := q.of(f.snap, pos, i)
	if first := q.first[number]; first != 0 {
		return first - 1
	}
	q.first[number], q.used = k+1, append(q.used, number)
	return k
}

// shareAnswers gives the nodes that were not asked about their answers.
func (f *Finder) shareAnswers() {
	if len(f.todo) == len(f.alike) {
		return
	}
	for k, first := range f.alike {
		if int(first) == k {
			continue
		}
		f.why[k], f.reach[k] = f.why[first], f.reach[first]
		if len(f.stoppedBy) > 0 {
			f.stoppedBy[k] = f.stoppedBy[first]
		}
		from, to := &f.options[f.first[first]], &f.options[f.first[k]]
		if to.alive = from.alive; to.alive {
			from.shared = true
			to.answer = from.answer
		}
	}
}

// victimsOf appends whom an option evicts.
func (f *Finder) victimsOf(o *option, victims []*model.Allocation) []*model.Allocation {
	if o.pos == o.asked {
		for _, v := range o.victims {
			victims = append(victims, v.Alloc)
		}
		return victims
	}
	rows := f.snap.Chunk(int(o.pos) / state.ChunkSize).Rows(int(o.pos) % state.ChunkSize)
	for _, v := range o.victims {
		at := slices.IndexFunc(o.rows, func(row state.Row) bool { return row.Alloc == v.Alloc })
		victims = append(victims, rows[at].Alloc)
	}
	return victims
}

// answers is the memory of a worker's answers.
type answers struct {
	blocks []*[answersBlock]answer
	used   int
}

const answersBlock = 64

// give makes an option alive, with an answer of its own to be filled in.
func (a *answers) give(o *option, rows []state.Row) {
	if o.answer == nil || o.shared {
		block := a.used / answersBlock
		if block == len(a.blocks) {
			a.blocks = append(a.blocks, new([answersBlock]answer))
		}
		o.answer = &a.blocks[block][a.used%answersBlock]
		a.used++
	}
	o.alive, o.asked, o.shared, o.rows = true, o.pos, false, rows
}
