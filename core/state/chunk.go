package state

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// ChunkSize is the number of node positions in a chunk.
const ChunkSize = 64

// A Chunk holds 64 node positions by columns: the scan over all nodes reads one
// resource of 64 nodes from consecutive memory. Slices that it returns are shared
// and read-only.
type Chunk struct {
	owner  cow.Owner
	n      int
	static *static
	uses   [ChunkSize]*use

	// Invariant: free is avail less the requests of the live allocations in uses,
	// by dimension, then position. minPriority and the bit sets are derived from
	// uses, too.
	free                 []int64
	minPriority          [ChunkSize]int32
	lowestNonPreemptible uint64
	withRules            uint64
	withAnnotations      uint64
	withClaims           uint64

	modifyIndex    [ChunkSize]uint64
	maxModifyIndex uint64
}

// static is the part of a chunk that only registrations and status changes of nodes
// write.
type static struct {
	owner    cow.Owner
	avail    []int64
	nodes    [ChunkSize]*model.Node
	class    [ChunkSize]int32
	eligible uint64
}

// use is the workload of one node. A nil pointer means that there is none.
type use struct {
	owner     cow.Owner
	rowsOwner cow.Owner // of the array behind rows
	rows      []Row     // live, ascending by priority, then id
	withRules int32     // number of rows with eviction rules
	annotated int32     // number of rows with annotations
	extra     *extra
}

// extra is the data that few nodes have or few transactions change.
type extra struct {
	owner    cow.Owner
	ports    []uint16            // taken, ascending; a port with two holders is listed twice
	devices  []int32             // free instances, by position in Node.Devices
	stopping []*model.Allocation // ascending by id
	claims   []*model.Claim      // ascending by id
}

// A Row is a live allocation in the form that the victim search reads.
type Row struct {
	Alloc    *model.Allocation
	Group    *model.Group
	Priority int32 // of Alloc.Job
	Started  bool  // Alloc.Started: evicting it counts against its budgets
	Start    int64 // Unix nanoseconds at which it started; MaxInt64 until then
}

var (
	noUse   = &use{extra: noExtra}
	noExtra = &extra{}
)

func newChunk(o cow.Owner, dims int) *Chunk {
	c := &Chunk{owner: o, static: &static{owner: o}}
	c.widen(dims)
	for i := range c.minPriority {
		c.minPriority[i] = math.MaxInt32
	}
	return c
}

// widen adds columns of zeros for new dimensions. The chunk must be owned. Columns
// are replaced, so snapshots that share them are not affected.
func (c *Chunk) widen(dims int) {
	c.free = append(make([]int64, 0, dims*ChunkSize), c.free...)[:dims*ChunkSize]
	s := *c.static
	s.owner = c.owner
	s.avail = append(make([]int64, 0, dims*ChunkSize), s.avail...)[:dims*ChunkSize]
	c.static = &s
}

// use returns the workload of node i for reading.
func (c *Chunk) use(i int) *use {
	if u := c.uses[i]; u != nil {
		return u
	}
	return noUse
}

func (c *Chunk) extra(i int) *extra {
	if u := c.uses[i]; u != nil && u.extra != nil {
		return u.extra
	}
	return noExtra
}

// Len returns the number of positions in use, including those of deleted nodes.
func (c *Chunk) Len() int { return c.n }

// Node returns the node at i, or nil if there is none.
func (c *Chunk) Node(i int) *model.Node { return c.static.nodes[i] }

// Eligible returns a bit for every node that accepts new allocations.
func (c *Chunk) Eligible() uint64 { return c.static.eligible }

// Class returns the class of node i: a dense number that is valid within a
// snapshot. ClassKey returns the key that it stands for.
func (c *Chunk) Class(i int) int32 { return c.static.class[i] }

// Free returns the column of free amounts of a dimension.
func (c *Chunk) Free(d int) []int64 { return c.free[d*ChunkSize:][:ChunkSize:ChunkSize] }

// Avail returns the column of what the nodes offer of a dimension if they are
// empty.
func (c *Chunk) Avail(d int) []int64 { return c.static.avail[d*ChunkSize:][:ChunkSize:ChunkSize] }

// FreeCapacity returns the capacity of node i that its live allocations do not use;
// claims are not subtracted. A port with two holders is listed twice.
func (c *Chunk) FreeCapacity(i int) model.FreeCapacity {
	x := c.extra(i)
	return model.FreeCapacity{Free: c.free[i:], Stride: ChunkSize, Ports: x.ports, Devices: x.devices}
}

