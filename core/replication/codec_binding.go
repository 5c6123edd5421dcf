package replication

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

func (w *writer) bindingCommand(m *pb.Entry, command Command) {
	switch c := command.(type) {
	case *UpsertClusters:
		m.Command = &pb.Entry_UpsertClusters{UpsertClusters: &pb.UpsertClusters{Clusters: each(c.Clusters, w.cluster)}}
	case *UpsertBinding:
		m.Command = &pb.Entry_UpsertBinding{UpsertBinding: &pb.UpsertBinding{Binding: w.binding(c.Binding), Eval: w.eval(c.Eval)}}
	case *DeleteBinding:
		m.Command = &pb.Entry_DeleteBinding{DeleteBinding: &pb.DeleteBinding{Key: keyToPB(c.Key)}}
	case *EndAssignments:
		m.Command = &pb.Entry_EndAssignments{EndAssignments: &pb.EndAssignments{Ids: w.ids(c.IDs)}}
	}
}

func (r *reader) bindingCommand(m *pb.Entry) Command {
	switch c := m.Command.(type) {
	case *pb.Entry_UpsertClusters:
		return &UpsertClusters{each(c.UpsertClusters.GetClusters(), r.cluster)}
	case *pb.Entry_UpsertBinding:
		b := c.UpsertBinding
		return &UpsertBinding{Binding: r.binding(b.GetBinding()), Eval: r.eval(b.GetEval())}
	case *pb.Entry_DeleteBinding:
		return &DeleteBinding{keyOf(c.DeleteBinding.GetKey())}
	case *pb.Entry_EndAssignments:
		return &EndAssignments{r.ids(c.EndAssignments.GetIds())}
	}
	panic(fmt.Sprintf("replication: %T is not read", m.Command))
}

func (w *writer) cluster(at **model.Cluster) *pb.Cluster {
	c := *at
	return &pb.Cluster{
		Id: w.id(c.ID), Capacity: textMap(c.Capacity), Attributes: stringMap(c.Attributes), Down: c.Down,
		CreateIndex: c.CreateIndex, ModifyIndex: c.ModifyIndex,
	}
}

func (r *reader) cluster(at **pb.Cluster) *model.Cluster {
	m := *at
	return &model.Cluster{
		ID: r.id(m.Id), Capacity: emptyNil(m.Capacity), Attributes: emptyNil(m.Attributes), Down: m.Down,
		CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex,
	}
}

func (w *writer) binding(b *model.Binding) *pb.Binding {
	if b == nil {
		return nil
	}
	return &pb.Binding{
		Namespace: text(b.Namespace), Id: text(b.ID), ClusterScoped: b.ClusterScoped, Priority: b.Priority,
		PriorityClass: text(b.PriorityClass), ClassSource: text(string(b.ClassSource)), Preempts: b.Preempts,
		Replicas: int64(b.Replicas), Resources: textMap(b.Resources), Clusters: w.ids(b.Clusters),
		Weights: countMap(b.Weights), Constraints: each(b.Constraints, constraintToPB), Duplicated: b.Duplicated,
		MinClusters: int64(b.MinClusters), MaxClusters: int64(b.MaxClusters), KillTimeout: b.KillTimeout,
		Duration: b.Duration, Stopped: b.Stopped, Version: b.Version, SubmitTime: b.SubmitTime,
		CreateIndex: b.CreateIndex, ModifyIndex: b.ModifyIndex,
	}
}

func (r *reader) binding(m *pb.Binding) *model.Binding {
	if m == nil {
		return nil
	}
	return &model.Binding{
		Namespace: m.Namespace, ID: m.Id, ClusterScoped: m.ClusterScoped, Priority: m.Priority,
		PriorityClass: m.PriorityClass, ClassSource: model.ClassSource(m.ClassSource), Preempts: m.Preempts,
		Replicas: int(m.Replicas), Resources: emptyNil(m.Resources), Clusters: r.ids(m.Clusters),
		Weights: countsOf(m.Weights), Constraints: each(m.Constraints, constraintOf), Duplicated: m.Duplicated,
		MinClusters: int(m.MinClusters), MaxClusters: int(m.MaxClusters), KillTimeout: m.KillTimeout,
		Duration: m.Duration, Stopped: m.Stopped, Version: m.Version, SubmitTime: m.SubmitTime,
		CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex,
	}
}

func (w *writer) assignment(at **model.Assignment) *pb.Assignment {
	a := *at
	return &pb.Assignment{
		Id: w.id(a.ID), Binding: keyToPB(a.Binding), ClusterId: w.id(a.ClusterID), Replicas: int64(a.Replicas),
		Vec: amounts(&a.Vec), EvalId: w.id(a.EvalID), Desired: uint32(a.Desired), DesiredReason: text(a.DesiredReason),
		Done: a.Done, PreemptedBy: w.id(a.PreemptedBy), PolicyVersion: text(a.PolicyVersion),
		CreateTime: a.CreateTime, StartTime: a.StartTime, EndTime: a.EndTime,
		CreateIndex: a.CreateIndex, ModifyIndex: a.ModifyIndex,
	}
}

func (r *reader) assignment(at **pb.Assignment) *model.Assignment {
	m := *at
	a := &model.Assignment{
		ID: r.id(m.Id), Binding: keyOf(m.Binding), ClusterID: r.id(m.ClusterId), Replicas: int(m.Replicas),
		EvalID: r.id(m.EvalId), Desired: model.DesiredStatus(r.enum("desired status", m.Desired, uint32(model.DesiredEvict))),
		DesiredReason: m.DesiredReason, Done: m.Done, PreemptedBy: r.id(m.PreemptedBy), PolicyVersion: m.PolicyVersion,
		CreateTime: m.CreateTime, StartTime: m.StartTime, EndTime: m.EndTime,
		CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex,
	}
	a.Vec = r.vector("assignment", a.ID, m.Vec)
	return a
}

func (w *writer) withdrawal(x *model.Withdrawal) *pb.Withdrawal {
	return &pb.Withdrawal{AssignmentId: w.id(x.AssignmentID), By: w.id(x.By), Policy: text(x.Policy), Reason: text(x.Reason)}
}

func (r *reader) withdrawal(at **pb.Withdrawal) model.Withdrawal {
	m := *at
	return model.Withdrawal{AssignmentID: r.id(m.AssignmentId), By: r.id(m.By), Policy: m.Policy, Reason: m.Reason}
}
