package scheduler

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

type stateSnapshot = state.Snapshot

// memory knows which groups found no place anywhere, and when. Whether a node
// can take a group depends on that node alone as long as no rule looks at other
// nodes, so the next evaluation looks only at nodes whose room has changed since.
// Without it a full cluster is scanned whole for every job that waits, again and
// again. It is kept by the shape of groups, so that what was learnt for one job
// serves all that are like it.
type memory struct {
	failed  map[string]failure
	classes map[string]*classes // each once, by what it says
}

// classes tells of node classes, by key, whether they are feasible.
type classes struct{ feasible map[uint64]bool }

// failure is what is known of a group that found no place.
type failure struct {
	index    uint64 // of the snapshot that was searched
	config   uint64 // modify index of the scheduler configuration
	version  *policy.Version
	preempts bool
	why      *model.Explanation
	classes  *classes
	escaped  bool
}

// remembered bounds the memory; beyond it everything is forgotten at once,
// which costs one full scan for each group that still waits.
const remembered = 1 << 16

func newMemory() memory { return memory{failed: map[string]failure{}, classes: map[string]*classes{}} }

// recall finds what is known of a group that found no place, as far as it still
// holds under the configuration and the policy at hand.
func (r *run) recall(g *model.Group, rules *groupRules) (failure, bool) {
	if !r.memorable || rules.global() {
		return failure{}, false
	}
	f, ok := r.s.memory.failed[g.EquivalenceClass()]
	ok = ok && f.index <= r.base.Index() && f.version == r.version && f.preempts == r.preempts &&
		f.config == r.base.Config().ModifyIndex
	return f, ok
}

// remembers is whether a failure may be remembered as far as the evaluation
// goes: nothing that it depends on goes by time. The group must also have no rule
// that looks further than each node.
func (r *run) remembers() bool {
	return !r.s.config.Forget && r.version.Info().Columns&(sdk.TimeColumns|sdk.SharedTables) == 0 &&
		r.version.Hooks()&policy.HookDelta == 0 && !r.claimed()
}

// stillHopeless is whether a group that found no place before cannot find one
// now, because nothing that changed since could take it. A job of a thousand
// groups is told so without a look at the cluster.
func (r *run) stillHopeless(g *model.Group, rules *groupRules) (failure, bool) {
	f, ok := r.recall(g, rules)
	if !ok {
		return failure{}, false
	}
	changed := r.changedSince(f.index)
	for k := range changed {
		n := &changed[k]
		if n.index > f.index && r.mightTake(&g.Ask, n) && g.IsFeasible(r.proposed.NodeAt(n.pos)) && (rules == nil || rules.Allows(n.pos)) {
			return failure{}, false
		}
	}
	if !r.job.AllAtOnce || r.proposed == r.base {
		f.index = r.base.Index()
		r.s.memory.failed[g.EquivalenceClass()] = f
	}
	return f, true
}

// changedNode is a node whose room changed at an index.
type changedNode struct {
	pos   int32
	most  int32 // position in Scheduler.most, once it is known; -1: it is not
	index uint64
}

// changedSince lists the nodes that take work and whose room has changed after
// since as proposed, and perhaps some that changed earlier: one list serves all
// groups.
func (r *run) changedSince(since uint64) []changedNode {
	if r.changedIn == r.proposed && r.changedFrom <= since {
		return r.s.changed
	}
	r.changedIn, r.changedFrom = r.proposed, since
	r.s.changed, r.s.most = r.s.changed[:0], r.s.most[:0]
	for c := range r.proposed.ChunkCount() {
		chunk := r.proposed.Chunk(c)
		if chunk.MaxModifyIndex() <= since {
			continue
		}
		for i := range chunk.Len() {
			if at := chunk.ModifyIndex(i); at > since && chunk.Eligible()>>i&1 == 1 {
				r.s.changed = append(r.s.changed, changedNode{int32(c*state.ChunkSize + i), -1, at})
			}
		}
	}
	return r.s.changed
}

