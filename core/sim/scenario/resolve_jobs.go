package scenario

import (
	"cmp"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// resolve returns the job with every default filled in.
func (j *Job) resolve(classes *classes) *model.Job {
	job := &model.Job{
		Namespace: cmp.Or(j.Namespace, model.DefaultNamespace), ID: j.ID, Type: j.jobType(),
		NonPreemptible: j.Preemptible != nil && !*j.Preemptible,
		AllOrNone:      j.DisruptionMode == disruptAll,
		AllAtOnce:      j.AllAtOnce, Datacenters: j.Datacenters, Policy: j.Policy,
		Groups: make([]*model.Group, len(j.Groups)),
	}
	if t := j.Toleration; t != nil {
		job.Toleration = &model.PreemptionToleration{MinPreemptorPriority: t.MinPreemptorPriority, MinRuntime: int64(t.MinRuntime)}
	}
	class := classes.byName[j.PriorityClass]
	if j.Priority == nil && class == nil {
		class = classes.fallback
	}
	switch {
	case j.Priority != nil:
		job.Priority = *j.Priority
	case class != nil:
		job.Priority, job.PriorityClass, job.NeverPreempts = class.Value, class.Name, class.NeverPreempts
	default:
		job.Priority = model.DefaultPriority
	}
	if j.PreemptionPolicy != "" {
		job.NeverPreempts = j.PreemptionPolicy == "Never"
	}
	for i := range j.Groups {
		job.Groups[i] = j.Groups[i].resolve()
	}
	return job
}

// jobType returns the type of a validated job.
func (j *Job) jobType() model.JobType {
	t, _ := model.ParseJobType(cmp.Or(j.Type, "service"))
	return t
}

func (g *Group) resolve() *model.Group {
	group := &model.Group{
		Name: g.Name, Count: 1, MinCount: g.MinCount, Resources: model.Resources(g.Resources), Ports: g.Ports, Labels: g.Labels,
		Constraints: resolveConstraints(g.Constraints), MaxParallelEvictions: 1,
		KillTimeout: int64(g.KillTimeout), Duration: int64(g.Duration), Checkpoint: int64(g.Checkpoint),
		Annotations: g.Annotations,
	}
	if g.Count != nil {
		group.Count = *g.Count
	}
	if g.MaxParallelEvictions != nil {
		group.MaxParallelEvictions = *g.MaxParallelEvictions
	}
	for _, d := range g.Devices {
		request := model.DeviceRequest{ID: d.ID, Count: 1, Constraints: resolveConstraints(d.Constraints)}
		if d.Count != nil {
			request.Count = *d.Count
		}
		group.Devices = append(group.Devices, request)
	}
	if d := g.Disconnect; d != nil {
		group.Disconnect = &model.Disconnect{Replace: d.Replace == nil || *d.Replace}
		if d.LostAfter != nil {
			group.Disconnect.LostAfter = int64(*d.LostAfter)
		}
	}
	for _, t := range g.Tolerations {
		group.Tolerations = append(group.Tolerations, model.Toleration{
			Key: t.Key, Operator: model.TolerationOperator(t.Operator), Value: t.Value,
			Effect: model.TaintEffect(t.Effect), For: time.Duration(t.For),
		})
	}
	for _, a := range g.Affinities {
		group.Affinities = append(group.Affinities, model.Affinity{Constraint: a.resolve(), Weight: a.Weight})
	}
	for _, s := range g.Spread {
		spread := model.Spread{Attribute: model.AttributeName(s.Attribute), Weight: defaultWeight, Targets: s.Targets}
		if s.Weight != nil {
			spread.Weight = *s.Weight
		}
		if s.MaxSkew != nil {
			spread.MaxSkew = *s.MaxSkew
		}
		group.Spread = append(group.Spread, spread)
	}
	group.Colocate, group.Separate = resolveTerms(g.Colocate), resolveTerms(g.Separate)
	return group
}

func resolveConstraints(written []Constraint) []model.Constraint {
	var list []model.Constraint
	for i := range written {
		list = append(list, written[i].resolve())
	}
	return list
}

func (c *Constraint) resolve() model.Constraint {
	k := model.Constraint{Attribute: model.AttributeName(c.Attribute), Operator: model.Operator(c.Operator), Value: c.Value, Values: c.Values}
	if k.Operator == model.OpDistinctHosts {
		k.Value = "" // Nomad writes a redundant "true" here
	}
	return k
}

func resolveTerms(written []LabelTerm) []model.LabelTerm {
	var list []model.LabelTerm
	for _, t := range written {
		list = append(list, model.LabelTerm{Labels: t.Labels, TopologyKey: model.AttributeName(t.TopologyKey)})
	}
	return list
}
