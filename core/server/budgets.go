package server

import (
	"context"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
)

// PutBudget stores a disruption budget, or another version of it.
func (s *Server) PutBudget(ctx context.Context, b *model.Budget) (uint64, error) {
	if b.Name == "" || b.Namespace == "" {
		return 0, fail(CodeInvalid, "a disruption budget needs a namespace and a name")
	}
	budget := *b
	return s.index(s.do(ctx, &replication.UpsertBudget{Budget: &budget}))
}

// DeleteBudget forgets a disruption budget: nothing is held back by it any more.
func (s *Server) DeleteBudget(ctx context.Context, key model.BudgetKey) (uint64, error) {
	return s.index(s.do(ctx, &replication.DeleteBudget{Key: key}))
}
