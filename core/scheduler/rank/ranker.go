package rank

import (
	"math"
	"math/bits"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/state"
)

// A FitStatus states whether a node can take one more instance of a group.
type FitStatus int8

// The statuses.
const (
	Unchecked    FitStatus = iota // not examined: it lacks capacity, or nothing changed there since the group failed
	Infeasible                    // cannot take it, even after evictions
	NeedsPreempt                  // may take it after evictions
	Fits                          // has enough free capacity
)

// An Input holds the inputs of a Ranker, which retains the pointers until the next Build.
type Input struct {
	State      *proposal.State
	Order      *Order
	Group      *model.Group
	Checker    *feasible.NodeChecker
	Rules      *feasible.Rules // nil: the group has none
	Algorithm  model.Algorithm
	Now        int64
	Preemption proposal.Preemption
	// Since excludes nodes that have not changed after this index; 0: none.
	Since uint64
	// Nodes excludes all other nodes; nil: none.
	Nodes *state.NodeSet
}

// A Ranker ranks the nodes that have enough free capacity for one group and records
// those that do not. Build makes one pass over the columns; then Update follows the
// plan node by node. A scan per instance would make large jobs slow on large clusters.
// It belongs to one evaluation at a time. Its slices grow to the number of nodes and
// are reused.
type Ranker struct {
	Input
	plain bool // the columns alone decide whether an instance fits

	status   []FitStatus // by rank
	score    []float64   // by rank, of those that fit
	complete bool        // nodes that lack capacity have been examined
	anyFull  bool        // some node may need preemption
	full     []int32     // see Full
	first    int         // rank of the best node, until the tree exists; -1: none
	tree     winnerTree
	hasTree  bool // the tree exists and is up to date
	stale    bool // first is out of date: best has to make the tree
}

// Build ranks all nodes, or those that changed after in.Since.
func (k *Ranker) Build(in Input) {
	k.Input = in
	k.plain = len(in.Group.Ask.Ports) == 0 && len(in.Group.Ask.Devices) == 0
	n := len(in.Order.ByRank)
	k.status, k.score = feasible.Resize(k.status, n), feasible.Resize(k.score, n)
	k.scan()
}

// Rebuild ranks all nodes again: with rules such as spread one placement may
// change the rank of every node.
func (k *Ranker) Rebuild() {
	k.Since = 0
	k.scan()
}

// Status returns the status of the node with a rank.
func (k *Ranker) Status(rank int) FitStatus { return k.status[rank] }

// Score returns the score of the node with a rank. The status of the node must be Fits.
func (k *Ranker) Score(rank int) float64 { return k.score[rank] }

// scan ranks the nodes whose columns cover the request. A chunk without changes costs
// one comparison.
func (k *Ranker) scan() {
	clear(k.status)
	k.complete, k.anyFull, k.first, k.hasTree, k.stale = false, false, -1, false, false
	snap := k.State.Snapshot()
	if d := k.Checker.Within; d != nil {
		for _, s := range d.Spans {
			k.scanChunk(snap.Chunk(s.Chunk), s.Chunk, s.Nodes&k.Nodes.InChunk(s.Chunk))
		}
		return
	}
	for c := range snap.ChunkCount() {
		k.scanChunk(snap.Chunk(c), c, k.Nodes.InChunk(c))
	}
}

// scanChunk ranks those of some nodes of a chunk whose columns cover the request.
func (k *Ranker) scanChunk(chunk *state.Chunk, c int, nodes uint64) {
	if nodes == 0 || k.Since > 0 && chunk.MaxModifyIndex() <= k.Since {
		return
	}
	if nodes = k.changed(chunk, nodes&chunk.Fitting(&k.Group.Ask)); nodes != 0 {
		k.scanFitting(chunk, c*state.ChunkSize, nodes)
	}
}

