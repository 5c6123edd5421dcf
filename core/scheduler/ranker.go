package scheduler

import (
	"math/bits"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/state"
)

// standing is what a node is to a group.
type standing int8

const (
	standsUnseen standing = iota // was not looked at: it lacks room, or nothing changed there since it failed
	standsOut                    // may not take it, whoever is evicted
	standsFull                   // may take it once something is evicted
	standsReady                  // has room
)

// ranker ranks the nodes that have room for one group and knows those that lack
// it. It is built with one pass over the columns and then follows the plan node
// by node: the naive way, a scan for every instance, is what makes a large job
// slow on a large cluster.
type ranker struct {
	run      *run
	group    *model.Group
	feasible *feasibility
	rules    *groupRules // nil: the group has none
	plain    bool        // the columns alone decide whether it fits
	ceiling  int64       // highest priority that may be evicted for the group

	standing []standing // by rank
	score    []float64  // by rank, of those that stand ready
	since    uint64     // nodes whose room did not change after it are not looked at
	complete bool       // those that lack room have been looked at
	some     bool       // some may stand full
	nodes    []int32    // that do, see full
	first    int        // rank of the best, as long as the tree is not there; -1: none
	tree     tournament
	treed    bool // the tree is there and follows
	stale    bool // first may be out of date: the tree must be made
}

// build looks at every node, or only at those whose room changed after since.
func (k *ranker) build(r *run, g *model.Group, f *feasibility, rules *groupRules, since uint64) {
	k.run, k.group, k.feasible, k.rules = r, g, f, rules
	k.plain = len(g.Ask.Ports) == 0 && len(g.Ask.Devices) == 0
	k.ceiling = r.ceiling
	n := len(r.s.order.byRank)
	k.standing, k.score = resized(k.standing, n), resized(k.score, n)
	k.scan(since)
}

// rebuild ranks everything again: rules such as spread let one placement change
// the rank of every node.
func (k *ranker) rebuild() { k.scan(0) }

func (k *ranker) scan(since uint64) {
	clear(k.standing)
	k.since, k.complete, k.some, k.first, k.treed, k.stale = since, false, false, -1, false, false
	snap := k.run.proposed
	for c := range snap.ChunkCount() {
		chunk := snap.Chunk(c)
		if since > 0 && chunk.MaxModifyIndex() <= since {
			continue
		}
		if roomy := k.unseen(chunk, chunk.Fitting(&k.group.Ask)); roomy != 0 {
			k.scanRoomy(chunk, c*state.ChunkSize, roomy)
		}
	}
}

// unseen leaves those of nodes of a chunk that changed after since.
func (k *ranker) unseen(chunk *state.Chunk, nodes uint64) uint64 {
	switch {
	case k.since == 0:
		return nodes
	case chunk.MaxModifyIndex() <= k.since:
		return 0
	}
	for left := nodes; left != 0; left &= left - 1 {
		if i := bits.TrailingZeros64(left); chunk.ModifyIndex(i) <= k.since {
			nodes &^= 1 << i
		}
	}
	return nodes
}

// scanRoomy ranks the nodes of a chunk whose columns cover the ask.
func (k *ranker) scanRoomy(chunk *state.Chunk, base int, nodes uint64) {
	for ; nodes != 0; nodes &= nodes - 1 {
		i := bits.TrailingZeros64(nodes)
		rank := k.run.s.order.rankOf[base+i]
		if !k.feasible.node(chunk, i) {
			k.standing[rank] = standsOut
			continue
		}
		k.assess(rank, chunk, i, int32(base+i), true)
		if k.standing[rank] == standsReady {
			k.lead(rank)
		}
	}
}

// scanFull looks at the nodes that lack room. Nobody asks for them as long as
// others have it, and on a full cluster they are nearly all.
func (k *ranker) scanFull() {
	if k.complete {
		return
	}
	k.complete = true
	snap := k.run.proposed
	for c := range snap.ChunkCount() {
		chunk := snap.Chunk(c)
		for left := k.unseen(chunk, chunk.Eligible()); left != 0; left &= left - 1 {
			i := bits.TrailingZeros64(left)
			rank := k.run.s.order.rankOf[c*state.ChunkSize+i]
			if k.standing[rank] == standsUnseen && int64(chunk.MinPriority(i)) <= k.ceiling && k.feasible.node(chunk, i) {
				k.standing[rank], k.some = standsFull, true
			}
		}
	}
}

