package sim

import (
	"math"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/decision"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/worker"
)

// recorder records the events of a run, for the result and for the metrics.
type recorder struct {
	collector  *metrics.Collector
	placements []Placement
	evicted    []Evicted
	decisions  []Decision
	observed   []Observed
	cases      []whatIfCase // of decisions, in the same order; empty unless Options.WhatIf is set
	moved      []Moved
	timing     bool
	choice     metrics.Choice
}

// start starts the record at the state of the first entry.
func (r *recorder) start(e *engine, snap *state.Snapshot) {
	r.timing = e.opts.Timing
	config := metrics.Config{
		Dims: snap.Dims(), Jobs: e.file.Jobs, Weight: snap.NamespaceWeight,
		Nodes: slices.Collect(snap.Nodes()), Budgets: len(e.file.Budgets) > 0, Moves: snap.Config().Moves != nil,
	}
	if e.file.Until != nil {
		config.Until = *e.file.Until
	}
	r.placements, r.evicted = []Placement{}, []Evicted{}
	r.collector = metrics.New(config)
}

func (r *recorder) initial(a *model.Allocation) { r.collector.Initial(a.StartTime, a) }

// committed records the placements of commit groups with their victims, in the order
// of the plan. before is the state to which the plan was committed.
func (r *recorder) committed(e *engine, plan *model.Plan, committed []int, before, after *state.Snapshot) {
	view := &replayState{snap: before}
	defer func() { r.addCases(e, plan, before) }()
	for _, i := range committed {
		g := &plan.Groups[i]
		for _, p := range g.Placements {
			a := after.Alloc(p.ID)
			if a == nil {
				continue
			}
			r.placed(e, view, a, evictedFor(view, g, a.ID), choiceFor(g, a.ID))
		}
	}
}

// moves records the moves of a commit group. before is the state to which it was committed.
func (r *recorder) moves(now int64, g *model.CommitGroup, before *state.Snapshot) {
	for _, s := range g.Stops {
		from := before.Alloc(s.AllocID)
		if s.MovedTo == "" || from == nil || !from.Live() {
			continue
		}
		m := Moved{At: At(now), Alloc: from.ID, Node: from.NodeID, To: s.MovedTo, LostWork: At(from.Group.LostWork(from.Age(now)))}
		for _, a := range g.Placements {
			if a.ID == s.MovedTo {
				m.ToNode = a.NodeID
			} else if a.NodeID == from.NodeID {
				m.For = append(m.For, a.ID)
			}
		}
		r.moved = append(r.moved, m)
	}
}

// evictedFor collects the victims of a placement that were still live.
func evictedFor(view *replayState, g *model.CommitGroup, by string) (victims []*model.Allocation) {
	for _, ev := range g.Evictions {
		if ev.By != by {
			continue
		}
		if v := view.current().Alloc(ev.AllocID); v != nil && v.Live() {
			victims = append(victims, v)
		}
	}
	return victims
}

// choiceFor returns the explanation of a placement that evicts, or nil.
func choiceFor(g *model.CommitGroup, by string) *model.Choice {
	for _, c := range g.Choices {
		if c.By == by {
			return c
		}
	}
	return nil
}