// changed returns those of a chunk's nodes that have changed after Since.
func (k *Ranker) changed(chunk *state.Chunk, nodes uint64) uint64 {
	switch {
	case k.Since == 0:
		return nodes
	case chunk.MaxModifyIndex() <= k.Since:
		return 0
	}
	for left := nodes; left != 0; left &= left - 1 {
		if i := bits.TrailingZeros64(left); chunk.ModifyIndex(i) <= k.Since {
			nodes &^= 1 << i
		}
	}
	return nodes
}

// scanFitting ranks nodes of a chunk. Their columns cover the request.
func (k *Ranker) scanFitting(chunk *state.Chunk, base int, nodes uint64) {
	for ; nodes != 0; nodes &= nodes - 1 {
		i := bits.TrailingZeros64(nodes)
		rank := k.Order.RankOf[base+i]
		if !k.Checker.Feasible(chunk, i) {
			k.status[rank] = Infeasible
			continue
		}
		k.assess(rank, chunk, i, int32(base+i), true)
		if k.status[rank] == Fits {
			k.lead(rank)
		}
	}
}

// ScanFull examines the nodes that lack capacity. It is separate from Build because
// they are not needed while other nodes fit, and on a full cluster they are nearly all.
func (k *Ranker) ScanFull() {
	if k.complete {
		return
	}
	k.complete = true
	snap := k.State.Snapshot()
	if d := k.Checker.Within; d != nil {
		for _, s := range d.Spans {
			k.scanFullChunk(snap.Chunk(s.Chunk), s.Chunk, s.Nodes&k.Nodes.InChunk(s.Chunk))
		}
		return
	}
	for c := range snap.ChunkCount() {
		k.scanFullChunk(snap.Chunk(c), c, k.Nodes.InChunk(c))
	}
}

// scanFullChunk examines those of some nodes of a chunk that lack capacity.
func (k *Ranker) scanFullChunk(chunk *state.Chunk, c int, nodes uint64) {
	for left := k.changed(chunk, nodes&chunk.Eligible()); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		rank := k.Order.RankOf[c*state.ChunkSize+i]
		if k.status[rank] == Unchecked && int64(chunk.MinPriority(i)) <= k.Preemption.Ceiling && k.Checker.Feasible(chunk, i) {
			k.status[rank], k.anyFull = NeedsPreempt, true
		}
	}
}

// EachLacking calls visit for every node that may take the group by everything but capacity,
// and on which something has at most the given priority. No node may have the status Fits:
// it is not tested again. Nodes on which only an eviction would satisfy a rule are left out.
func (k *Ranker) EachLacking(priority int32, visit func(pos int32)) {
	snap := k.State.Snapshot()
	scan := func(c int, nodes uint64) {
		chunk := snap.Chunk(c)
		for nodes &= chunk.Eligible() & k.Nodes.InChunk(c); nodes != 0; nodes &= nodes - 1 {
			i := bits.TrailingZeros64(nodes)
			pos := int32(c*state.ChunkSize + i)
			if chunk.MinPriority(i) <= priority && k.Checker.Feasible(chunk, i) &&
				(k.Rules == nil || k.Rules.Check(pos, chunk.Node(i)) == feasible.Allowed) {
				visit(pos)
			}
		}
	}
	if d := k.Checker.Within; d != nil {
		for _, s := range d.Spans {
			scan(s.Chunk, s.Nodes)
		}
		return
	}
	for c := range snap.ChunkCount() {
		scan(c, math.MaxUint64)
	}
}

// lead makes a rank the first one if its score is higher, or equal and it is earlier.
// It avoids the winner tree for evaluations that place a single instance.
func (k *Ranker) lead(rank int32) {
	r := int(rank)
	if k.first < 0 || k.score[r] > k.score[k.first] || k.score[r] == k.score[k.first] && r < k.first {
		k.first = r
	}
}

// Update ranks a node again after its capacity changed. It must be called for every
// node that the plan changes: a status that lags behind would place on a node that is
// full.
func (k *Ranker) Update(pos int32) {
	rank := k.Order.RankOf[pos]
	chunk, i := k.State.Snapshot().Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	if chunk.Eligible()>>i&1 == 0 || !k.Checker.Feasible(chunk, i) {
		k.status[rank] = Infeasible
	} else {
		k.assess(rank, chunk, i, pos, chunk.Fitting(&k.Group.Ask)>>i&1 == 1)
	}
	switch {
	case k.hasTree:
		k.tree.update(int(rank))
	case int(rank) == k.first:
		k.stale = true
	case k.status[rank] == Fits:
		k.lead(rank)
	}
}