// mightTake is whether a node has the amounts that an ask needs, or would with
// everything gone that may be evicted for the job.
func (r *run) mightTake(ask *model.Ask, n *changedNode) bool {
	if n.most < 0 {
		n.most = int32(len(r.s.most))
		r.s.most = append(r.s.most, r.mostRoom(n.pos))
	}
	most := &r.s.most[n.most]
	for _, d := range ask.Dims {
		if most[d] < ask.Vec[d] {
			return false
		}
	}
	return true
}

// mostRoom is what a node would have with everything gone that may be evicted
// for the job. All its groups are compared with it.
func (r *run) mostRoom(pos int32) (most model.Vector) {
	chunk, i := r.proposed.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	for d := range r.proposed.Dims().Len() {
		most[d] = chunk.Free(d)[i]
	}
	if int64(chunk.MinPriority(i)) > r.ceiling {
		return most
	}
	for _, row := range chunk.Rows(i) {
		if int64(row.Priority) > r.ceiling {
			break
		}
		for _, d := range row.Group.Ask.Dims {
			most[d] += row.Group.Ask.Vec[d]
		}
	}
	return most
}

// claimed is whether any claim is there: claims expire by time alone.
func (r *run) claimed() bool {
	for range r.base.Claims() {
		return true
	}
	return false
}

// remember keeps or forgets the group's failure. It holds for the state that the
// plan leaves: nodes that the plan touches will have changed since the snapshot,
// and when the plan is not committed whole, Rejected forgets the failure. A gang that fails
// leaves no plan: what its earlier groups took is no reason to remember.
func (p *placer) remember(failed bool) {
	if !p.run.memorable || p.rules.global() {
		return
	}
	m := &p.run.s.memory
	if !failed || p.isFickle() || p.run.job.AllAtOnce && p.run.proposed != p.run.base {
		delete(m.failed, p.group.EquivalenceClass())
		return
	}
	if len(m.failed) >= remembered {
		*m = newMemory()
	}
	m.failed[p.group.EquivalenceClass()] = failure{
		index: p.run.base.Index(), config: p.run.base.Config().ModifyIndex,
		version: p.run.version, preempts: p.run.preempts, why: p.explain(),
		classes: p.classes(), escaped: p.escapes(),
	}
}

// classes tells for every class that was looked at, now or when the group
// failed before, whether it is feasible.
func (p *placer) classes() *classes {
	all := p.feasible.classes(p.run.base)
	if p.seen != nil {
		maps.Copy(all, p.seen.feasible)
	}
	return p.run.s.memory.once(all)
}

// once is the one value that stands for these classes: there are few, shared by
// the many groups that have the same constraints.
func (m *memory) once(feasible map[uint64]bool) *classes {
	keys := slices.Sorted(maps.Keys(feasible))
	said := make([]byte, 0, 9*len(keys))
	for _, key := range keys {
		said = binary.BigEndian.AppendUint64(said, key)
		said = strconv.AppendBool(said, feasible[key])
	}
	if known := m.classes[string(said)]; known != nil {
		return known
	}
	c := &classes{feasible}
	m.classes[string(said)] = c
	return c
}

// alsoUnblock is couldUnblock for a group that failed before. Many groups of a
// job share what is known of classes, which need be added once.
func (r *run) alsoUnblock(f *failure) {
	if slices.Contains(r.merged, f.classes) {
		r.out.Escaped = r.out.Escaped || f.escaped
		return
	}
	r.merged = append(r.merged, f.classes)
	r.couldUnblock(f.classes.feasible, f.escaped)
}

// Rejected tells the scheduler that a plan for the job was not committed whole:
// what it knew of the job's groups stood on it.
func (s *Scheduler) Rejected(job *model.Job) {
	for _, g := range job.Groups {
		delete(s.memory.failed, g.EquivalenceClass())
	}
}
