package server

import (
	"context"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/logwriter"
)

// writeEndings writes what came of a delivery, together with what came of others.
//
// Only who has the delivery may write, and nobody else gets it before that is done: a
// worker that lost it may have looked at an older state than the one that has it now, and
// "everything is placed" as of then would end who waits for what came since.
func (s *Server) writeEndings(ctx context.Context, evalID string, token broker.Token, evals []*model.Evaluation) error {
	term := s.cfg.Log.Term() // before the lease: that is of this term, or void
	if err := s.broker.PauseTimer(evalID, token); err != nil {
		return err
	}
	defer func() { _ = s.broker.ResumeTimer(evalID, token) }() // a lease that is lost stays lost
	result, err := s.updates.WriteIn(ctx, term, evals)
	if err != nil {
		return err
	}
	return logwriter.Refusal(result)
}
