package preempt

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// On a full cluster most nodes could not take a large ask with everybody gone who
// may be evicted, and to find that out again in every search, allocation by
// allocation, was most of what searches did. So what each node would have is kept in
// columns, from one search to the next: one pass over them leaves the nodes that are
// worth a look.

// emptied is what nodes would have with everybody gone who may be evicted up to a
// priority. It is brought up to date node by node: most have not changed since the
// search before.
type emptied struct {
	ceiling int64 // that priority
	dims    int
	used    uint64 // when it was last used
	chunks  []emptiedChunk
}

// emptiedChunk is the columns of a chunk as it was. Neither chunks nor rows are ever
// written to once a search sees them, so where they are tells whether they are the
// same. They are kept so that nothing else comes to be there.
type emptiedChunk struct {
	of    *state.Chunk // nil: never looked at
	nodes [state.ChunkSize]content
	most  []int64 // by dimension, then position
}

// emptiedTables is how many priorities are kept apart at a time: jobs of few
// different ones wait together.
const emptiedTables = 8

// emptiedUpTo is the table of a priority, in the stead of the one that was not used
// for longest where there is none.
func (f *Finder) emptiedUpTo(ceiling int64, dims int) *emptied {
	f.emptiedUses++
	var oldest *emptied
	for _, e := range f.emptied {
		if e.ceiling == ceiling && e.dims == dims {
			e.used = f.emptiedUses
			return e
		}
		if oldest == nil || e.used < oldest.used {
			oldest = e
		}
	}
	if len(f.emptied) < emptiedTables {
		oldest = &emptied{}
		f.emptied = append(f.emptied, oldest)
	}
	*oldest = emptied{ceiling: ceiling, dims: dims, used: f.emptiedUses}
	return oldest
}

// findHopeless marks the nodes that could not take the ask with everybody gone who
// may be evicted for it, where that pays and tells what a look at them would tell.
func (f *Finder) findHopeless() {
	f.hopeless, f.ownBelow = f.hopeless[:0], true
	w := f.workers[0]
	if !w.quick || w.around || w.strict || len(f.todo) < blockNodes {
		return
	}
	e := f.emptiedUpTo(w.ceiling, f.dims.Len())
	if missing := f.snap.ChunkCount() - len(e.chunks); missing > 0 {
		e.chunks = append(e.chunks, make([]emptiedChunk, missing)...)
	}
	for c := range f.snap.ChunkCount() {
		f.hopeless = append(f.hopeless, e.refresh(c, f.snap.Chunk(c)).lacking(&f.req.Group.Ask))
	}
	// Of an earlier version of the job there may be allocations that would go, but
	// for being its own.
	f.ownBelow = false
	f.allocs = f.snap.AppendJobAllocs(f.allocs[:0], f.req.Group.Job.Key())
	for _, a := range f.allocs {
		if int64(a.Job.Priority) <= w.ceiling && a.Live() {
			f.ownBelow = true
			f.hopes(a.NodePos)
		}
	}
}

// isHopeless is whether findHopeless marked a node with candidates, of which nothing
// but amounts decides: what a search would find is that there is not enough.
func (s *searcher) isHopeless(pos int) bool {
	c, i := pos/state.ChunkSize, pos%state.ChunkSize
	if c >= len(s.f.hopeless) || s.f.hopeless[c]>>i&1 == 0 {
		return false
	}
	chunk, rules := s.f.snap.Chunk(c), s.f.req.Rules
	switch {
	case chunk.HasEvictionRules()>>i&1 == 1 || int64(chunk.MinPriority(i)) > s.ceiling:
		return false
	case rules == nil:
		return true
	}
	return rules.Allows(int32(pos)) && (!s.separates || !rules.HasSeparatedRows(int32(pos)))
}

// hopes forgets that a node was hopeless: it changed, or more decides there.
func (f *Finder) hopes(pos int32) {
	if c := int(pos) / state.ChunkSize; c < len(f.hopeless) {
		f.hopeless[c] &^= 1 << (pos % state.ChunkSize)
	}
}

// refresh brings the columns of a chunk up to date.
func (e *emptied) refresh(c int, chunk *state.Chunk) *emptiedChunk {
	known := &e.chunks[c]
	if known.of == chunk {
		return known
	}
	known.of = chunk
	if known.most == nil {
		known.most = make([]int64, e.dims*state.ChunkSize)
	}
	for i := range chunk.Len() {
		if node, rows := chunk.Node(i), chunk.Rows(i); !known.nodes[i].is(node, rows) {
			known.nodes[i] = content{node: node, rows: rows}
			e.sum(known, chunk, i)
		}
	}
	return known
}

// sum adds up what node i of a chunk would have.
func (e *emptied) sum(to *emptiedChunk, chunk *state.Chunk, i int) {
	for d := range e.dims {
		to.most[d*state.ChunkSize+i] = chunk.Free(d)[i]
	}
	rows := to.nodes[i].rows
	for x := range rows {
		row := &rows[x]
		if int64(row.Priority) > e.ceiling {
			return
		}
		if row.Group.Job.NonPreemptible {
			continue
		}
		ask := &row.Group.Ask
		for _, d := range ask.Dims {
			to.most[int(d)*state.ChunkSize+i] += ask.Vec[d]
		}
	}
}

// lacking has a bit for every node that would have too little for the ask.
func (c *emptiedChunk) lacking(ask *model.Ask) (nodes uint64) {
	for _, d := range ask.Dims {
		nodes |= state.BelowMask((*[state.ChunkSize]int64)(c.most[int(d)*state.ChunkSize:]), ask.Vec[d])
	}
	return nodes
}
