package endpoint

import (
	"context"
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// Budgets stores and deletes disruption budgets.
type Budgets struct{ writer *logwriter.Writer }

// PutBudget stores a disruption budget, or a new version of it.
func (e *Budgets) PutBudget(ctx context.Context, b *model.Budget) (uint64, error) {
	if err := invalid(budgetProblems(b), "disruption budget %q", b.Name); err != nil {
		return 0, err
	}
	budget := *b
	return e.writer.CommitIndex(ctx, &replication.UpsertBudget{Budget: &budget})
}

func budgetProblems(b *model.Budget) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, name := range []struct{ field, text string }{{"name", b.Name}, {"namespace", b.Namespace}} {
		if p := fieldcheck.BudgetName(name.field, name.text); p.Found() {
			add("%s", p.Text)
		}
	}
	if len(b.Labels) == 0 && b.MaxEvictions == nil {
		add("labels are required to select allocations")
	}
	for key, value := range b.Labels {
		if p := fieldcheck.BudgetLabel(key, value); p.Found() {
			add("%s", p.Text)
			break
		}
	}
	if b.BoundCount() != 1 {
		add("exactly one of minAvailable, maxUnavailable and maxEvictions is required")
	}
	if r := b.MaxEvictions; r != nil && (r.Number < 0 || r.Window <= 0) {
		add("invalid maxEvictions %s: the number must be 0 or more, and the window above 0", r)
	}
	for _, bound := range []*model.Bound{b.MinAvailable, b.MaxUnavailable} {
		if bound != nil && (bound.Number < 0 || bound.Percent && bound.Number > 100) {
			add("invalid bound %v: it must be a number of 0 or more, or 0%% to 100%%", bound)
		}
	}
	return problems
}

// DeleteBudget removes a disruption budget.
func (e *Budgets) DeleteBudget(ctx context.Context, key model.BudgetKey) (uint64, error) {
	if _, err := logwriter.Find(ctx, e.writer, func(snap *state.Snapshot) *model.Budget { return snap.Budget(key) },
		"no disruption budget %q in namespace %q", key.Name, key.Namespace); err != nil {
		return 0, err
	}
	return e.writer.CommitIndex(ctx, &replication.DeleteBudget{Key: key})
}