func (r *recorder) placed(e *engine, view *replayState, a *model.Allocation, victims []*model.Allocation, why *model.Choice) {
	now := e.now()
	p := Placement{
		At: At(now), Alloc: a.ID, Job: a.Job.ID, Group: a.Group.Name, Node: a.NodeID,
		Preempted: []string{}, Score: rounded(a.Score), Why: why,
	}
	var told []metrics.Victim
	overrun := make([]bool, len(victims))
	if len(victims) > 0 {
		protect.EachViolation(&view.current().View, now, victims, func(i int) { overrun[i] = true })
	}
	for i, v := range victims {
		lost := v.Group.LostWork(v.Age(now))
		r.evicted = append(r.evicted, Evicted{
			At: At(now), Alloc: v.ID, By: a.ID, Node: v.NodeID, LostWork: At(lost), BudgetViolated: overrun[i],
			Job: v.Job.ID, Group: v.Group.Name, Priority: v.Job.Priority,
		})
		told = append(told, metrics.Victim{Alloc: v.ID, LostWork: lost, OtherNode: v.NodeID != a.NodeID, BudgetViolated: overrun[i]})
		if v.NodeID == a.NodeID {
			p.Preempted = append(p.Preempted, v.ID)
			continue
		}
		if p.PreemptedElsewhere == nil {
			p.PreemptedElsewhere = map[string][]string{}
		}
		p.PreemptedElsewhere[v.NodeID] = append(p.PreemptedElsewhere[v.NodeID], v.ID)
	}
	slices.Sort(p.Preempted)
	for _, list := range p.PreemptedElsewhere {
		slices.Sort(list)
	}
	r.placements = append(r.placements, p)
	if e.opts.Explain && len(victims) > 0 {
		d := Decision{At: p.At, Alloc: a.ID, Job: a.Job.ID, Node: a.NodeID, Priority: a.Job.Priority, Why: decision.Why(why, view.current())}
		for _, v := range victims {
			d.Victims = append(d.Victims, v.ID)
		}
		r.decisions = append(r.decisions, d)
	}
	var choice *metrics.Choice
	if len(victims) > 0 {
		choice = r.choose(e, view.current(), a)
	}
	r.collector.Placed(now, a, told, choice)
	view.apply(a, victims)
}

// observations records the decisions of an evaluation that were not carried out. Their
// victims are in the state, because nothing has evicted them.
func (r *recorder) observations(e *engine, report worker.Report) {
	now, snap := e.now(), e.store.Snapshot()
	for _, o := range report.Observed {
		d := Observed{
			At: At(now), Alloc: o.AllocID, Job: report.Eval.JobID, Group: o.Group, Node: o.NodeID, Priority: report.Eval.Priority,
			Victims: slices.Sorted(slices.Values(o.Victims)), Choice: o.Choice, Cost: Cost{HighestPriority: math.MinInt32},
		}
		var victims []*model.Allocation
		for _, id := range o.Victims {
			v := snap.Alloc(id)
			if v == nil {
				continue
			}
			victims = append(victims, v)
			d.LostWork += At(v.Group.LostWork(v.Age(now)))
			d.Cost.HighestPriority = max(d.Cost.HighestPriority, v.Job.Priority)
		}
		protect.EachViolation(&snap.View, now, victims, func(int) { d.Cost.BudgetViolations++ })
		if e.opts.Explain {
			d.Why = decision.WhyObserved(o.Choice, snap)
		}
		r.observed = append(r.observed, d)
	}
}

// rounded rounds a score to nine decimals: enough for comparisons, and short. The product
// of a large score exceeds the finite range, which JSON cannot hold; it has no decimals.
func rounded(x float64) float64 {
	if y := math.Round(x*1e9) / 1e9; !math.IsInf(y, 0) {
		return y
	}
	return x
}

// queued records the instances that an evaluation could not place.
func (r *recorder) queued(e *engine, report worker.Report) {
	job := e.store.Snapshot().Job(report.Eval.JobKey())
	if job == nil || job.Stopped {
		return
	}
	for _, g := range job.Groups {
		r.collector.Queued(e.now(), g, report.Outcome.Queued[g.Name])
	}
}

// startDecision and endDecision measure an evaluation by the wall clock, if the
// options request it.
func (r *recorder) startDecision() time.Time {
	if !r.timing {
		return time.Time{}
	}
	return time.Now() //nolint:forbidigo // --timing measures this machine, and its help states that
}

func (r *recorder) endDecision(began time.Time) {
	if r.timing {
		r.collector.Decision(int64(time.Since(began))) //nolint:forbidigo // as startDecision
	}
}
