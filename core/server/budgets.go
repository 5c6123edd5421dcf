package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// maxBudgetText bounds the names and labels of a budget, in bytes.
const maxBudgetText = 256

// PutBudget stores a disruption budget, or another version of it.
func (s *Server) PutBudget(ctx context.Context, b *model.Budget) (uint64, error) {
	if problems := budgetProblems(b); len(problems) > 0 {
		return 0, apierror.New(apierror.CodeInvalid, "disruption budget %q: %s", b.Name, strings.Join(problems, "; ")).
			WithDetails(map[string]any{"Problems": problems})
	}
	budget := *b
	return s.writer.CommitIndex(ctx, &replication.UpsertBudget{Budget: &budget})
}

func budgetProblems(b *model.Budget) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, name := range []struct{ what, text string }{{"name", b.Name}, {"namespace", b.Namespace}} {
		if name.text == "" || len(name.text) > maxBudgetText || strings.ContainsAny(name.text, " \t\n/*\x00") {
			add("its %s %.60q is empty, too long, or has spaces, slashes or stars", name.what, name.text)
		}
	}
	if len(b.Labels) == 0 && b.MaxEvictions == nil {
		add("it selects nothing: it needs labels")
	}
	for key, value := range b.Labels {
		if key == "" || len(key)+len(value) > maxBudgetText {
			add("one of its labels is empty or longer than %d bytes", maxBudgetText)
			break
		}
	}
	if b.BoundCount() != 1 {
		add("it needs one of minAvailable, maxUnavailable and maxEvictions")
	}
	if r := b.MaxEvictions; r != nil && (r.Number < 0 || r.Window <= 0) {
		add("%s is no rate: it needs a number of 0 or more, and a window above 0", r)
	}
	for _, bound := range []*model.Bound{b.MinAvailable, b.MaxUnavailable} {
		if bound != nil && (bound.Number < 0 || bound.Percent && bound.Number > 100) {
			add("%v is no bound: it needs a number of 0 or more, or 0%% to 100%%", bound)
		}
	}
	return problems
}

// DeleteBudget forgets a disruption budget: nothing is held back by it any more.
func (s *Server) DeleteBudget(ctx context.Context, key model.BudgetKey) (uint64, error) {
	if _, err := logwriter.Find(ctx, s.writer, func(snap *state.Snapshot) *model.Budget { return snap.Budget(key) },
		"there is no disruption budget %q in namespace %q", key.Name, key.Namespace); err != nil {
		return 0, err
	}
	return s.writer.CommitIndex(ctx, &replication.DeleteBudget{Key: key})
}
