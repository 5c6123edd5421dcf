package prune

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// Reclaimable finds the nodes on which a request would not fit even if everything up to
// a priority were evicted. On a full cluster that is most nodes for a large request,
// and finding it out allocation by allocation would be most of the cost of a search. So
// the largest capacity that evictions could free is kept in columns, from one search to
// the next, and one pass over the columns finds the nodes that are worth evaluating.
//
// Workers may call IsInfeasible concurrently.
type Reclaimable struct {
	tables     []*reclaimTable
	uses       uint64
	infeasible []uint64 // by chunk, one bit a node; empty: not computed
}

// A reclaimTable holds the free capacity of nodes if everything up to one priority were
// evicted. It is brought up to date node by node.
type reclaimTable struct {
	ceiling int64 // that priority
	dims    int
	used    uint64 // when it was last used
	chunks  []reclaimChunk
}

// A reclaimChunk holds the columns of one chunk. Neither chunks nor rows are written to
// once a search sees them, so that equal addresses mean equal contents. They are
// retained so that their memory is not reused for something else.
type reclaimChunk struct {
	of    *state.Chunk // nil: never computed
	nodes [state.ChunkSize]nodeContent
	most  []int64 // by dimension, then position
}

// maxReclaimTables is how many priorities are kept at a time. Pending jobs mostly have
// few different ones.
const maxReclaimTables = 8

// Reset discards the marks of an earlier search.
func (r *Reclaimable) Reset() { r.infeasible = r.infeasible[:0] }

// Mark marks the nodes on which a request would not fit if everything up to the ceiling
// were evicted. dims is the number of dimensions of the cluster.
func (r *Reclaimable) Mark(snap *state.Snapshot, ceiling int64, dims int, ask *model.Ask) {
	t := r.table(ceiling, dims)
	if missing := snap.ChunkCount() - len(t.chunks); missing > 0 {
		t.chunks = append(t.chunks, make([]reclaimChunk, missing)...)
	}
	for c := range snap.ChunkCount() {
		r.infeasible = append(r.infeasible, t.refresh(c, snap.Chunk(c)).lacking(ask))
	}
}

// IsInfeasible reports whether the node at a position is marked.
func (r *Reclaimable) IsInfeasible(pos int) bool {
	c, i := pos/state.ChunkSize, pos%state.ChunkSize
	return c < len(r.infeasible) && r.infeasible[c]>>i&1 == 1
}

// Unmark removes the mark of a node that has changed, or where more than amounts
// decides.
func (r *Reclaimable) Unmark(pos int32) {
	if c := int(pos) / state.ChunkSize; c < len(r.infeasible) {
		r.infeasible[c] &^= 1 << (pos % state.ChunkSize)
	}
}

// table returns the table of a priority. If there is none, it replaces the one that has
// not been used for longest.
func (r *Reclaimable) table(ceiling int64, dims int) *reclaimTable {
	r.uses++
	var oldest *reclaimTable
	for _, t := range r.tables {
		if t.ceiling == ceiling && t.dims == dims {
			t.used = r.uses
			return t
		}
		if oldest == nil || t.used < oldest.used {
			oldest = t
		}
	}
	if len(r.tables) < maxReclaimTables {
		oldest = &reclaimTable{}
		r.tables = append(r.tables, oldest)
	}
	*oldest = reclaimTable{ceiling: ceiling, dims: dims, used: r.uses}
	return oldest
}

// refresh brings the columns of a chunk up to date.
func (t *reclaimTable) refresh(c int, chunk *state.Chunk) *reclaimChunk {
	known := &t.chunks[c]
	if known.of == chunk {
		return known
	}
	known.of = chunk
	if known.most == nil {
		known.most = make([]int64, t.dims*state.ChunkSize)
	}
	for i := range chunk.Len() {
		if node, rows := chunk.Node(i), chunk.Rows(i); !known.nodes[i].is(node, rows) {
			known.nodes[i] = nodeContent{node: node, rows: rows}
			t.sum(known, chunk, i)
		}
	}
	return known
}

// sum computes the entry of node i of a chunk.
func (t *reclaimTable) sum(to *reclaimChunk, chunk *state.Chunk, i int) {
	for d := range t.dims {
		to.most[d*state.ChunkSize+i] = chunk.Free(d)[i]
	}
	rows := to.nodes[i].rows
	for x := range rows {
		row := &rows[x]
		if int64(row.Priority) > t.ceiling {
			return // rows ascend by priority
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

// lacking returns a bit for every node that would have too little for a request.
func (c *reclaimChunk) lacking(ask *model.Ask) (nodes uint64) {
	for _, d := range ask.Dims {
		nodes |= state.BelowMask((*[state.ChunkSize]int64)(c.most[int(d)*state.ChunkSize:]), ask.Vec[d])
	}
	return nodes
}
