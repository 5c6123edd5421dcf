package placement

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/rank"
)

// search starts a search for victims on the given nodes. It returns the error of
// the policy's circuit breaker if that is open.
func (p *Placer) search(nodes []int32) error {
	e := p.e
	p.searching = true
	request, err := p.request()
	if err != nil {
		return err
	}
	request.Nodes, request.Excluded = nodes, e.Moves.exclude(e.State, p.excluded)
	return e.ws.finder.Start(e.State.Freeze(), request)
}

// request returns the request to search for victims. It returns the error of the policy's
// circuit breaker if that is open.
func (p *Placer) request() (preempt.Request, error) {
	request, err := p.e.request(p.group, p.WaitingSince)
	request.RemoteEvictions = request.RemoteEvictions && !p.local
	if err == nil && p.Rules != nil {
		request.Rules = p.Rules.Prepare() // before search workers share them
	}
	if p.e.ws.Options.Player != nil && !p.local {
		request.LookAhead = &p.ahead
	}
	return request, err
}

// request returns the request of a group without nodes and rules. Its longest-waiting
// instance is missing since waitingSince. It returns the fault of an earlier call, if there was one.
func (e *Evaluation) request(g *model.Group, waitingSince int64) (preempt.Request, error) {
	version := e.Policy.Version
	if fault := e.Policy.Ignored; fault != nil {
		return preempt.Request{}, fault
	}
	if open := version.Breaker.OpenError(e.Now); open != nil {
		return preempt.Request{}, open
	}
	e.Policy.Consulted = true
	if e.Job.AllAtOnce {
		e.evictions.Committed = e.State.Base
	}
	return preempt.Request{
		Group: g, Now: e.Now, Algorithm: e.State.Base.Config().Algorithm, Delta: e.State.Base.Config().PriorityDelta,
		Waiting: max(0, e.Now-waitingSince), Attempts: e.Eval.Attempts,
		Policy: version, Default: e.Policy.Set.Default(),
		Elsewhere: &e.ws.elsewhere, ByRank: e.ws.Order.ByRank,
		Evictions: &e.evictions, TieOrder: e.ws.Options.TieOrder, Workers: e.ws.Options.Workers, OnCall: e.ws.Options.OnCall, Explain: e.ws.Options.Explain,
		// An instance of a system job has one node, and its instances are placed together.
		RemoteEvictions: !e.Job.Type.PerNode(),
	}, nil
}

// Compare calls the policy about ways to place a gang and about bounds of further ones. The
// proposed state is the one before any of them, and no Placer is in use.
func (e *Evaluation) Compare(g *model.Group, waitingSince int64, ways []preempt.Joint, bounds []preempt.Bound) (preempt.Comparison, error) {
	request, err := e.request(g, waitingSince)
	if err != nil {
		return preempt.Comparison{}, err
	}
	if rules := feasible.NewRules(e.Rules, g); rules != nil {
		request.Rules = rules.Prepare()
	}
	return e.ws.finder.Compare(e.State.Freeze(), request, ways, bounds)
}

// Close ends the search for the group and returns the policies' instances.
func (p *Placer) Close() {
	if p.searching {
		p.e.Unplaced.RecheckBy(p.recheckAt())
		p.volatile = p.isVolatile()
		p.e.ws.finder.Release()
		p.searching = false
	}
}

// recheckAt returns when the policy is to be called again for the group; 0: never.
func (p *Placer) recheckAt() int64 {
	if !p.searching {
		return 0
	}
	return p.e.ws.finder.RecheckAt()
}

// isVolatile reports whether something besides the capacity of nodes prevented an
// eviction, so that one may become possible although no node changes.
func (p *Placer) isVolatile() bool {
	return p.volatile || p.recheckAt() != 0 || p.searching && p.e.ws.finder.NonFinal()
}

// outcomes returns the results of the running search and the nodes that they are
// about, in tie order.
func (p *Placer) outcomes() ([]preempt.Outcome, []int32) {
	if !p.searching {
		return nil, nil
	}
	return p.e.ws.finder.Outcomes()
}

// ProtectedNodes returns the nodes of the running search on which strict budgets
// protect the victims that would be needed.
func (p *Placer) ProtectedNodes() (list []int32) {
	outcomes, nodes := p.outcomes()
	for k, outcome := range outcomes {
		if outcome == preempt.Protected {
			list = append(list, nodes[k])
		}
	}
	return list
}

// SearchEachNode searches for victims on nodes, each in the same proposed state,
// and visits the best option of every node that has one, in the order of nodes.
func (p *Placer) SearchEachNode(nodes []int32, visit func(preempt.Choice)) error {
	if err := p.search(nodes); err != nil {
		return err
	}
	return p.e.ws.finder.EachNode(visit)
}

// EvictionOptions returns all options on nodes for one instance, the best first.
// excluded allocations are no candidates. The choices own their memory.
func (p *Placer) EvictionOptions(nodes []int32, excluded Exclusions) (list []preempt.Choice, err error) {
	p.Close()
	p.excluded = excluded
	if err := p.search(nodes); err != nil {
		return nil, err
	}
	err = p.e.ws.finder.EachRanked(func(c preempt.Choice) bool {
		list = append(list, cloneChoice(c))
		return true
	})
	return list, err
}

// FreeOptions returns all nodes that fit without evictions, the best first. The
// choices own their memory.
func (p *Placer) FreeOptions() (list []preempt.Choice) {
	k := p.Ranker
	for r, pos := range k.Order.ByRank {
		if k.Status(r) == rank.Fits {
			list = append(list, preempt.Choice{Pos: pos, Score: k.Score(r)})
		}
	}
	slices.SortStableFunc(list, func(a, b preempt.Choice) int { return cmp.Compare(b.Score, a.Score) })
	for i := range list {
		c := &list[i]
		device, _ := k.Device(c.Pos, p.e.State.Snapshot().NodeAt(c.Pos))
		c.Device = slices.Clone(device)
	}
	return list
}

// cloneChoice copies a choice out of the finder's memory.
func cloneChoice(c preempt.Choice) preempt.Choice {
	c.Victims, c.Device = slices.Clone(c.Victims), slices.Clone(c.Device)
	return c
}

// Exclusions are allocations that are not candidates for eviction.
type Exclusions map[*model.Allocation]bool
