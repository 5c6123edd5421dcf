package state

import (
	"iter"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// class is a set of nodes that constraints cannot tell apart.
type class struct {
	key   uint64
	nodes int32
}

// Position is where a node is. It stays the same for as long as the node is
// registered or an allocation or claim refers to it. Servers that restored a
// snapshot may number nodes otherwise, so positions must not decide anything:
// break ties by id.
func (v *View) Position(nodeID string) (int32, bool) {
	pos, ok := v.place(nodeID)
	if !ok || v.NodeAt(pos) == nil {
		return 0, false
	}
	return pos, true
}

// place is the position of a node, or of what refers to one that is not
// registered.
func (v *View) place(nodeID string) (int32, bool) {
	return v.places.index.Find(hashID(nodeID), func(pos int32) bool { return v.places.at(pos) == nodeID })
}

// Node is the node with this id; nil when there is none.
func (v *View) Node(id string) *model.Node {
	pos, ok := v.place(id)
	if !ok {
		return nil
	}
	return v.NodeAt(pos)
}

// NodeAt is the node at a position; nil when it was deleted.
func (v *View) NodeAt(pos int32) *model.Node {
	return v.chunks[pos/ChunkSize].Node(int(pos % ChunkSize))
}

// NodeCount is the number of nodes.
func (v *View) NodeCount() int { return v.nodes }

// ChunkCount is the number of chunks.
func (v *View) ChunkCount() int { return len(v.chunks) }

// Chunk is the i-th chunk: positions from i*ChunkSize.
func (v *View) Chunk(i int) *Chunk { return v.chunks[i] }

// NodeOrder is the positions of all nodes, ascending by node id. It is shared
// and read-only.
func (v *View) NodeOrder() []int32 {
	return v.nodeOrder.slots(v.places.size(),
		func(pos int32) bool { return v.NodeAt(pos) != nil },
		func(a, b int32) int { return strings.Compare(v.places.at(a), v.places.at(b)) })
}

// Nodes yields the nodes, ascending by id.
func (v *View) Nodes() iter.Seq[*model.Node] {
	return func(yield func(*model.Node) bool) {
		for _, pos := range v.NodeOrder() {
			if !yield(v.NodeAt(pos)) {
				return
			}
		}
	}
}

// ClassCount is one more than the greatest Chunk.Class.
func (v *View) ClassCount() int { return v.classes.size() }

// ClassKey is Node.ClassKey of the nodes of a class.
func (v *View) ClassKey(id int32) uint64 { return v.classes.at(id).key }

// HasSoftTaints is whether some node has a taint that is a wish rather than a rule.
func (v *View) HasSoftTaints() bool { return v.discouraging > 0 }

// HasNoExecuteTaints is whether some node has a taint for whose sake work leaves it.
func (v *View) HasNoExecuteTaints() bool { return v.banishing > 0 }

// countTaints counts nodes by what their taints do.
func (t *Txn) countTaints(old, next *model.Node) {
	for _, c := range []struct {
		node *model.Node
		by   int
	}{{old, -1}, {next, 1}} {
		if c.node == nil {
			continue
		}
		if c.node.HasSoftTaint() {
			t.discouraging += c.by
		}
		if c.node.HasNoExecute() {
			t.banishing += c.by
		}
	}
}

// UpsertNode registers a node, or another version of it. It compiles the node
// and sets its indexes. Allocations on it stay, whatever its capacity is now.
func (t *Txn) UpsertNode(n *model.Node) error {
	if err := t.RequireDimensions(n.Capacity, n.Reserved); err != nil {
		return err
	}
	pos, ok := t.place(n.ID)
	if !ok {
		pos = t.addPlace(n.ID)
	}
	t.rewriteNode(pos, n)
	return nil
}

// ReplaceNode stores another version of a registered node that names no new
// resources.
func (t *Txn) ReplaceNode(n *model.Node) {
	pos, ok := t.Position(n.ID)
	if !ok {
		panic("state: node " + n.ID + " is not registered")
	}
	t.rewriteNode(pos, n)
}

// rewriteNode stores a node at its position, whose resources are known.
func (t *Txn) rewriteNode(pos int32, n *model.Node) {
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
		t.nodeOrder = t.nodeOrder.with(t.owner, pos)
	}
	w := t.openAt(pos)
	t.countOn(pos, old, n, func() { w.setNode(n) })
	w.still().class[w.i] = t.joinClass(n.ClassKey)
	if old != nil {
		t.leaveClass(old.ClassKey)
	}
	t.touch(TableNodes.Of(n.ID))
}

