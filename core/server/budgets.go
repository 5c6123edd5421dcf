package server

import (
	"context"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
)

// PutBudget stores a disruption budget, or another version of it.
func (s *Server) PutBudget(ctx context.Context, b *model.Budget) (uint64, error) {
	var problems []string
	if b.Name == "" || b.Namespace == "" {
		problems = append(problems, "it needs a namespace and a name")
	}
	if len(b.Labels) == 0 {
		problems = append(problems, "it selects nothing: it needs labels")
	}
	if (b.MinAvailable == nil) == (b.MaxUnavailable == nil) {
		problems = append(problems, "it needs one of minAvailable and maxUnavailable")
	}
	if len(problems) > 0 {
		return 0, fail(CodeInvalid, "disruption budget %q: %s", b.Name, strings.Join(problems, "; ")).
			with(map[string]any{"Problems": problems})
	}
	budget := *b
	return s.index(s.do(ctx, &replication.UpsertBudget{Budget: &budget}))
}

// DeleteBudget forgets a disruption budget: nothing is held back by it any more.
func (s *Server) DeleteBudget(ctx context.Context, key model.BudgetKey) (uint64, error) {
	return s.index(s.do(ctx, &replication.DeleteBudget{Key: key}))
}
