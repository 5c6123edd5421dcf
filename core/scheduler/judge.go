package scheduler

import (
	"fmt"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// Verdict is what a node is to one more instance of a group while nobody is evicted.
type Verdict struct {
	Fits  bool
	Score float64 // where it fits: by what instances are placed, the highest first; in [-1, 1]
	Why   string  // it does not fit
	// Hopeless is whether it would not fit either if everybody left.
	Hopeless bool
}

// Judge says of every node, by id, what it is to a group of an evaluation's job, by
// the rules by which evaluations place. It plans nothing and asks no policy.
func (s *Scheduler) Judge(eval *model.Evaluation, group string, snap *state.Snapshot, now int64) (map[string]Verdict, error) {
	policies := s.config.Policies.Pin()
	defer policies.Unpin()
	r, err := s.newRun(policies, eval, snap, now)
	if err != nil {
		return nil, err
	}
	if r.job == nil || r.job.Group(group) == nil {
		return nil, fmt.Errorf("there is no job %s with a group %s to judge nodes for", eval.JobKey(), group)
	}
	defer s.tallies.reclaim()
	s.order.refresh(snap, s.config.Ties)
	s.allocs = snap.AppendJobAllocs(s.allocs[:0], r.job.Key())
	r.sortAllocs()
	r.preempts, r.ceiling = false, math.MinInt64
	g := r.job.Group(group)
	p := r.newPlacer(g, r.newRules(g))
	defer p.close()
	x := explainer{placer: p}
	verdicts := make(map[string]Verdict, len(s.order.byRank))
	for rank, pos := range s.order.byRank {
		verdicts[snap.NodeAt(pos).ID] = x.judge(rank, pos)
	}
	return verdicts, nil
}

func (x *explainer) judge(rank int, pos int32) Verdict {
	if x.ranker.standing[rank] == standsReady {
		return Verdict{Fits: true, Score: x.ranker.score[rank]}
	}
	x.why.Samples = x.why.Samples[:0]
	x.node(pos)
	return Verdict{Why: x.inWords(pos, x.why.Samples[0].Reason), Hopeless: x.hopeless(pos)}
}

// inWords is a reason for who reads it alone: that of a full node is the mere name of
// what it lacks.
func (x *explainer) inWords(pos int32, reason string) string {
	chunk, i := x.run.proposed.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	if d := firstLacking(chunk, i, &x.group.Ask); d >= 0 && reason == x.run.proposed.Dims().Name(d) {
		return "lacks " + reason
	}
	return reason
}

// hopeless is whether the group would not fit on a node without anybody there: for what
// the node is, or for company that it needs and nobody's leaving brings.
func (x *explainer) hopeless(pos int32) bool {
	chunk, i := x.run.proposed.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	if chunk.Eligible()>>i&1 == 0 || !x.feasible.node(chunk, i) {
		return true
	}
	ask := &x.group.Ask
	if slices.ContainsFunc(ask.Dims, func(d uint8) bool { return chunk.Avail(int(d))[i] < ask.Vec[d] }) {
		return true
	}
	if _, held := x.ownPort(chunk.Node(i)); held {
		return true
	}
	return x.rules != nil && x.rules.lacksCompany(pos, chunk.Node(i))
}

// lacksCompany is whether a node is without those beside whom the group has to be.
func (u *groupRules) lacksCompany(pos int32, n *model.Node) bool {
	for _, t := range u.ready().colocate {
		if !t.hosts(pos, n, u.group) {
			return true
		}
	}
	return false
}
