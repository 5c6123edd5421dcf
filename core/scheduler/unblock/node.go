package unblock

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A node holds the data of one node that a filter reads. It is loaded once for all
// evaluations that are checked against the node.
type node struct {
	id        string
	pos       int32
	eligible  bool
	free      model.Vector // claims aside
	hasClaims bool
	rows      []state.Row // ascending by priority
	model     *model.Node

	levels []level // see findLevels; empty: not yet computed
}

// A level is the free capacity of a node once all rows up to a priority are evicted. The
// first level of a list stands for no eviction.
type level struct {
	priority int32
	first    int // position of the first row with the priority
	free     model.Vector
}

// load reads a node unless it is loaded, and reports whether it exists.
func (n *node) load(snap *state.Snapshot, id string) bool {
	if n.id == id {
		return true
	}
	pos, ok := snap.Position(id)
	if !ok {
		return false
	}
	chunk, i := snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	*n = node{
		id: id, pos: pos, eligible: chunk.Eligible()>>i&1 == 1, rows: chunk.Rows(i),
		model: chunk.Node(i), hasClaims: chunk.HasClaims()>>i&1 == 1, levels: n.levels[:0],
	}
	for d := range snap.Dims().Len() {
		n.free[d] = chunk.Free(d)[i]
	}
	return true
}

// freeable returns the free capacity after the eviction of everything up to a priority.
// Protection is ignored, so it is an upper bound. Levels are few, so they are searched
// from the top.
func (n *node) freeable(ceiling int64) *model.Vector {
	levels := n.findLevels()
	at := len(levels) - 1
	for at > 0 && int64(levels[at].priority) > ceiling {
		at--
	}
	return &levels[at].free
}

// rowsOf returns the rows with a priority. The slice is shared with the state and
// read-only.
func (n *node) rowsOf(priority int32) []state.Row {
	levels := n.findLevels()
	for at := len(levels) - 1; at > 0; at-- {
		if levels[at].priority != priority {
			continue
		}
		to := len(n.rows)
		if at+1 < len(levels) {
			to = levels[at+1].first
		}
		return n.rows[levels[at].first:to]
	}
	return nil
}

// findLevels returns one level per priority on the node, ascending. They are
// computed once for all evaluations that are checked against the node.
func (n *node) findLevels() []level {
	if len(n.levels) == 0 {
		n.levels = append(n.levels, level{free: n.free})
		for i := range n.rows {
			row := &n.rows[i]
			last := &n.levels[len(n.levels)-1]
			if len(n.levels) == 1 || row.Priority != last.priority {
				n.levels = append(n.levels, level{row.Priority, i, last.free})
				last = &n.levels[len(n.levels)-1]
			}
			last.free.Add(&row.Group.Ask.Vec)
		}
	}
	return n.levels
}
