package relocate

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/state"
)

// maxExamined is the number of nodes that are examined for each way to run an allocation
// elsewhere: with free capacity, and by evictions. Nodes that their own properties or the
// columns of capacity exclude do not count. It bounds the work for an answer. If there are
// more, those are examined that come first by ID: servers may number nodes differently.
const maxExamined = 256

// Places checks nodes for the allocations of any job by everything but their capacity.
type Places interface {
	// Prepare selects the allocation that the following calls are about. It counts as
	// evicted.
	Prepare(a *model.Allocation)
	// Feasible reports whether the node at position i of a chunk may run it by the node's
	// own properties.
	Feasible(chunk *state.Chunk, i int) bool
	// IsSlow reports whether Feasible compares node by node.
	IsSlow() bool
	// Allows reports whether the allocations that run elsewhere let the node at pos run it.
	Allows(pos int32) bool
}

// A Setup holds the inputs of a search.
type Setup struct {
	Snap *state.Snapshot
	Now  int64
	// Gap is by how much the priority of an evicted allocation must be lower, at least 1.
	Gap int64
	// Places are the checks besides capacity; nil: none.
	Places Places
	// ByRank holds the positions of all nodes in the order in which ties are broken; nil:
	// by position.
	ByRank []int32
}

// A Finder computes answers on demand and keeps them for one search. Allocations of one
// shape share the work: those of groups that fit on the same nodes.
type Finder struct {
	mu sync.Mutex
	Setup
	shapes map[string]*shape
	alone  map[*model.Allocation]*shape // of groups that depend on themselves

	ranks []int32 // by position; empty: not computed yet

	// Scratch of compute.
	nodes   []uint64 // to be examined, by chunk
	dims    fit.Dims
	check   fit.Check
	deficit []int64
	victims []*state.Row
	claims  model.Vector
}

// A shape is a set of allocations that could run in the same places. Its places include the
// homes of its own allocations, and an answer leaves out the home that it is about.
type shape struct {
	places
	row *state.Row // one of them
}

// Start discards the answers of an earlier search.
func (f *Finder) Start(s Setup) {
	f.Setup = s
	f.Gap = max(1, s.Gap)
	f.ranks = f.ranks[:0]
	clear(f.shapes)
	clear(f.alone)
	if f.shapes == nil {
		f.shapes, f.alone = map[string]*shape{}, map[*model.Allocation]*shape{}
	}
}

// Release drops references into the snapshot.
func (f *Finder) Release() {
	clear(f.shapes)
	clear(f.alone)
	clear(f.victims[:cap(f.victims)])
	f.Setup = Setup{}
}

// computed returns the shape of an allocation if there is one, or nil.
func (f *Finder) computed(row *state.Row) *shape {
	f.mu.Lock()
	defer f.mu.Unlock()
	if DependsOnItself(row.Group) {
		return f.alone[row.Alloc]
	}
	return f.shapes[row.Group.EquivalenceClass()]
}