// DeleteNode forgets a node. Allocations and claims that refer to it remain
// and count again if it comes back.
func (t *Txn) DeleteNode(id string) {
	pos, ok := t.Position(id)
	if !ok {
		return
	}
	t.leaveClass(t.NodeAt(pos).ClassKey)
	w := t.openAt(pos)
	t.countOn(pos, t.NodeAt(pos), nil, func() { w.setNode(nil) })
	w.still().class[w.i] = 0
	t.nodes--
	t.nodeOrder = t.nodeOrder.with(t.owner, pos)
	w.release()
	t.touch(TableNodes.Of(id))
}

// SetNodeStatus replaces a registered node by a copy that differs in status,
// eligibility or drain alone. It costs less than ReplaceNode.
func (t *Txn) SetNodeStatus(n *model.Node) {
	pos, ok := t.Position(n.ID)
	if !ok {
		panic("state: node " + n.ID + " is not registered")
	}
	t.stamp(&n.CreateIndex, &n.ModifyIndex, n.CreateIndex)
	w := t.openAt(pos)
	t.countOn(pos, t.NodeAt(pos), n, func() { w.setStatus(n) })
	t.touch(TableNodes.Of(n.ID))
}

// stamp sets the indexes of a value that is being written; created is when it
// first was, 0 when that is now.
func (t *Txn) stamp(create, modify *uint64, created uint64) {
	if t.restores {
		return
	}
	*modify = t.index
	*create = t.index
	if created != 0 {
		*create = created
	}
}

func (t *Txn) addPlace(nodeID string) int32 {
	pos := t.places.insert(t.owner, hashID(nodeID), nodeID)
	i := int(pos / ChunkSize)
	if i == len(t.chunks) {
		t.ownChunks()
		t.chunks = append(t.chunks, newChunk(t.owner, t.dims.Len()))
	}
	if c := t.chunk(i); int(pos%ChunkSize) >= c.n {
		c.n = int(pos%ChunkSize) + 1
	}
	return pos
}

func (t *Txn) dropPlace(pos int32) {
	t.places.delete(t.owner, hashID(t.places.at(pos)), pos)
}

// chunk is the i-th chunk, made writable.
func (t *Txn) chunk(i int) *Chunk {
	c := t.chunks[i]
	if c.owner == t.owner {
		return c
	}
	t.ownChunks()
	own := *c
	own.owner, own.free = t.owner, append([]int64(nil), c.free...)
	t.chunks[i] = &own
	return &own
}

func (t *Txn) ownChunks() {
	if t.chunksOwner != t.owner {
		t.chunks = append(make([]*Chunk, 0, len(t.chunks)+1), t.chunks...)
		t.chunksOwner = t.owner
	}
}

func (v *View) findClass(key uint64) (int32, bool) {
	return v.classes.index.Find(hashClass(key), func(id int32) bool { return v.classes.at(id).key == key })
}

func (t *Txn) joinClass(key uint64) int32 {
	id, ok := t.findClass(key)
	if !ok {
		return t.classes.insert(t.owner, hashClass(key), class{key, 1})
	}
	c := t.classes.at(id)
	t.classes.set(t.owner, id, class{key, c.nodes + 1})
	return id
}

// leaveClass gives the number of a class without nodes back, as attributes
// that change with every registration would use up numbers for ever.
func (t *Txn) leaveClass(key uint64) {
	id, _ := t.findClass(key)
	c := t.classes.at(id)
	if c.nodes == 1 {
		t.classes.delete(t.owner, hashClass(key), id)
		return
	}
	t.classes.set(t.owner, id, class{key, c.nodes - 1})
}
