package prune

import (
	"encoding/binary"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/relocate"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Nodes are in one class if they offer the same and run the same amounts at the same
// priorities. A policy that reads no more than that returns the same for all of them,
// so that a search evaluates the first node of a class and shares its answer. In a
// cluster of uniform nodes this leaves a few nodes to evaluate and skips every
// allocation on the others.
//
// OptionDedup does the same on a smaller scale: it compares only the candidates that
// matter to a request, and these have to be collected first.

// NodeClasses assign a class number to each distinct content of a node, and remember
// the class of every node. They are kept from one search to the next, since most nodes
// do not change in between.
type NodeClasses struct {
	numbers map[string]int32 // by key
	nodes   []nodeContent    // by position
	dims    int              // of the amounts in the keys
	strict  []*model.Budget  // all budgets if some are strict; otherwise budgets do not matter
	bytes   int              // total length of the keys
	// shapes number the equivalence classes of groups, if policies read where candidates
	// could run; nil: they do not.
	shapes map[string]uint32
	key    []byte // scratch
	pause  int    // number of coming searches that skip classes

	first []int32 // by class: one more than the slot of its first node in the search
	used  []int32 // classes with a first node
}

// nodeContent identifies a node with its rows, and holds their class. Neither is
// written to once a search sees it, so that equal addresses mean equal contents. Both
// are retained so that their memory is not reused for something else.
type nodeContent struct {
	node  *model.Node
	rows  []state.Row
	class int32
}

// is reports whether the content is that of a node with rows.
func (c *nodeContent) is(node *model.Node, rows []state.Row) bool {
	return c.node == node && len(c.rows) == len(rows) && (len(rows) == 0 || &c.rows[0] == &rows[0])
}

const (
	// maxClassBytes bounds the memory for keys. Beyond it all classes are computed anew.
	maxClassBytes = 1 << 23
	// If fewer than one node in minShared shares an answer, the next pauseSearches
	// searches go without classes: computing them would cost more than it saves.
	minShared, pauseSearches = 16, 31
)

// ReadsClassesOnly reports whether policies that read these columns of victims and of
// options cannot distinguish nodes of one class.
func ReadsClassesOnly(victims, options sdk.Columns) bool {
	const (
		ofVictims = amountColumns &^ sdk.SharedTables
		ofOptions = sdk.FitColumns | sdk.UseColumns | sdk.MustLeaveColumn | sdk.DeviceColumns | sdk.PlaceColumn |
			sdk.TotalsColumn | sdk.RelocationColumns | sdk.LookAheadColumns
	)
	return victims&^ofVictims == 0 && options&^ofOptions == 0
}

// SkipSearch reports whether the search at hand should go without classes.
func (c *NodeClasses) SkipSearch() bool {
	if c.pause == 0 {
		return false
	}
	c.pause--
	return true
}

// RecordUse records how many nodes of a search were evaluated, and skips classes in the
// following searches if hardly any node shared an answer.
func (c *NodeClasses) RecordUse(nodes, evaluated int) {
	if evaluated > nodes-nodes/minShared {
		c.pause = pauseSearches
	}
}

// Start begins a search: no class has a first node. byShape distinguishes allocations that
// could not run in the same places.
func (c *NodeClasses) Start(snap *state.Snapshot, byShape bool) {
	positions, dims, strict := snap.ChunkCount()*state.ChunkSize, snap.Dims().Len(), []*model.Budget(nil)
	if snap.StrictBudgetCount() > 0 {
		strict = snap.Budgets()
	}
	for _, class := range c.used {
		c.first[class] = 0
	}
	c.used = c.used[:0]
	if dims != c.dims || !sameList(strict, c.strict) || c.bytes > maxClassBytes || byShape != (c.shapes != nil) {
		clear(c.nodes)
		if c.shapes = nil; byShape {
			c.shapes = map[string]uint32{}
		}
		c.numbers, c.first, c.dims, c.strict, c.bytes = nil, c.first[:0], dims, strict, 0
	}
	if c.numbers == nil {
		c.numbers = map[string]int32{}
	}
	if missing := positions - len(c.nodes); missing > 0 {
		c.nodes = append(c.nodes, make([]nodeContent, missing)...)
	}
}

// sameList reports whether two lists of budgets are one: a change makes a new list.
func sameList(a, b []*model.Budget) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// First returns the slot of the first node in the search with the class of the node at
// pos. If there is none, the node at slot becomes the first one.
func (c *NodeClasses) First(snap *state.Snapshot, slot, pos int32) int32 {
	class := c.classOf(snap, pos)
	if first := c.first[class]; first != 0 {
		return first - 1
	}
	c.first[class], c.used = slot+1, append(c.used, class)
	return slot
}

// classOf returns the class of the node at a position. It costs two comparisons if the
// node has not changed since the last search.
func (c *NodeClasses) classOf(snap *state.Snapshot, pos int32) int32 {
	chunk, i := snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	known, node, rows := &c.nodes[pos], chunk.Node(i), chunk.Rows(i)
	if !known.is(node, rows) {
		*known = nodeContent{node, rows, c.classOfContent(snap, pos, node, rows)}
	}
	return known.class
}

// classOfContent finds or assigns the class of a node's content. Equal keys mean equal
// contents: every part of a key has a fixed length or is preceded by its length.
func (c *NodeClasses) classOfContent(snap *state.Snapshot, pos int32, node *model.Node, rows []state.Row) int32 {
	c.key = c.key[:0]
	c.addAmounts(&node.Avail)
	for i := range rows {
		g := rows[i].Group
		priority := uint64(uint32(rows[i].Priority))
		if g.Job.NonPreemptible {
			priority |= 1 << 32
		}
		c.key = binary.LittleEndian.AppendUint64(c.key, priority)
		if c.shapes == nil {
			c.addAmounts(&g.Ask.Vec)
		} else {
			c.addShape(pos, g)
		}
		if len(c.strict) > 0 {
			c.addBudgets(snap, &rows[i])
		}
	}
	class, known := c.numbers[string(c.key)]
	if !known {
		class = int32(len(c.first))
		c.numbers[string(c.key)], c.first, c.bytes = class, append(c.first, 0), c.bytes+len(c.key)
	}
	return class
}

// addBudgets adds the budgets that evicting a row would charge.
func (c *NodeClasses) addBudgets(snap *state.Snapshot, row *state.Row) {
	var under []int32
	if row.Started {
		under = snap.GroupBudgets(row.Group)
	}
	c.key = binary.LittleEndian.AppendUint32(c.key, uint32(len(under)))
	for _, at := range under {
		c.key = binary.LittleEndian.AppendUint32(c.key, uint32(at))
	}
}

// addShape adds the number of a group's equivalence class, which determines its amounts. If
// the rules of a group count its own instances beyond a node, the node shares with none.
func (c *NodeClasses) addShape(pos int32, g *model.Group) {
	number, known := c.shapes[g.EquivalenceClass()]
	if !known {
		number = uint32(len(c.shapes))
		c.shapes[g.EquivalenceClass()], c.bytes = number, c.bytes+len(g.EquivalenceClass())
	}
	node := uint32(0)
	if relocate.DependsOnItself(g) {
		node = 1 + uint32(pos)
	}
	c.key = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(c.key, number), node)
}

// addAmounts adds one amount for each dimension.
func (c *NodeClasses) addAmounts(v *model.Vector) {
	for d := range c.dims {
		c.key = binary.LittleEndian.AppendUint64(c.key, uint64(v[d]))
	}
}
