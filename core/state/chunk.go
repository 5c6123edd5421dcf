package state

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// ChunkSize is how many node positions a chunk holds.
const ChunkSize = 64

// Chunk is 64 node positions by columns: the scan over all nodes reads one
// resource of 64 nodes in a row of memory. Slices that it returns are shared
// and read-only.
type Chunk struct {
	owner  cow.Owner
	n      int
	static *static
	uses   [ChunkSize]*use

	// Invariant: free is avail less what the live allocations in uses ask for,
	// by dimension, then position; minPriority follows from them, too.
	free                 []int64
	minPriority          [ChunkSize]int32
	lowestNonPreemptible uint64 // see Pinned
	withRules            uint64 // see Guarded
	withClaims           uint64 // see Claimed

	modifyIndex    [ChunkSize]uint64
	maxModifyIndex uint64
}

// still is what only registrations and node status change.
type static struct {
	owner    cow.Owner
	avail    []int64
	nodes    [ChunkSize]*model.Node
	class    [ChunkSize]int32
	eligible uint64
}

// use is what is on one node. Nil stands for nothing.
type use struct {
	owner     cow.Owner
	rowsOwner cow.Owner // of the array behind rows
	rows      []Row     // live, ascending by priority, then id
	withRules int32     // of rows
	extra     *extra
}

// extra is what few nodes have, or few transactions change.
type extra struct {
	owner    cow.Owner
	ports    []uint16            // taken, ascending; a port that two hold is there twice
	devices  []int32             // free, by position in Node.Devices
	stopping []*model.Allocation // ascending by id
	claims   []*model.Claim      // ascending by id
}

// Row is a live allocation as the search for victims wants to read it.
type Row struct {
	Alloc    *model.Allocation
	Group    *model.Group
	Priority int32 // of Alloc.Job
	Started  bool  // Alloc's: it works, so that evicting it costs its budgets
	Start    int64 // when it began to, Unix ns; the greatest number while it does not
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

// widen adds columns of zeros for new dimensions. The chunk must be owned; the
// columns are replaced, so whoever shares them does not notice.
func (c *Chunk) widen(dims int) {
	c.free = append(make([]int64, 0, dims*ChunkSize), c.free...)[:dims*ChunkSize]
	s := *c.static
	s.owner = c.owner
	s.avail = append(make([]int64, 0, dims*ChunkSize), s.avail...)[:dims*ChunkSize]
	c.static = &s
}

// use is what is on node i, for reading.
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

// Len is how many positions are in use, holes of deleted nodes among them.
func (c *Chunk) Len() int { return c.n }

// Node is the node at i; nil where there is none.
func (c *Chunk) Node(i int) *model.Node { return c.static.nodes[i] }

// Eligible has a bit for every node that takes new work.
func (c *Chunk) Eligible() uint64 { return c.static.eligible }

// Class is the class of node i: a dense number that holds within a snapshot.
// ClassKey tells what it stands for.
func (c *Chunk) Class(i int) int32 { return c.static.class[i] }

// Free is the column of what the nodes have left of a dimension.
func (c *Chunk) Free(d int) []int64 { return c.free[d*ChunkSize:][:ChunkSize:ChunkSize] }

// Avail is the column of what the nodes offer of a dimension when they are
// empty.
func (c *Chunk) Avail(d int) []int64 { return c.static.avail[d*ChunkSize:][:ChunkSize:ChunkSize] }

// FreeCapacity is what node i has left beside its live allocations; claims are not
// taken off. A port that two hold is listed twice.
func (c *Chunk) FreeCapacity(i int) model.FreeCapacity {
	x := c.extra(i)
	return model.FreeCapacity{Free: c.free[i:], Stride: ChunkSize, Ports: x.ports, Devices: x.devices}
}

// Rows is the live allocations of node i, ascending by priority, then id.
func (c *Chunk) Rows(i int) []Row { return slices.Clip(c.use(i).rows) }

// Stopping returns the allocations of node i that are no longer desired and may
// still run, ascending by ID.
func (c *Chunk) Stopping(i int) []*model.Allocation { return slices.Clip(c.extra(i).stopping) }

// MinPriority is the lowest priority of a live allocation of node i that may
// be a victim; MaxInt32 without any.
func (c *Chunk) MinPriority(i int) int32 { return c.minPriority[i] }

// LowestNonPreemptible has a bit for every node whose live allocation of the lowest priority is
// none that may be a victim. On the others MinPriority is the lowest of all.
func (c *Chunk) LowestNonPreemptible() uint64 { return c.lowestNonPreemptible }

// HasEvictionRules has a bit for every node with a live allocation of whose job more than
// priority says who may be a victim, or who goes with one.
func (c *Chunk) HasEvictionRules() uint64 { return c.withRules }

// HasClaims has a bit for every node with claims.
func (c *Chunk) HasClaims() uint64 { return c.withClaims }

// Claims is the claims on node i, ascending by id, expired ones included.
func (c *Chunk) Claims(i int) []*model.Claim { return slices.Clip(c.extra(i).claims) }

// ModifyIndex is the index at which the room of node i last changed: the node
// itself, a live allocation, or a claim.
func (c *Chunk) ModifyIndex(i int) uint64 { return c.modifyIndex[i] }

// MaxModifyIndex is the greatest ModifyIndex of the chunk.
func (c *Chunk) MaxModifyIndex() uint64 { return c.maxModifyIndex }

// column is Free as an array, which spares the scan its bounds checks.
func (c *Chunk) column(d uint8) *[ChunkSize]int64 {
	return (*[ChunkSize]int64)(c.free[int(d)*ChunkSize:])
}

// Fitting has a bit for every eligible node whose every resource covers the
// ask. Ports, devices and claims are not looked at.
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
	// Reading the second column twice costs less than a pass of its own.
	second, need := c.column(dims[1]), ask.Vec[dims[1]]
	return fit &^ belowMask3(c.column(dims[0]), second, second, ask.Vec[dims[0]], need, need)
}

// BelowMask has a bit for every value of a column below need. Amounts are far below 2^62, so
// the sign of the difference is the answer, and shifting it in from the top
// needs no branch.
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

func rowOf(a *model.Allocation) Row {
	return Row{Alloc: a, Group: a.Group, Priority: a.Job.Priority, Started: a.Started, Start: startOf(a)}
}

func startOf(a *model.Allocation) int64 {
	if !a.Started {
		return math.MaxInt64
	}
	return a.StartTime
}
