package build

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// PreemptionPolicy returns the preemption policy of a job in the notation of a scenario.
func PreemptionPolicy(never bool) string {
	if never {
		return "Never"
	}
	return ""
}

// Node returns a node in the form of a scenario.
func Node(n *model.Node) scenario.Node {
	node := scenario.Node{ID: n.ID, Capacity: scenario.Quantities(n.Capacity), Attributes: n.Attributes}
	for _, d := range n.Devices {
		node.Devices = append(node.Devices, scenario.Device{ID: d.ID, Count: d.Count, Attributes: d.Attributes})
	}
	for _, t := range n.Taints {
		node.Taints = append(node.Taints, scenario.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return node
}

// Job returns a job in the form of a scenario. Classes holds the names of the
// scenario's priority classes.
func Job(j *model.Job, classes map[string]bool) scenario.Job {
	job := scenario.Job{
		ID: j.ID, Namespace: j.Namespace, Type: j.Type.String(), AllAtOnce: j.AllAtOnce, Datacenters: j.Datacenters, Policy: j.Policy,
	}
	if j.NonPreemptible {
		job.Preemptible = new(false)
	}
	if j.AllOrNone {
		job.DisruptionMode = "all"
	}
	if t := j.Toleration; t != nil {
		job.Toleration = &scenario.PreemptionToleration{MinPreemptorPriority: t.MinPreemptorPriority, MinRuntime: scenario.Duration(t.MinRuntime)}
	}
	if j.PriorityClass != "" && classes[j.PriorityClass] {
		job.PriorityClass = j.PriorityClass
	} else {
		job.Priority, job.PreemptionPolicy = new(j.Priority), PreemptionPolicy(j.NeverPreempts)
	}
	for _, g := range j.Groups {
		job.Groups = append(job.Groups, groupOf(g))
	}
	return job
}

func groupOf(g *model.Group) scenario.Group {
	group := scenario.Group{
		Name: g.Name, Count: new(g.Count), MinCount: g.MinCount, Resources: scenario.Quantities(g.Resources), Ports: g.Ports, Labels: g.Labels,
		Constraints: constraintsOf(g.Constraints), KillTimeout: scenario.Duration(g.KillTimeout),
		Colocate: termsOf(g.Colocate), Separate: termsOf(g.Separate),
		Duration: scenario.Duration(g.Duration), Checkpoint: scenario.Duration(g.Checkpoint), Annotations: g.Annotations,
	}
	if g.MaxParallelEvictions != 1 {
		group.MaxParallelEvictions = new(g.MaxParallelEvictions)
	}
	for _, d := range g.Devices {
		group.Devices = append(group.Devices, scenario.DeviceRequest{ID: d.ID, Count: new(d.Count), Constraints: constraintsOf(d.Constraints)})
	}
	if d := g.Disconnect; d != nil {
		group.Disconnect = &scenario.Disconnect{Replace: new(d.Replace)}
		if d.LostAfter > 0 {
			group.Disconnect.LostAfter = new(scenario.Duration(d.LostAfter))
		}
	}
	for _, t := range g.Tolerations {
		group.Tolerations = append(group.Tolerations, scenario.Toleration{
			Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect), For: scenario.Duration(t.For),
		})
	}
	for i := range g.Affinities {
		a := &g.Affinities[i]
		group.Affinities = append(group.Affinities, scenario.Affinity{Constraint: constraintOf(&a.Constraint), Weight: a.Weight})
	}
	for _, s := range g.Spread {
		spread := scenario.Spread{Attribute: s.Attribute, Weight: new(s.Weight), Targets: s.Targets}
		if s.MaxSkew > 0 {
			spread.MaxSkew = new(s.MaxSkew)
		}
		group.Spread = append(group.Spread, spread)
	}
	return group
}

func constraintsOf(list []model.Constraint) []scenario.Constraint {
	var written []scenario.Constraint
	for i := range list {
		written = append(written, constraintOf(&list[i]))
	}
	return written
}

func constraintOf(c *model.Constraint) scenario.Constraint {
	return scenario.Constraint{Attribute: c.Attribute, Operator: string(c.Operator), Value: c.Value, Values: c.Values}
}

func termsOf(list []model.LabelTerm) []scenario.LabelTerm {
	var written []scenario.LabelTerm
	for _, t := range list {
		written = append(written, scenario.LabelTerm{Labels: t.Labels, TopologyKey: t.TopologyKey})
	}
	return written
}

// Class returns a priority class in the form of a scenario.
func Class(k *model.PriorityClass) scenario.PriorityClass {
	return scenario.PriorityClass{
		Name: k.Name, Value: k.Value, GlobalDefault: k.GlobalDefault,
		PreemptionPolicy: PreemptionPolicy(k.NeverPreempts), Description: k.Description,
	}
}
