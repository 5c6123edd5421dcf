package jobspec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// FromModel returns the API's job for a job of the model, such that ToModel of the
// result is the same job. Fields that depend on allocations, such as the status, are
// left to the caller.
func FromModel(m *model.Job) *client.Job {
	if m == nil {
		return nil
	}
	priority := int(m.Priority)
	j := &client.Job{
		ID: m.ID, Name: cmp.Or(m.Name, m.ID), Namespace: m.Namespace, Type: m.Type.String(), Priority: &priority,
		AllAtOnce: m.AllAtOnce, Datacenters: slices.Clone(m.Datacenters), Meta: clone(m.Meta),
		PriorityClass: m.PriorityClass, Policy: m.Policy,
		Stop: m.Stopped, Version: m.Version, SubmitTime: m.SubmitTime,
		CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex, JobModifyIndex: m.ModifyIndex,
	}
	switch {
	case m.NeverPreempts:
		j.PreemptionPolicy = "Never"
	case m.PriorityClass != "":
		j.PreemptionPolicy = "PreemptLowerPriority" // even if the class has another default
	}
	if m.NonPreemptible {
		j.Preemptible = new(bool)
	}
	j.Toleration = fromToleration(m.Toleration)
	if m.AllOrNone {
		j.DisruptionMode = disruptAll
	}
	for _, g := range m.Groups {
		j.TaskGroups = append(j.TaskGroups, fromGroup(g))
	}
	return j
}

func fromGroup(m *model.Group) *client.TaskGroup {
	count, parallel := m.Count, m.MaxParallelEvictions
	g := &client.TaskGroup{
		Name: m.Name, Count: &count, MinCount: m.MinCount, Tolerations: fromTolerations(m.Tolerations), Disconnect: fromDisconnect(m.Disconnect), Constraints: fromConstraints(m.Constraints),
		Migrate: &client.MigrateStrategy{MaxParallel: &parallel}, Meta: clone(m.Meta), Labels: clone(m.Labels),
		Devices: fromDevices(m.Devices), Colocate: fromTerms(m.Colocate), Separate: fromTerms(m.Separate),
		Duration: time.Duration(m.Duration), Checkpoint: time.Duration(m.Checkpoint), Annotations: clone(m.Annotations),
	}
	for i := range m.Affinities {
		a := &m.Affinities[i]
		c, weight := fromConstraint(&a.Constraint), a.Weight
		g.Affinities = append(g.Affinities, &client.Affinity{LTarget: c.LTarget, RTarget: c.RTarget, Operand: c.Operand, Weight: &weight})
	}
	for i := range m.Spread {
		g.Spreads = append(g.Spreads, fromSpread(&m.Spread[i]))
	}
	rest := maps.Clone(m.Resources)
	for _, t := range m.Tasks {
		g.Tasks = append(g.Tasks, fromTask(t))
		for resource, n := range t.Resources {
			rest[resource] -= n
		}
	}
	fromPorts(m, g)
	maps.DeleteFunc(rest, func(_ string, n int64) bool { return n == 0 })
	if len(rest) > 0 {
		g.Resources = rest
	}
	return g
}

func fromTask(m *model.Task) *client.Task {
	timeout := time.Duration(m.KillTimeout)
	t := &client.Task{
		Name: m.Name, Driver: m.Driver, User: m.User, Env: clone(m.Env), KillTimeout: &timeout, KillSignal: m.KillSignal, Leader: m.Leader,
		Resources: &client.Resources{},
	}
	if len(m.Config) > 0 {
		d := json.NewDecoder(bytes.NewReader(m.Config))
		d.UseNumber()
		if d.Decode(&t.Config) != nil {
			t.Config = nil // unreachable for configurations that ToModel has encoded
		}
		convertNumbers(t.Config)
	}
	cpu, memory := int(m.Resources["cpu"]), int(m.Resources["memory"])
	t.Resources.CPU, t.Resources.MemoryMB = &cpu, &memory // 0 if the task has none: absent fields would get the default
	if disk := int(m.Resources["disk"]); disk > 0 {
		t.Resources.DiskMB = &disk
	}
	for resource, n := range m.Resources {
		if resource == "cpu" || resource == "memory" || resource == "disk" {
			continue
		}
		if t.Resources.Other == nil {
			t.Resources.Other = map[string]int64{}
		}
		t.Resources.Other[resource] = n
	}
	return t
}

// convertNumbers replaces the numbers of a document with int64 or, if not integral, float64.
func convertNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = convertNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = convertNumbers(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // cannot fail: the decoder has validated it
		return f
	}
	return v
}

func fromConstraints(list []model.Constraint) []*client.Constraint {
	var all []*client.Constraint
	for i := range list {
		all = append(all, fromConstraint(&list[i]))
	}
	return all
}

func fromConstraint(m *model.Constraint) *client.Constraint {
	c := &client.Constraint{LTarget: m.Attribute, Operand: string(m.Operator), RTarget: m.Value}
	if m.Operator == model.OpIn || m.Operator == model.OpNotIn {
		if m.Values != nil {
			c.RTarget = joinValues(m.Values)
		}
	}
	return c
}

func fromDevices(list []model.DeviceRequest) []*client.RequestedDevice {
	var all []*client.RequestedDevice
	for i := range list {
		count := uint64(list[i].Count)
		all = append(all, &client.RequestedDevice{Name: list[i].ID, Count: &count, Constraints: fromConstraints(list[i].Constraints)})
	}
	return all
}

func fromSpread(m *model.Spread) *client.Spread {
	weight := m.Weight
	s := &client.Spread{Attribute: m.Attribute, Weight: &weight, MaxSkew: m.MaxSkew}
	for _, value := range slices.Sorted(maps.Keys(m.Targets)) {
		s.SpreadTarget = append(s.SpreadTarget, &client.SpreadTarget{Value: value, Percent: m.Targets[value]})
	}
	return s
}

func fromTerms(list []model.LabelTerm) []*client.LabelTerm {
	var all []*client.LabelTerm
	for i := range list {
		all = append(all, &client.LabelTerm{Labels: clone(list[i].Labels), TopologyKey: list[i].TopologyKey})
	}
	return all
}
