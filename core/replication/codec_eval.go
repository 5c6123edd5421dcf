package replication

import (
	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

func (w *writer) eval(e *model.Evaluation) *pb.Evaluation {
	if e == nil {
		return nil
	}
	m := &pb.Evaluation{
		Id: w.id(e.ID), Namespace: text(e.Namespace), JobId: text(e.JobID), Type: uint32(e.Type), Priority: e.Priority,
		TriggeredBy: text(string(e.TriggeredBy)), Status: uint32(e.Status), StatusText: text(e.StatusText),
		WaitUntil: e.WaitUntil, SnapshotIndex: e.SnapshotIndex, Attempts: e.Attempts,
		Previous: w.id(e.Previous), Blocked: w.id(e.Blocked), SupersededBy: w.id(e.SupersededBy),
		Classes: emptyNil(e.Classes), Escaped: e.Escaped, BlockedNodes: w.ids(e.BlockedNodes), Queued: countMap(e.Queued),
		CreateIndex: e.CreateIndex, ModifyIndex: e.ModifyIndex, CreateTime: e.CreateTime, ModifyTime: e.ModifyTime,
		Since: e.Since,
	}
	if len(e.Failed) > 0 {
		m.Failed = make(map[string]*pb.Explanation, len(e.Failed))
		for group, x := range e.Failed {
			m.Failed[text(group)] = w.explanation(x)
		}
	}
	return m
}

func (r *reader) eval(m *pb.Evaluation) *model.Evaluation {
	if m == nil {
		return nil
	}
	e := &model.Evaluation{
		ID: r.id(m.Id), Namespace: m.Namespace, JobID: m.JobId,
		Type: model.JobType(r.enum("job type", m.Type, model.EvalTypes-1)), Priority: m.Priority,
		TriggeredBy: model.Trigger(m.TriggeredBy), Status: model.EvalStatus(r.enum("evaluation status", m.Status, uint32(model.EvalCancelled))),
		StatusText: m.StatusText, WaitUntil: m.WaitUntil, SnapshotIndex: m.SnapshotIndex, Attempts: m.Attempts,
		Previous: r.id(m.Previous), Blocked: r.id(m.Blocked), SupersededBy: r.id(m.SupersededBy),
		Classes: emptyNil(m.Classes), Escaped: m.Escaped, BlockedNodes: r.ids(m.BlockedNodes), Queued: countsOf(m.Queued),
		CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex, CreateTime: m.CreateTime, ModifyTime: m.ModifyTime,
		Since: m.Since,
	}
	if len(m.Failed) > 0 {
		e.Failed = make(map[string]*model.Explanation, len(m.Failed))
		for group, x := range m.Failed {
			e.Failed[group] = r.explanation(x)
		}
	}
	return e
}

func (w *writer) explanation(x *model.Explanation) *pb.Explanation {
	if x == nil {
		x = &model.Explanation{}
	}
	m := &pb.Explanation{
		Nodes: int64(x.Nodes), NotReady: countMap(x.NotReady), Filtered: countMap(x.Filtered),
		Exhausted: countMap(x.Exhausted), Preempted: countMap(x.Preempted), NoEviction: text(x.NoEviction),
		Waiting: int64(x.Waiting), Of: text(x.Of),
	}
	for i := range x.Samples {
		s := &x.Samples[i]
		m.Samples = append(m.Samples, &pb.NodeReason{NodeId: w.id(s.NodeID), Reason: text(s.Reason)})
	}
	return m
}

func (r *reader) explanation(m *pb.Explanation) *model.Explanation {
	x := &model.Explanation{
		Nodes: int(m.GetNodes()), NotReady: countsOf(m.GetNotReady()), Filtered: countsOf(m.GetFiltered()),
		Exhausted: countsOf(m.GetExhausted()), Preempted: countsOf(m.GetPreempted()), NoEviction: m.GetNoEviction(),
		Waiting: int(m.GetWaiting()), Of: m.GetOf(),
	}
	for _, s := range m.GetSamples() {
		x.Samples = append(x.Samples, model.NodeReason{NodeID: r.id(s.NodeId), Reason: s.Reason})
	}
	return x
}