// shapeOf returns the shape of an allocation and computes it if necessary.
func (f *Finder) shapeOf(row *state.Row) *shape {
	if s := f.computed(row); s != nil {
		return s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &shape{row: row}
	if DependsOnItself(row.Group) {
		if other := f.alone[row.Alloc]; other != nil {
			return other // of another worker
		}
		f.alone[row.Alloc] = s
	} else {
		if other := f.shapes[row.Group.EquivalenceClass()]; other != nil {
			return other
		}
		f.shapes[row.Group.EquivalenceClass()] = s
	}
	f.compute(s)
	return s
}

// compute finds the places of a shape. It costs a pass over the columns of the requested
// dimensions, and twice maxExamined nodes.
func (f *Finder) compute(s *shape) {
	s.places = noPlaces
	g := s.row.Group
	if g.Job.Type.PerNode() {
		return // its instances never run on another node
	}
	f.prepare(s)
	if id, pinned := pinnedTo(g); pinned {
		if pos, ok := f.Snap.Position(id); ok {
			f.examineOnly(s, pos)
		}
		return
	}
	f.findFree(s)
	if s.free[1] >= 0 {
		return
	}
	f.dims.Reset(&g.Ask, f.Snap.Dims().Len())
	f.findTargets(s)
}

// prepare selects a shape for the checks besides capacity.
func (f *Finder) prepare(s *shape) {
	if f.Places != nil {
		f.Places.Prepare(s.row.Alloc)
	}
}

// pinnedTo returns the ID of the only node that a group may run on, if its constraints name
// one.
func pinnedTo(g *model.Group) (id string, pinned bool) {
	at := slices.IndexFunc(g.Constraints, func(c model.Constraint) bool {
		return c.Attribute == model.AttributeNodeID && c.Operator == model.OpEqual
	})
	if at < 0 {
		return "", false
	}
	return g.Constraints[at].Value, true
}

// examineOnly examines one node.
func (f *Finder) examineOnly(s *shape, pos int32) {
	chunk, i := f.Snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	if chunk.Eligible()>>i&1 == 0 || f.Places != nil && (!f.Places.Feasible(chunk, i) || !f.Places.Allows(pos)) {
		return
	}
	g := s.row.Group
	if chunk.Fitting(&g.Ask)>>i&1 == 1 && f.fits(g, chunk, i, pos) {
		s.free[0] = pos
	}
	f.dims.Reset(&g.Ask, f.Snap.Dims().Len())
	s.addTarget(f.target(g, chunk, i, pos))
}

// findFree finds two nodes with enough free capacity.
func (f *Finder) findFree(s *shape) {
	g, total := s.row.Group, 0
	f.nodes = scratch.Sized(f.nodes, f.Snap.ChunkCount())
	for c := range f.nodes {
		f.nodes[c] = f.Snap.Chunk(c).Fitting(&g.Ask)
		total += bits.OnesCount64(f.nodes[c])
	}
	s.lastFree = f.examine(total, func(chunk *state.Chunk, i int, pos int32) (enough bool) {
		if !f.fits(g, chunk, i, pos) {
			return false
		}
		if s.free[0] >= 0 {
			s.free[1] = pos
			return true
		}
		s.free[0] = pos
		return false
	})
}

// examine calls visit with the nodes to be examined that may run the prepared allocation if
// they have the capacity, until visit returns true. If the limit is reached, it returns the rank
// of the last node that counted, else math.MaxInt32.
func (f *Finder) examine(total int, visit func(chunk *state.Chunk, i int, pos int32) (enough bool)) (last int32) {
	if total > maxExamined && f.ByRank != nil {
		return f.examineByRank(visit)
	}
	left := maxExamined
	for c, nodes := range f.nodes {
		chunk := f.Snap.Chunk(c)
		for ; nodes != 0; nodes &= nodes - 1 {
			i := bits.TrailingZeros64(nodes)
			pos := int32(c*state.ChunkSize + i)
			if left <= 0 {
				return last
			}
			if last = pos; f.allows(chunk, i, pos, &left) && visit(chunk, i, pos) {
				return math.MaxInt32
			}
		}
	}
	return math.MaxInt32
}

// examineByRank is examine in the order in which ties are broken.
func (f *Finder) examineByRank(visit func(chunk *state.Chunk, i int, pos int32) (enough bool)) (last int32) {
	left := maxExamined
	for rank, pos := range f.ByRank {
		c, i := int(pos)/state.ChunkSize, int(pos)%state.ChunkSize
		if f.nodes[c]>>i&1 == 0 {
			continue
		}
		if left <= 0 {
			return last
		}
		last = int32(rank)
		if chunk := f.Snap.Chunk(c); f.allows(chunk, i, pos, &left) && visit(chunk, i, pos) {
			return math.MaxInt32
		}
	}
	return math.MaxInt32
}

// rank returns the position of a node in the order in which nodes are examined.
func (f *Finder) rank(pos int32) int32 {
	if f.ByRank == nil {
		return pos
	}
	if len(f.ranks) == 0 {
		f.ranks = scratch.Sized(f.ranks, f.Snap.ChunkCount()*state.ChunkSize)
		for rank, pos := range f.ByRank {
			f.ranks[pos] = int32(rank)
		}
	}
	return f.ranks[pos]
}

// allows reports whether a node may run the prepared allocation if it has the capacity, and
// counts the nodes that had to be examined.
func (f *Finder) allows(chunk *state.Chunk, i int, pos int32, left *int) bool {
	if f.Places == nil {
		*left--
		return true
	}
	if f.Places.IsSlow() {
		*left--
		return f.Places.Feasible(chunk, i) && f.Places.Allows(pos)
	}
	if !f.Places.Feasible(chunk, i) {
		return false
	}
	*left--
	return f.Places.Allows(pos)
}

// fits reports whether a node has the ports and devices for a group, and no claims on that
// capacity. The columns of the node cover the request. Claims of the group's own job are for instances
// that wait, so that they count as well.
func (f *Finder) fits(g *model.Group, chunk *state.Chunk, i int, pos int32) bool {
	if len(g.Ask.Ports)+len(g.Ask.Devices) == 0 && chunk.HasClaims()>>i&1 == 0 {
		return true
	}
	capacity := f.Snap.FreeCapacityFor(pos, model.JobKey{}, g.Job.Priority, f.Now, &f.claims)
	return slices.ContainsFunc(chunk.Node(i).DeviceChoices(&g.Ask), func(choice []int16) bool {
		return model.Fits(capacity, &g.Ask, choice).Kind == model.ShortageNone
	})
}
