package view

import (
	"cmp"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// CompareDescending sorts greater numbers first.
func CompareDescending(a, b uint64) int { return cmp.Compare(b, a) }

// Eval returns a whole evaluation.
func Eval(e *model.Evaluation) *client.Evaluation {
	out := &client.Evaluation{
		ID: e.ID, Priority: int(e.Priority), Type: e.Type.String(), TriggeredBy: string(e.TriggeredBy), Namespace: e.Namespace,
		JobID: e.JobID, Status: e.Status.String(), StatusDescription: e.StatusText,
		PreviousEval: e.Previous, BlockedEval: e.Blocked, SupersededBy: e.SupersededBy,
		EscapedComputedClass: e.Escaped, QueuedAllocations: e.Queued, Attempts: int(e.Attempts),
		SnapshotIndex: e.SnapshotIndex, CreateIndex: e.CreateIndex, ModifyIndex: e.ModifyIndex, CreateTime: e.CreateTime, ModifyTime: e.ModifyTime,
	}
	if e.WaitUntil > 0 {
		at := time.Unix(0, e.WaitUntil).UTC()
		out.WaitUntil = &at
	}
	out.FailedTGAllocs = AllocMetrics(e.Failed)
	return out
}

// EvalStub returns an evaluation as a reference in another one.
func EvalStub(e *model.Evaluation) *client.EvaluationStub {
	return &client.EvaluationStub{
		ID: e.ID, Priority: int(e.Priority), Type: e.Type.String(), TriggeredBy: string(e.TriggeredBy), Namespace: e.Namespace,
		JobID: e.JobID, Status: e.Status.String(), StatusDescription: e.StatusText, PreviousEval: e.Previous, BlockedEval: e.Blocked,
		CreateIndex: e.CreateIndex, ModifyIndex: e.ModifyIndex, CreateTime: e.CreateTime, ModifyTime: e.ModifyTime,
	}
}
