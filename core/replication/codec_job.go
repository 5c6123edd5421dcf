package replication

import (
	"crypto/sha256"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

// sorted writes maps in the order of their keys, so that equal values have
// equal bytes.
var sorted = proto.MarshalOptions{Deterministic: true}

// EncodeJob writes a job down as log entries and plan tokens hold it: equal
// jobs give equal bytes.
func EncodeJob(j *model.Job) []byte { return mustMarshal(sorted, jobToPB(j)) }

// DecodeJob reads what EncodeJob wrote. The job is not compiled.
func DecodeJob(b []byte) (*model.Job, error) {
	var m pb.Job
	if err := proto.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	var r reader
	j := r.job(&m)
	return j, r.err
}

// JobHash is of a job's specification alone: equal for jobs that differ in
// nothing but version, time of submission and indexes.
func JobHash(j *model.Job) [32]byte {
	m := jobToPB(j)
	m.Version, m.SubmitTime, m.CreateIndex, m.ModifyIndex = 0, 0, 0, 0
	return sha256.Sum256(mustMarshal(sorted, m))
}

// mustMarshal panics where it fails: every string of a message went through
// text, and nothing else can be wrong with one.
func mustMarshal(o proto.MarshalOptions, m proto.Message) []byte {
	b, err := o.Marshal(m)
	if err != nil {
		panic("replication: " + err.Error())
	}
	return b
}

func jobToPB(j *model.Job) *pb.Job {
	if j == nil {
		return nil
	}
	m := &pb.Job{
		Namespace: text(j.Namespace), Id: text(j.ID), Name: text(j.Name), Meta: stringMap(j.Meta),
		Type: uint32(j.Type), Priority: j.Priority, PriorityClass: text(j.PriorityClass),
		NeverPreempts: j.NeverPreempts, NonPreemptible: j.NonPreemptible, AllAtOnce: j.AllAtOnce,
		Datacenters: texts(j.Datacenters), Policy: text(j.Policy), Stopped: j.Stopped,
		Version: j.Version, SubmitTime: j.SubmitTime, CreateIndex: j.CreateIndex, ModifyIndex: j.ModifyIndex,
		EvictedWhole: j.AllOrNone,
	}
	if t := j.Toleration; t != nil {
		m.Toleration = &pb.PreemptionToleration{MinPreemptorPriority: t.MinPreemptorPriority, MinRuntime: t.MinRuntime}
	}
	for _, g := range j.Groups {
		m.Groups = append(m.Groups, groupToPB(g))
	}
	return m
}

func (r *reader) job(m *pb.Job) *model.Job {
	if m == nil {
		return nil
	}
	j := &model.Job{
		Namespace: m.Namespace, ID: m.Id, Name: m.Name, Meta: emptyNil(m.Meta),
		Type: model.JobType(r.enum("job type", m.Type, model.JobTypes-1)), Priority: m.Priority, PriorityClass: m.PriorityClass,
		NeverPreempts: m.NeverPreempts, NonPreemptible: m.NonPreemptible, AllAtOnce: m.AllAtOnce,
		Datacenters: m.Datacenters, Policy: m.Policy, Stopped: m.Stopped,
		Version: m.Version, SubmitTime: m.SubmitTime, CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex,
		AllOrNone: m.EvictedWhole,
	}
	if t := m.Toleration; t != nil {
		j.Toleration = &model.PreemptionToleration{MinPreemptorPriority: t.MinPreemptorPriority, MinRuntime: t.MinRuntime}
	}
	for _, g := range m.Groups {
		j.Groups = append(j.Groups, r.group(g))
	}
	return j
}

func groupToPB(g *model.Group) *pb.Group {
	m := &pb.Group{
		Name: text(g.Name), Count: int64(g.Count), MinCount: int64(g.MinCount), Resources: textMap(g.Resources), Ports: portNumbers(g.Ports),
		Devices: each(g.Devices, deviceRequestToPB), Labels: stringMap(g.Labels),
		Tolerations: each(g.Tolerations, tolerationToPB),
		Constraints: each(g.Constraints, constraintToPB), Affinities: each(g.Affinities, affinityToPB),
		Spread: each(g.Spread, spreadToPB), Colocate: each(g.Colocate, termToPB), Separate: each(g.Separate, termToPB),
		MaxParallelEvictions: int64(g.MaxParallelEvictions), KillTimeout: g.KillTimeout, Duration: g.Duration,
		Checkpoint: g.Checkpoint, Annotations: textMap(g.Annotations), Meta: stringMap(g.Meta),
	}
	if d := g.Disconnect; d != nil {
		m.Disconnect = &pb.Disconnect{LostAfter: d.LostAfter, Replace: d.Replace}
	}
	for _, t := range g.Tasks {
		m.Tasks = append(m.Tasks, taskToPB(t))
	}
	return m
}

func (r *reader) group(m *pb.Group) *model.Group {
	g := &model.Group{
		Name: m.Name, Count: int(m.Count), MinCount: int(m.MinCount), Resources: emptyNil(m.Resources), Ports: r.ports(m.Ports),
		Devices: each(m.Devices, deviceRequestOf), Labels: emptyNil(m.Labels),
		Tolerations: each(m.Tolerations, tolerationOf),
		Constraints: each(m.Constraints, constraintOf), Affinities: each(m.Affinities, affinityOf),
		Spread: each(m.Spread, spreadOf), Colocate: each(m.Colocate, termOf), Separate: each(m.Separate, termOf),
		MaxParallelEvictions: int(m.MaxParallelEvictions), KillTimeout: m.KillTimeout, Duration: m.Duration,
		Checkpoint: m.Checkpoint, Annotations: emptyNil(m.Annotations), Meta: emptyNil(m.Meta),
	}
	if d := m.Disconnect; d != nil {
		g.Disconnect = &model.Disconnect{LostAfter: d.LostAfter, Replace: d.Replace}
	}
	for _, t := range m.Tasks {
		g.Tasks = append(g.Tasks, taskOf(t))
	}
	return g
}

func taskToPB(t *model.Task) *pb.Task {
	return &pb.Task{
		Name: text(t.Name), Driver: text(t.Driver), User: text(t.User), Config: t.Config, Env: stringMap(t.Env),
		Resources: textMap(t.Resources), KillSignal: text(t.KillSignal), KillTimeout: t.KillTimeout, Leader: t.Leader,
	}
}

func taskOf(m *pb.Task) *model.Task {
	return &model.Task{
		Name: m.Name, Driver: m.Driver, User: m.User, Config: m.Config, Env: emptyNil(m.Env),
		Resources: emptyNil(m.Resources), KillSignal: m.KillSignal, KillTimeout: m.KillTimeout, Leader: m.Leader,
	}
}

func deviceRequestToPB(d *model.DeviceRequest) *pb.DeviceRequest {
	return &pb.DeviceRequest{Id: text(d.ID), Count: d.Count, Constraints: each(d.Constraints, constraintToPB)}
}

func deviceRequestOf(m **pb.DeviceRequest) model.DeviceRequest {
	return model.DeviceRequest{ID: (*m).Id, Count: (*m).Count, Constraints: each((*m).Constraints, constraintOf)}
}

func tolerationToPB(t *model.Toleration) *pb.Toleration {
	return &pb.Toleration{
		Key: text(t.Key), Operator: text(string(t.Operator)), Value: text(t.Value), Effect: text(string(t.Effect)), Stay: int64(t.For),
	}
}

func tolerationOf(m **pb.Toleration) model.Toleration {
	return model.Toleration{
		Key: (*m).Key, Operator: model.TolerationOperator((*m).Operator), Value: (*m).Value,
		Effect: model.TaintEffect((*m).Effect), For: time.Duration((*m).Stay),
	}
}

func constraintToPB(c *model.Constraint) *pb.Constraint {
	return &pb.Constraint{
		Attribute: text(c.Attribute), Operator: text(string(c.Operator)), Value: text(c.Value), Values: texts(c.Values),
	}
}

func constraintOf(m **pb.Constraint) model.Constraint {
	c := *m
	return model.Constraint{
		Attribute: c.GetAttribute(), Operator: model.Operator(c.GetOperator()), Value: c.GetValue(), Values: c.GetValues(),
	}
}

func affinityToPB(a *model.Affinity) *pb.Affinity {
	return &pb.Affinity{Constraint: constraintToPB(&a.Constraint), Weight: int64(a.Weight)}
}

func affinityOf(m **pb.Affinity) model.Affinity {
	return model.Affinity{Constraint: constraintOf(&(*m).Constraint), Weight: int((*m).Weight)}
}

func spreadToPB(s *model.Spread) *pb.Spread {
	return &pb.Spread{
		Attribute: text(s.Attribute), Weight: int64(s.Weight), Targets: countMap(s.Targets), MaxSkew: int64(s.MaxSkew),
	}
}

func spreadOf(m **pb.Spread) model.Spread {
	s := *m
	return model.Spread{
		Attribute: s.Attribute, Weight: int(s.Weight), Targets: countsOf(s.Targets), MaxSkew: int(s.MaxSkew),
	}
}

func termToPB(t *model.LabelTerm) *pb.LabelTerm {
	return &pb.LabelTerm{Labels: stringMap(t.Labels), TopologyKey: text(t.TopologyKey)}
}

func termOf(m **pb.LabelTerm) model.LabelTerm {
	return model.LabelTerm{Labels: emptyNil((*m).Labels), TopologyKey: (*m).TopologyKey}
}

func keyToPB(k model.JobKey) *pb.JobKey {
	return &pb.JobKey{Namespace: text(k.Namespace), Id: text(k.ID)}
}

func keyOf(m *pb.JobKey) model.JobKey {
	return model.JobKey{Namespace: m.GetNamespace(), ID: m.GetId()}
}