// assess sets the status and the score of a feasible node. covers states whether its
// columns cover the request. The order of the checks matters: columns are cheap, rules
// read counts, and devices try combinations.
func (k *Ranker) assess(rank int32, chunk *state.Chunk, i int, pos int32, covers bool) {
	k.status[rank], k.anyFull = NeedsPreempt, true
	if int64(chunk.MinPriority(i)) > k.Preemption.Ceiling {
		k.status[rank] = Infeasible
	}
	if !covers {
		return // the search for victims checks the rules
	}
	if k.Rules != nil {
		switch k.Rules.Check(pos, chunk.Node(i)) {
		case feasible.Forbidden:
			k.status[rank] = Infeasible
			return
		case feasible.DomainConflict:
			// The victims are on other nodes, so the priorities on this one do not matter.
			// System jobs never evict on other nodes.
			if k.Preemption.Allowed && !k.Group.Job.Type.PerNode() {
				k.status[rank] = NeedsPreempt
			} else {
				k.status[rank] = Infeasible
			}
			return
		case feasible.LocalConflict:
			return
		}
	}
	if !k.plain || chunk.HasClaims()>>i&1 == 1 {
		_, covers = k.Device(pos, chunk.Node(i))
	}
	if covers {
		k.status[rank], k.score[rank] = Fits, k.scoreOf(chunk, i, pos)
	}
}

// Device returns the first choice of the node's devices for the request with which
// everything else fits as well. It returns false if there is none.
func (k *Ranker) Device(pos int32, n *model.Node) (choice []int16, ok bool) {
	var claims model.Vector
	free := k.State.Snapshot().FreeCapacityFor(pos, k.Group.Job.Key(), k.Group.Job.Priority, k.Now, &claims)
	for _, choice := range n.DeviceChoices(&k.Group.Ask) {
		if model.Fits(free, &k.Group.Ask, choice).Kind == model.ShortageNone {
			return choice, true
		}
	}
	return nil, false
}

// scoreOf returns the mean of the node's fit and of the components that the rules
// contribute. The sum is in a fixed order, so that equal nodes have scores with equal
// bits.
func (k *Ranker) scoreOf(chunk *state.Chunk, i int, pos int32) float64 {
	ask := &k.Group.Ask.Vec
	score := fit.Score(k.Algorithm, chunk.Avail(model.CPU)[i], chunk.Avail(model.Memory)[i],
		chunk.Free(model.CPU)[i]-ask[model.CPU], chunk.Free(model.Memory)[i]-ask[model.Memory])
	if k.Rules == nil {
		return score
	}
	values, present := k.Rules.Components(pos)
	for c, v := range values {
		if present>>c&1 == 1 {
			score += v
		}
	}
	return score / float64(1+bits.OnesCount8(present))
}

// Best returns the best node that fits, or false if there is none. The winner tree
// is made only when the first best node has been used, since most evaluations
// place one instance.
func (k *Ranker) Best() (pos int32, score float64, ok bool) {
	if k.stale && !k.hasTree {
		k.tree.reset(k.status, k.score)
		k.hasTree = true
	}
	rank := k.first
	if k.hasTree {
		rank = k.tree.best()
	}
	if rank < 0 {
		return 0, 0, false
	}
	return k.Order.ByRank[rank], k.score[rank], true
}

// Full returns the positions of the nodes that may take the group after evictions,
// in tie order. The list is valid until the next call.
func (k *Ranker) Full() []int32 {
	k.ScanFull()
	k.full = k.full[:0]
	if !k.anyFull {
		return k.full // no change since the group failed could help it
	}
	for rank, s := range k.status {
		if s == NeedsPreempt {
			k.full = append(k.full, k.Order.ByRank[rank])
		}
	}
	return k.full
}
