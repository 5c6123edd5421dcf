package replication

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func (w *writer) bindingCommand(m *pb.Entry, command Command) {
	switch c := command.(type) {
	case *UpsertClusters:
		m.Command = &pb.Entry_UpsertClusters{UpsertClusters: &pb.UpsertClusters{Clusters: each(c.Clusters, w.cluster)}}
	case *UpsertBinding:
		m.Command = &pb.Entry_UpsertBinding{UpsertBinding: &pb.UpsertBinding{Binding: w.binding(c.Binding), Eval: w.eval(c.Eval), Check: c.Check}}
	case *StopBinding:
		m.Command = &pb.Entry_StopBinding{StopBinding: &pb.StopBinding{Key: keyToPB(c.Key), Eval: w.eval(c.Eval), Check: c.Check}}
	case *ChangeClusters:
		m.Command = &pb.Entry_ChangeClusters{ChangeClusters: &pb.ChangeClusters{Changes: each(c.Changes, w.clusterChange)}}
	case *DeleteCluster:
		m.Command = &pb.Entry_DeleteCluster{DeleteCluster: &pb.DeleteCluster{Id: w.id(c.ID), Force: c.Force}}
	case *DeleteBinding:
		m.Command = &pb.Entry_DeleteBinding{DeleteBinding: &pb.DeleteBinding{Key: keyToPB(c.Key)}}
	case *EndAssignments:
		m.Command = &pb.Entry_EndAssignments{EndAssignments: &pb.EndAssignments{Ids: w.ids(c.IDs)}}
	case *UpdateAssignments:
		m.Command = &pb.Entry_UpdateAssignments{UpdateAssignments: &pb.UpdateAssignments{Updates: each(c.Updates, w.assignmentUpdate)}}
	case *StopAssignments:
		m.Command = &pb.Entry_StopAssignments{StopAssignments: &pb.StopAssignments{Ids: w.ids(c.IDs), Reason: text(c.Reason)}}
	}
}

func (r *reader) bindingCommand(m *pb.Entry) Command {
	switch c := m.Command.(type) {
	case *pb.Entry_UpsertClusters:
		return &UpsertClusters{each(c.UpsertClusters.GetClusters(), r.cluster)}
	case *pb.Entry_UpsertBinding:
		b := c.UpsertBinding
		return &UpsertBinding{Binding: r.binding(b.GetBinding()), Eval: r.eval(b.GetEval()), Check: b.Check}
	case *pb.Entry_StopBinding:
		b := c.StopBinding
		return &StopBinding{Key: keyOf(b.GetKey()), Eval: r.eval(b.GetEval()), Check: b.Check}
	case *pb.Entry_ChangeClusters:
		return &ChangeClusters{each(c.ChangeClusters.GetChanges(), r.clusterChange)}
	case *pb.Entry_DeleteCluster:
		return &DeleteCluster{r.id(c.DeleteCluster.GetId()), c.DeleteCluster.GetForce()}
	case *pb.Entry_DeleteBinding:
		return &DeleteBinding{keyOf(c.DeleteBinding.GetKey())}
	case *pb.Entry_EndAssignments:
		return &EndAssignments{r.ids(c.EndAssignments.GetIds())}
	case *pb.Entry_UpdateAssignments:
		return &UpdateAssignments{each(c.UpdateAssignments.GetUpdates(), r.assignmentUpdate)}
	case *pb.Entry_StopAssignments:
		return &StopAssignments{IDs: r.ids(c.StopAssignments.GetIds()), Reason: c.StopAssignments.GetReason()}
	}
	panic(fmt.Sprintf("replication: %T is not read", m.Command))
}

func (w *writer) cluster(at **model.Cluster) *pb.Cluster {
	c := *at
	return &pb.Cluster{
		Id: w.id(c.ID), Capacity: textMap(c.Capacity), Attributes: stringMap(c.Attributes), Down: c.Down,
		SecretHash: hashBytes(&c.SecretHash), Reported: textMap(c.Reported),
		CreateIndex: c.CreateIndex, ModifyIndex: c.ModifyIndex,
	}
}

func (r *reader) cluster(at **pb.Cluster) *model.Cluster {
	m := *at
	return &model.Cluster{
		ID: r.id(m.Id), Capacity: emptyNil(m.Capacity), Attributes: emptyNil(m.Attributes), Down: m.Down,
		SecretHash: r.hash(m.SecretHash), Reported: emptyNil(m.Reported),
		CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex,
	}
}

func (w *writer) clusterChange(c *model.ClusterChange) *pb.ClusterChange {
	return &pb.ClusterChange{
		Id: w.id(c.ID), Down: c.Down, Reports: c.Reports, Reported: textMap(c.Reported),
		Leases: each(c.Leases, func(x **model.Claim) *pb.Claim { return w.claim(*x) }),
	}
}

func (r *reader) clusterChange(at **pb.ClusterChange) model.ClusterChange {
	m := *at
	return model.ClusterChange{
		ID: r.id(m.Id), Down: m.Down, Reports: m.Reports, Reported: emptyNil(m.Reported),
		Leases: each(m.Leases, func(x **pb.Claim) *model.Claim { return r.claim(*x) }),
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
		CreateIndex: b.CreateIndex, ModifyIndex: b.ModifyIndex, Template: b.Template,
		MinReplicas: int64(b.MinReplicas), Checkpoint: b.Checkpoint,
		SpreadBy: text(b.SpreadBy), MinGroups: int64(b.MinGroups), MaxGroups: int64(b.MaxGroups),
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
		CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex, Template: m.Template,
		MinReplicas: int(m.MinReplicas), Checkpoint: m.Checkpoint,
		SpreadBy: m.SpreadBy, MinGroups: int(m.MinGroups), MaxGroups: int(m.MaxGroups),
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
		Client: uint32(a.Client), Ready: int64(a.Ready), ClientText: text(a.ClientText),
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
		Client: r.clientStatus(m.Client), Ready: int(m.Ready), ClientText: m.ClientText,
	}
	a.Vec = r.vector("assignment", a.ID, m.Vec)
	return a
}

func (w *writer) withdrawal(x *model.Withdrawal) *pb.Withdrawal {
	return &pb.Withdrawal{AssignmentId: w.id(x.AssignmentID), By: w.id(x.By), Policy: text(x.Policy), Reason: text(x.Reason), Keep: int64(x.Remaining)}
}

func (r *reader) withdrawal(at **pb.Withdrawal) model.Withdrawal {
	m := *at
	return model.Withdrawal{AssignmentID: r.id(m.AssignmentId), By: r.id(m.By), Policy: m.Policy, Reason: m.Reason, Remaining: int(m.Keep)}
}

func (w *writer) assignmentUpdate(u *apply.AssignmentUpdate) *pb.AssignmentUpdate {
	return &pb.AssignmentUpdate{
		Id: w.id(u.ID), Client: uint32(u.Client), Ready: int64(u.Ready), Text: text(u.Text), StartTime: u.StartTime,
	}
}

func (r *reader) assignmentUpdate(at **pb.AssignmentUpdate) apply.AssignmentUpdate {
	m := *at
	return apply.AssignmentUpdate{
		ID: r.id(m.Id), Client: r.clientStatus(m.Client), Ready: int(m.Ready), Text: m.Text, StartTime: m.StartTime,
	}
}
