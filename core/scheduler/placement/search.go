package placement

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/rank"
)

// search starts a search for victims on the given nodes. It returns the error of
// the policy's circuit breaker if that is open.
func (p *Placer) search(nodes []int32) error {
	e := p.e
	p.searching = true
	version := e.Policy.Version
	if open := version.Breaker.OpenError(e.Now); open != nil {
		return open
	}
	e.Policy.Consulted = true
	request := preempt.Request{
		Group: p.group, Now: e.Now, Algorithm: e.State.Base.Config().Algorithm, Delta: e.State.Base.Config().PriorityDelta,
		Waiting: max(0, e.Now-p.WaitingSince), Attempts: e.Eval.Attempts,
		Policy: version, Default: e.Policy.Set.Default(),
		Nodes: nodes, Excluded: p.excluded, Evictions: &e.evictions, Weights: e.ws.Options.Weights,
		TieOrder: e.ws.Options.TieOrder, Workers: e.ws.Options.Workers, OnCall: e.ws.Options.OnCall,
		// An instance of a system job has one node, and its instances are placed together.
		RemoteEvictions: !e.Job.Type.PerNode(),
	}
	if p.Rules != nil {
		request.Rules = p.Rules.Prepare() // before search workers share them
	}
	return e.ws.finder.Start(e.State.Freeze(), request)
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
