package server

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/evaltrace"
)

// submit has a plan checked and committed on the leader, as one span: its wait in
// the queue, its check and its write.
func (s *Server) submit(ctx context.Context, plan *model.Plan) (*model.PlanResult, error) {
	ctx, span := s.traces.StartSpan(ctx, evaltrace.SpanApply)
	result, err := s.plans.Submit(ctx, plan)
	if span.IsRecording() && result != nil {
		span.SetAttributes(
			attribute.String("cede.eval_id", plan.EvalID), attribute.Int64("cede.index", int64(result.Index)),
			attribute.Int("cede.committed", len(result.Committed)), attribute.Int("cede.rejected", len(result.Rejected)),
		)
	}
	evaltrace.EndSpan(span, err)
	return result, err
}
