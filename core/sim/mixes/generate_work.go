package mixes

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

func (g *generator) bindings() {
	for i := range g.in(1, 4) {
		g.file.Clusters = append(g.file.Clusters, scenario.Cluster{
			ID: fmt.Sprintf("m%d", i), Capacity: scenario.Quantities{"cpu": int64(g.in(2, 8) * 100), "memory": int64(g.in(4, 12) * 100)},
			Attributes: map[string]string{"region": pick(g, "eu", "us")},
		})
	}
	for i := range g.in(2, 6) {
		replicas := g.in(1, 4)
		b := scenario.Binding{
			ID: fmt.Sprintf("w%d", i), Priority: new(g.priority()), Replicas: &replicas,
			Resources:        scenario.Quantities{"cpu": int64(g.in(1, 4) * 50), "memory": int64(g.in(0, 3) * 100)},
			PreemptionPolicy: pick(g, "PreemptLowerPriority", "PreemptLowerPriority", "Never"),
		}
		g.bindingRules(&b, replicas)
		if g.on[killTimeouts] {
			b.KillTimeout = pick(g, 0, g.duration(1, 60))
		}
		if g.oneIn(3) {
			b.Duration = g.duration(60, 1800)
		}
		if g.with(checkpoints, 2) {
			b.Checkpoint = g.duration(30, 300)
		}
		g.file.Bindings = append(g.file.Bindings, b)
	}
}

func (g *generator) bindingRules(b *scenario.Binding, replicas int) {
	if g.oneIn(6) {
		b.Scope, b.PreemptionPolicy = "cluster", "Never"
	}
	if g.on[elasticGroups] {
		b.MinReplicas = g.in(0, replicas)
	}
	if g.oneIn(5) {
		b.ReplicaScheduling = "duplicated"
	}
	if g.oneIn(4) {
		b.Clusters = []string{pick(g, g.file.Clusters...).ID}
	}
	if g.oneIn(5) {
		b.Constraints = []scenario.Constraint{{Attribute: "region", Operator: "=", Value: "eu"}}
	}
	if g.oneIn(4) {
		b.Spread.MaxClusters = new(g.in(1, 2))
	}
	if g.oneIn(6) && len(b.Clusters) == 0 && replicas > 1 && b.Spread.MaxClusters == nil {
		b.Spread.By, b.Spread.MinGroups = "region", new(2)
	}
}

// running places instances of some jobs before time 0, wherever they fit.
func (g *generator) running() {
	free := map[string]map[string]int64{}
	for _, n := range g.file.Nodes {
		free[n.ID] = map[string]int64{}
		for name, amount := range n.Capacity {
			free[n.ID][name] = amount - n.Reserved[name]
		}
	}
	for i := range g.file.Jobs {
		j := &g.file.Jobs[i]
		if j.Type == "system" || j.Type == "sysbatch" || g.oneIn(2) {
			continue
		}
		for k := range j.Groups {
			r := &j.Groups[k]
			if len(r.Ports)+len(r.Devices) > 0 {
				continue
			}
			for range *r.Count {
				if j.AllAtOnce || !g.oneIn(4) {
					g.runningInstance(j, r, free)
				}
			}
		}
	}
	for i := range g.file.Bindings {
		b := &g.file.Bindings[i]
		if b.ReplicaScheduling == "duplicated" || b.Spread.By != "" || g.oneIn(2) {
			continue
		}
		g.runningBinding(b)
	}
}

func (g *generator) runningInstance(j *scenario.Job, r *scenario.Group, free map[string]map[string]int64) {
	start := g.IntN(len(g.file.Nodes))
	for at := range g.file.Nodes {
		n := &g.file.Nodes[(start+at)%len(g.file.Nodes)]
		fits := n.Ready == nil
		for name, amount := range r.Resources {
			fits = fits && free[n.ID][name] >= amount
		}
		if !fits {
			continue
		}
		for name, amount := range r.Resources {
			free[n.ID][name] -= amount
		}
		g.file.Running = append(g.file.Running, scenario.Running{
			ID: fmt.Sprintf("r%d", len(g.file.Running)), Job: j.ID, Group: r.Name, Node: n.ID, StartedAt: -g.duration(0, 3600),
		})
		return
	}
}

func (g *generator) runningBinding(b *scenario.Binding) {
	c := pick(g, g.file.Clusters...)
	if len(b.Clusters) > 0 && b.Clusters[0] != c.ID || len(b.Constraints) > 0 && c.Attributes["region"] != "eu" {
		return
	}
	for name, amount := range b.Resources {
		used := int64(*b.Replicas) * amount
		for _, r := range g.file.Running {
			if r.Binding == "" {
				continue
			}
			for k := range g.file.Bindings {
				if o := &g.file.Bindings[k]; o.ID == r.Binding {
					used += int64(r.Clusters[c.ID]) * o.Resources[name]
				}
			}
		}
		if used > c.Capacity[name] {
			return
		}
	}
	g.file.Running = append(g.file.Running, scenario.Running{
		ID: fmt.Sprintf("r%d", len(g.file.Running)), Binding: b.ID, Clusters: map[string]int{c.ID: *b.Replicas}, StartedAt: -g.duration(0, 3600),
	})
}

// events submits every job and binding once, and adds disturbances.
func (g *generator) events() {
	var list []scenario.Event
	at := func() scenario.Duration { return scenario.Duration(time.Duration(g.IntN(40)*15) * time.Second) }
	ids := []string{}
	for _, j := range g.file.Jobs {
		ids = append(ids, j.ID)
	}
	for _, b := range g.file.Bindings {
		ids = append(ids, b.ID)
	}
	for _, id := range ids {
		when := at()
		if g.oneIn(3) {
			when = 0
		}
		list = append(list, scenario.Event{At: when, Submit: id})
		if g.with(stops, 3) {
			end := when + at()
			list = append(list, scenario.Event{At: end, Stop: id})
			if g.oneIn(2) {
				list = append(list, scenario.Event{At: end + at(), Submit: id})
			}
		}
	}
	for _, n := range g.file.Nodes {
		if g.with(failures, 3) || g.with(disconnects, 3) {
			down := at()
			list = append(list, scenario.Event{At: down, NodeDown: n.ID})
			if !g.oneIn(3) {
				list = append(list, scenario.Event{At: down + at(), NodeUp: n.ID})
			}
		}
		if g.with(drains, 3) {
			from := at()
			list = append(list, scenario.Event{At: from, Drain: n.ID})
			if g.oneIn(2) {
				list = append(list, scenario.Event{At: from + at(), NodeUp: n.ID})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
	g.file.Events = list
	g.file.Until = new(scenario.Duration(2 * time.Hour))
}