// lead makes a rank the first when it is better: a higher score, or an equal one
// and earlier.
func (k *ranker) lead(rank int32) {
	r := int(rank)
	if k.first < 0 || k.score[r] > k.score[k.first] || k.score[r] == k.score[k.first] && r < k.first {
		k.first = r
	}
}

// update follows a change of the room of the node at pos.
func (k *ranker) update(pos int32) {
	rank := k.run.s.order.rankOf[pos]
	chunk, i := k.run.proposed.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	if chunk.Eligible()>>i&1 == 0 || !k.feasible.node(chunk, i) {
		k.standing[rank] = standsOut
	} else {
		k.assess(rank, chunk, i, pos, chunk.Fitting(&k.group.Ask)>>i&1 == 1)
	}
	switch {
	case k.treed:
		k.tree.update(int(rank))
	case int(rank) == k.first:
		k.stale = true
	case k.standing[rank] == standsReady:
		k.lead(rank)
	}
}

// assess ranks a feasible node. covers says whether the columns cover the ask.
func (k *ranker) assess(rank int32, chunk *state.Chunk, i int, pos int32, covers bool) {
	k.standing[rank], k.some = standsFull, true
	if int64(chunk.MinPriority(i)) > k.ceiling {
		k.standing[rank] = standsOut
	}
	if !covers {
		return // rules that forbid the node are asked when something may be evicted there
	}
	if k.rules != nil {
		switch k.rules.place(pos, chunk.Node(i)) {
		case ruledOut:
			k.standing[rank] = standsOut
			return
		case ruledByWide:
			if k.run.preempts && !k.run.job.Type.PerNode() {
				k.standing[rank] = standsFull // whatever there is to evict on the node itself
			} else {
				k.standing[rank] = standsOut
			}
			return
		case ruledByLocal:
			return
		}
	}
	if !k.plain || chunk.HasClaims()>>i&1 == 1 {
		_, covers = k.device(pos, chunk.Node(i))
	}
	if covers {
		k.standing[rank], k.score[rank] = standsReady, k.rank(chunk, i, pos)
	}
}

// device is the first way in which the node's devices serve the ask with
// everything else fitting too; ok is false when there is none.
func (k *ranker) device(pos int32, n *model.Node) (choice []int16, ok bool) {
	var claims model.Vector
	room := k.run.proposed.FreeCapacityFor(pos, k.group.Job.Key(), k.group.Job.Priority, k.run.now, &claims)
	for _, choice := range n.DeviceChoices(&k.group.Ask) {
		if model.Fits(room, &k.group.Ask, choice).Kind == model.ShortageNone {
			return choice, true
		}
	}
	return nil, false
}

// rank is the mean of the node's fit and of the rules' components present.
func (k *ranker) rank(chunk *state.Chunk, i int, pos int32) float64 {
	ask := &k.group.Ask.Vec
	score := fit.Score(k.run.algorithm, chunk.Avail(model.CPU)[i], chunk.Avail(model.Memory)[i],
		chunk.Free(model.CPU)[i]-ask[model.CPU], chunk.Free(model.Memory)[i]-ask[model.Memory])
	if k.rules == nil {
		return score
	}
	values, present := k.rules.Components(pos)
	for c, v := range values {
		if present>>c&1 == 1 {
			score += v
		}
	}
	return score / float64(1+bits.OnesCount8(present))
}

// best is the position of the best node with room. The tree that follows
// changes is made when the first best has been used: most evaluations place one.
func (k *ranker) best() (pos int32, score float64, ok bool) {
	if k.stale && !k.treed {
		k.tree.reset(k.standing, k.score)
		k.treed = true
	}
	rank := k.first
	if k.treed {
		rank = k.tree.best()
	}
	if rank < 0 {
		return 0, 0, false
	}
	return k.run.s.order.byRank[rank], k.score[rank], true
}

// full lists the positions of nodes that may take the group once something is
// evicted, in tie order. The list is good until it is asked for again.
func (k *ranker) full() []int32 {
	k.scanFull()
	k.nodes = k.nodes[:0]
	if !k.some {
		return k.nodes // nothing has changed since the group failed that could take it
	}
	for rank, s := range k.standing {
		if s == standsFull {
			k.nodes = append(k.nodes, k.run.s.order.byRank[rank])
		}
	}
	return k.nodes
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
