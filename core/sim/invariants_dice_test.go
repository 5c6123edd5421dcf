package sim_test

import (
	"fmt"
	"math/rand/v2"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
)

// generator draws details uniformly. rapid prefers small values, which would leave
// the cluster almost empty.
type generator struct{ *rand.Rand }

func drawGenerator(t *rapid.T) generator {
	return generator{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "details"), rapid.Uint64().Draw(t, "more details")))}
}

func (d generator) in(least, most int) int { return least + d.IntN(most-least+1) }
func (d generator) oneIn(n int) bool       { return d.IntN(n) == 0 }

func pick[T any](d generator, of ...T) T { return of[d.IntN(len(of))] }

func (d generator) job(id string, rich bool) *model.Job {
	b := coretest.Job(id).Priority(int32(d.in(0, 9) * 10))
	j := b.Obj()
	j.Type = map[string]model.JobType{"c": model.JobBatch, "d": model.JobSystem, "e": model.JobSysBatch}[id]
	j.NeverPreempts, j.NonPreemptible = d.oneIn(8), d.oneIn(8)
	if d.oneIn(6) {
		j.Datacenters = []string{pick(d, "dc1", "dc2")}
	}
	j.AllAtOnce = !j.Type.PerNode() && d.oneIn(5)
	j.Groups = j.Groups[:0]
	for i := range d.in(1, 2) {
		g := &model.Group{Name: fmt.Sprintf("g%d", i), Count: d.in(1, 4), MaxParallelEvictions: d.in(0, 2)}
		if j.Type.PerNode() {
			g.Count = 1
		}
		g.Resources = model.Resources{"cpu": int64(d.in(0, 6)), "memory": int64(d.in(0, 6)), "licence": int64(d.in(0, 1))}
		if d.oneIn(6) {
			g.Ports = []uint16{uint16(d.in(80, 81))}
		}
		if d.oneIn(5) {
			g.Devices = []model.DeviceRequest{{ID: pick(d, "gpu", "acme/gpu/b"), Count: int32(d.in(1, 2))}}
		}
		if d.oneIn(4) {
			g.Constraints = append(g.Constraints, pick(d,
				model.Constraint{Attribute: "zone", Operator: model.OpEqual, Value: "a"},
				model.Constraint{Attribute: "zone", Operator: model.OpIsSet},
				model.Constraint{Attribute: "node.id", Operator: model.OpNotEqual, Value: "n1"}))
		}
		if rich && !j.Type.PerNode() {
			d.rules(g)
		}
		j.Groups = append(j.Groups, g)
	}
	return j
}

// addGuards adds eviction protection, labels for budgets, and tolerations to a job.
func (d generator) addGuards(j *model.Job) {
	j.AllOrNone = d.oneIn(3)
	if d.oneIn(5) {
		j.Toleration = &model.PreemptionToleration{MinPreemptorPriority: new(int32(d.in(3, 9) * 10))}
	}
	for _, g := range j.Groups {
		if j.AllOrNone && !d.oneIn(3) {
			g.MinCount = d.in(1, min(g.Count, 2))
		}
		if g.Labels == nil {
			g.Labels = map[string]string{}
		}
		g.Labels["tier"] = pick(d, "x", "y")
		if d.oneIn(2) {
			g.Tolerations = []model.Toleration{{Key: "spot", Operator: model.TolerationExists}}
		}
	}
}

// budget returns a random budget for the groups with label tier=name.
func (d generator) budget(name string) *model.Budget {
	b := &model.Budget{
		Namespace: model.DefaultNamespace, Name: name, Strict: !d.oneIn(3), Labels: map[string]string{"tier": name},
	}
	if d.oneIn(2) {
		b.MinAvailable = &model.Bound{Number: int32(d.in(0, 4))}
	} else {
		b.MaxUnavailable = &model.Bound{Number: int32(d.in(0, 100)), Percent: true}
	}
	return b
}

// rules adds random rules between allocations.
func (d generator) rules(g *model.Group) {
	app := func() map[string]string { return map[string]string{"app": pick(d, "x", "y")} }
	if d.oneIn(2) {
		g.Labels = app()
	}
	switch d.IntN(8) {
	case 0:
		g.Constraints = append(g.Constraints, model.Constraint{Operator: model.OpDistinctHosts})
	case 1:
		g.Constraints = append(g.Constraints, model.Constraint{Operator: model.OpDistinctProperty, Attribute: "zone"})
	case 2:
		g.Separate = []model.LabelTerm{{Labels: app(), TopologyKey: pick(d, "node", "node", "zone")}}
	case 3:
		g.Spread = []model.Spread{{Attribute: "zone", Weight: 50, MaxSkew: d.in(0, 2)}}
	case 4:
		g.Affinities = []model.Affinity{{Constraint: model.Constraint{Attribute: "zone", Operator: model.OpEqual, Value: "b"}, Weight: d.in(-100, 100)}}
	}
}

func (d generator) node(id string) *model.Node {
	n := &model.Node{
		ID: id, Datacenter: pick(d, "dc1", "dc1", "dc2"),
		Capacity:   model.Resources{"cpu": int64(d.in(4, 14)), "memory": int64(d.in(4, 14)), "licence": 4},
		Attributes: map[string]string{"zone": pick(d, "a", "b")},
	}
	if d.oneIn(3) {
		n.Devices = []model.Device{{ID: "acme/gpu/a", Count: int32(d.in(1, 3))}, {ID: "acme/gpu/b", Count: int32(d.in(1, 3))}}
	}
	return n
}

// nextVersion returns a new version of a job with another size or other requests.
func (d generator) nextVersion(old, other *model.Job) *model.Job {
	j := *old
	j.Version++
	j.Groups = nil
	for _, g := range old.Groups {
		copied := *g
		j.Groups = append(j.Groups, &copied)
	}
	switch d.IntN(4) {
	case 0:
		j.Priority = other.Priority
	case 1:
		if !j.Type.PerNode() {
			j.Groups[0].Count = d.in(0, 5)
		}
	case 2:
		j.Groups[0].Resources = other.Groups[0].Resources
	case 3:
		j.Groups = j.Groups[:1]
		if !j.Type.PerNode() { // their instances are counted by node, not by property
			j.Groups[0].Constraints = other.Groups[0].Constraints
		}
	}
	return &j
}
