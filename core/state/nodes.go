package state

import (
	"iter"
	"math"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// nodeTable holds the nodes by position, 64 to a Chunk.
//
// Invariant: positions maps the ID of every node that is registered, or that an
// allocation or claim refers to, to its position.
type nodeTable struct {
	chunks      []*Chunk
	chunksOwner cow.Owner // of the array behind chunks
	positions   cow.Table[string]
	nodes       int // registered nodes
	nodeOrder   *cow.Ordering
	classes     cow.Table[class]
	softTaints  int // nodes with a taint that may lower their rank
	noExecute   int // nodes with a taint of effect NoExecute
}

func newNodeTable() nodeTable { return nodeTable{nodeOrder: &cow.Ordering{}} }

// class is a set of nodes that constraints cannot distinguish.
type class struct {
	key   uint64
	nodes int32
}

// Position returns the position of a node. It stays the same as long as the node is
// registered or an allocation or claim refers to it. Servers that restored a
// snapshot may number nodes differently, so positions must not affect decisions:
// break ties by ID.
func (v *nodeTable) Position(nodeID string) (int32, bool) {
	pos, ok := v.findPosition(nodeID)
	if !ok || v.NodeAt(pos) == nil {
		return 0, false
	}
	return pos, true
}

// findPosition returns the position of an ID, which need not be registered.
func (v *nodeTable) findPosition(nodeID string) (int32, bool) {
	return v.positions.Find(hashID(nodeID), func(pos int32) bool { return v.positions.At(pos) == nodeID })
}

// Node returns the node with the ID, or nil if there is none.
func (v *nodeTable) Node(id string) *model.Node {
	pos, ok := v.findPosition(id)
	if !ok {
		return nil
	}
	return v.NodeAt(pos)
}

// NodeAt returns the node at a position, or nil if it was deleted.
func (v *nodeTable) NodeAt(pos int32) *model.Node {
	return v.chunks[pos/ChunkSize].Node(int(pos % ChunkSize))
}

// NodeCount returns the number of nodes.
func (v *nodeTable) NodeCount() int { return v.nodes }

// ChunkCount returns the number of chunks.
func (v *nodeTable) ChunkCount() int { return len(v.chunks) }

// Chunk returns the i-th chunk: positions from i*ChunkSize.
func (v *nodeTable) Chunk(i int) *Chunk { return v.chunks[i] }

// NodeOrder returns the positions of all nodes, ascending by node ID. The slice is
// shared and read-only.
func (v *nodeTable) NodeOrder() []int32 {
	return v.nodeOrder.Slots(v.positions.Size(),
		func(pos int32) bool { return v.NodeAt(pos) != nil },
		func(a, b int32) int { return strings.Compare(v.positions.At(a), v.positions.At(b)) })
}

// Nodes yields the nodes, ascending by ID.
func (v *nodeTable) Nodes() iter.Seq[*model.Node] {
	return func(yield func(*model.Node) bool) {
		for _, pos := range v.NodeOrder() {
			if !yield(v.NodeAt(pos)) {
				return
			}
		}
	}
}

// ClassCount returns one more than the greatest Chunk.Class.
func (v *nodeTable) ClassCount() int { return v.classes.Size() }

// ClassKey returns Node.ClassKey of the nodes of a class.
func (v *nodeTable) ClassKey(id int32) uint64 { return v.classes.At(id).key }

// HasSoftTaints reports whether some node has a taint that may lower its rank
// rather than exclude it.
func (v *nodeTable) HasSoftTaints() bool { return v.softTaints > 0 }

// HasNoExecuteTaints reports whether some node has a taint of effect NoExecute.
func (v *nodeTable) HasNoExecuteTaints() bool { return v.noExecute > 0 }

// countTaints updates the counts of nodes by taint effect.
func (v *nodeTable) countTaints(old, next *model.Node) {
	for _, c := range []struct {
		node *model.Node
		by   int
	}{{old, -1}, {next, 1}} {
		if c.node == nil {
			continue
		}
		if c.node.HasSoftTaint() {
			v.softTaints += c.by
		}
		if c.node.HasNoExecute() {
			v.noExecute += c.by
		}
	}
}

// addPosition gives an ID a position. dims is the number of columns of a new chunk.
func (v *nodeTable) addPosition(o cow.Owner, dims int, nodeID string) int32 {
	pos := v.positions.Insert(o, hashID(nodeID), nodeID)
	i := int(pos / ChunkSize)
	if i == len(v.chunks) {
		v.ownChunks(o)
		v.chunks = append(v.chunks, newChunk(o, dims))
	}
	if c := v.ownChunk(o, i); int(pos%ChunkSize) >= c.n {
		c.n = int(pos%ChunkSize) + 1
	}
	return pos
}

func (v *nodeTable) deletePosition(o cow.Owner, pos int32) {
	v.positions.Delete(o, hashID(v.positions.At(pos)), pos)
}

// ownChunk returns the i-th chunk for writing.
func (v *nodeTable) ownChunk(o cow.Owner, i int) *Chunk {
	c := v.chunks[i]
	if c.owner == o {
		return c
	}
	v.ownChunks(o)
	own := *c
	own.owner, own.free = o, append([]int64(nil), c.free...)
	v.chunks[i] = &own
	return &own
}

func (v *nodeTable) ownChunks(o cow.Owner) {
	if v.chunksOwner != o {
		v.chunks = append(make([]*Chunk, 0, len(v.chunks)+1), v.chunks...)
		v.chunksOwner = o
	}
}

func (v *nodeTable) findClass(key uint64) (int32, bool) {
	return v.classes.Find(hashClass(key), func(id int32) bool { return v.classes.At(id).key == key })
}

func (v *nodeTable) joinClass(o cow.Owner, key uint64) int32 {
	id, ok := v.findClass(key)
	if !ok {
		return v.classes.Insert(o, hashClass(key), class{key, 1})
	}
	c := v.classes.At(id)
	v.classes.Set(o, id, class{key, c.nodes + 1})
	return id
}

// leaveClass frees the number of a class without nodes: attributes that change with
// every registration would otherwise use up numbers without bound.
func (v *nodeTable) leaveClass(o cow.Owner, key uint64) {
	id, _ := v.findClass(key)
	c := v.classes.At(id)
	if c.nodes == 1 {
		v.classes.Delete(o, hashClass(key), id)
		return
	}
	v.classes.Set(o, id, class{key, c.nodes - 1})
}

// Upsert registers a node, or another version of it. It compiles the node and
// sets its indexes. Allocations on it remain, whatever its capacity is. It returns
// model.ErrTooManyDimensions if the node names too many resources.
func (t NodeWriter) Upsert(n *model.Node) error {
	if err := t.RequireDimensions(n.Capacity, n.Reserved); err != nil {
		return err
	}
	pos, ok := t.findPosition(n.ID)
	if !ok {
		pos = t.addPosition(t.ownerOfNodes(), t.dims.Len(), n.ID)
	}
	t.replaceAt(pos, n)
	return nil
}

// Replace stores another version of a registered node that names no new
// resources.
func (t NodeWriter) Replace(n *model.Node) { t.replaceAt(t.registered(n), n) }

// registered returns the position of a node, and panics if it is not registered.
func (v *nodeTable) registered(n *model.Node) int32 {
	pos, ok := v.Position(n.ID)
	if !ok {
		panic("state: node " + n.ID + " is not registered")
	}
	return pos
}

func (t NodeWriter) replaceAt(pos int32, n *model.Node) {
	old := t.NodeAt(pos)
	if old == n {
		panic("state: node " + n.ID + " written again without a copy")
	}
	n.Compile(t.dims)
	if old != nil {
		t.stamp(&n.CreateIndex, &n.ModifyIndex, old.CreateIndex)
	} else {
		t.stamp(&n.CreateIndex, &n.ModifyIndex, 0)
		t.nodes++
		t.nodeOrder = t.nodeOrder.With(t.owner, pos)
	}
	w := t.openPosition(pos)
	BudgetWriter(t).recountAround(pos, old, n, func() { w.setNode(n) })
	w.ownStatic().class[w.i] = t.joinClass(t.owner, n.ClassKey)
	if old != nil {
		t.leaveClass(t.owner, old.ClassKey)
	}
	t.touch(TableNodes.Of(n.ID))
}

// SetStatus replaces a registered node by a copy that differs in status,
// eligibility or drain alone. It costs less than ReplaceNode.
func (t NodeWriter) SetStatus(n *model.Node) {
	pos := t.registered(n)
	t.stamp(&n.CreateIndex, &n.ModifyIndex, n.CreateIndex)
	w := t.openPosition(pos)
	BudgetWriter(t).recountAround(pos, t.NodeAt(pos), n, func() { w.setStatus(n) })
	t.touch(TableNodes.Of(n.ID))
}

// Delete deletes a node, if it is registered. Allocations and claims that refer
// to it remain, and count again if it is registered again.
func (t NodeWriter) Delete(id string) {
	pos, ok := t.Position(id)
	if !ok {
		return
	}
	t.leaveClass(t.owner, t.NodeAt(pos).ClassKey)
	w := t.openPosition(pos)
	BudgetWriter(t).recountAround(pos, t.NodeAt(pos), nil, func() { w.setNode(nil) })
	w.ownStatic().class[w.i] = 0
	t.nodes--
	t.nodeOrder = t.nodeOrder.With(t.owner, pos)
	w.releasePosition()
	t.touch(TableNodes.Of(id))
}

// A NodeSet is a set of nodes of one snapshot, as positions. A nil set contains every
// node.
type NodeSet struct{ chunks []uint64 }

// NodeSet returns the set of the nodes with the given IDs. Unknown IDs are ignored.
func (v *nodeTable) NodeSet(ids ...string) *NodeSet {
	s := &NodeSet{chunks: make([]uint64, v.ChunkCount())}
	for _, id := range ids {
		if pos, ok := v.Position(id); ok {
			s.chunks[pos/ChunkSize] |= 1 << (pos % ChunkSize)
		}
	}
	return s
}

// InChunk returns the nodes of a chunk that are in the set, as a bit for each position.
func (s *NodeSet) InChunk(c int) uint64 {
	if s == nil {
		return math.MaxUint64
	}
	return s.chunks[c]
}