// Rows returns the live allocations of node i, ascending by priority, then ID.
func (c *Chunk) Rows(i int) []Row { return slices.Clip(c.use(i).rows) }

// Stopping returns the allocations of node i that are no longer desired and may
// still run, ascending by ID.
func (c *Chunk) Stopping(i int) []*model.Allocation { return slices.Clip(c.extra(i).stopping) }

// MinPriority returns the lowest priority of a preemptible live allocation of node
// i, or MaxInt32 if there is none.
func (c *Chunk) MinPriority(i int) int32 { return c.minPriority[i] }

// LowestNonPreemptible returns a bit for every node on which the live allocation of
// the lowest priority is not preemptible. On other nodes, MinPriority is the lowest
// priority of all.
func (c *Chunk) LowestNonPreemptible() uint64 { return c.lowestNonPreemptible }

// HasEvictionRules returns a bit for every node with a live allocation of a job
// that restricts its eviction beyond priority; see model.Job.HasEvictionRules.
func (c *Chunk) HasEvictionRules() uint64 { return c.withRules }

// HasAnnotations returns a bit for every node with a live allocation of a group that has
// annotations.
func (c *Chunk) HasAnnotations() uint64 { return c.withAnnotations }

// HasClaims returns a bit for every node with claims.
func (c *Chunk) HasClaims() uint64 { return c.withClaims }

// Claims returns the claims on node i, ascending by ID, including expired ones.
func (c *Chunk) Claims(i int) []*model.Claim { return slices.Clip(c.extra(i).claims) }

// ModifyIndex returns the index at which the capacity of node i last changed: by
// the node itself, a live allocation, or a claim.
func (c *Chunk) ModifyIndex(i int) uint64 { return c.modifyIndex[i] }

// MaxModifyIndex returns the greatest ModifyIndex of the chunk.
func (c *Chunk) MaxModifyIndex() uint64 { return c.maxModifyIndex }

// column returns Free as an array, which removes the bounds checks from the scan.
func (c *Chunk) column(d uint8) *[ChunkSize]int64 {
	return (*[ChunkSize]int64)(c.free[int(d)*ChunkSize:])
}

// Fitting returns a bit for every eligible node with enough free resources for the
// ask. Ports, devices and claims are not checked.
func (c *Chunk) Fitting(ask *model.Ask) uint64 {
	fit := c.static.eligible
	dims := ask.Dims
	for len(dims) >= 3 && fit != 0 {
		fit &^= belowMask3(c.column(dims[0]), c.column(dims[1]), c.column(dims[2]),
			ask.Vec[dims[0]], ask.Vec[dims[1]], ask.Vec[dims[2]])
		dims = dims[3:]
	}
	switch {
	case fit == 0 || len(dims) == 0:
		return fit
	case len(dims) == 1:
		return fit &^ BelowMask(c.column(dims[0]), ask.Vec[dims[0]])
	}
	// Reading the second column twice costs less than a separate pass.
	second, need := c.column(dims[1]), ask.Vec[dims[1]]
	return fit &^ belowMask3(c.column(dims[0]), second, second, ask.Vec[dims[0]], need, need)
}

// BelowMask returns a bit for every value of a column that is below need. Amounts
// are far below 2^62, so the sign of the difference is the answer, and shifting it
// in from the top needs no branch.
func BelowMask(a *[ChunkSize]int64, need int64) uint64 {
	var m uint64
	for i := range a {
		m = m>>1 | uint64(a[i]-need)&(1<<63)
	}
	return m
}

func belowMask3(a, b, c *[ChunkSize]int64, x, y, z int64) uint64 {
	var m uint64
	for i := range a {
		m = m>>1 | uint64((a[i]-x)|(b[i]-y)|(c[i]-z))&(1<<63)
	}
	return m
}

// Preemptible returns a bit for every node that runs a preemptible allocation of at most a
// priority.
func (c *Chunk) Preemptible(ceiling int64) uint64 {
	var m uint64
	for i := range c.minPriority {
		m = m>>1 | uint64(int64(c.minPriority[i])-ceiling-1)&(1<<63)
	}
	return m
}

func rowOf(a *model.Allocation) Row {
	return Row{Alloc: a, Group: a.Group, Priority: a.Job.Priority, Started: a.Started, Start: startOf(a)}
}

func startOf(a *model.Allocation) int64 {
	if !a.Started {
		return math.MaxInt64
	}
	return a.StartTime
}
