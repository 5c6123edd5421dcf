package endpoint

import (
	"context"
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// PriorityClasses stores and deletes priority classes, by the rules of Kubernetes: jobs
// retain the priority that they got from a class, so that the value of a class must not
// change.
type PriorityClasses struct{ writer *logwriter.Writer }

// PutPriorityClass stores a new priority class, or a new description of an existing one.
func (e *PriorityClasses) PutPriorityClass(ctx context.Context, c *model.PriorityClass) (uint64, error) {
	if problems, remedies := classProblems(e.writer.Snapshot(), c); len(problems) > 0 {
		return 0, apierror.New(apierror.CodeInvalid, "priority class %q: %s", c.Name, strings.Join(problems, "; ")).
			WithHint("%s", strings.Join(remedies, "; ")).WithDetails(map[string]any{"Problems": problems})
	}
	class := *c
	return e.writer.CommitIndex(ctx, &replication.UpsertPriorityClass{Class: &class})
}

// classProblems returns the problems of a class, and the remedy of each.
func classProblems(snap *state.Snapshot, c *model.PriorityClass) (problems, remedies []string) {
	add := func(problem, remedy string) {
		problems, remedies = append(problems, problem), append(remedies, remedy)
	}
	if p := fieldcheck.ClassName(c.Name); p.Found() {
		add(p.Text, p.Remedy)
	}
	for _, p := range c.Problems() {
		add(fmt.Sprintf("%s: %s", p.Field, p.Message), p.Remedy)
	}
	if old := snap.PriorityClass(c.Name); old != nil {
		same := *c
		same.Description = old.Description
		if same != *old {
			add("only the description may change", "delete the class and create it again; jobs retain the priority that they got from it")
		}
		return problems, remedies
	}
	for _, other := range snap.PriorityClasses() {
		if c.GlobalDefault && other.GlobalDefault {
			add("the global default is already "+other.Name, "delete "+other.Name+" and create it again without globalDefault, or omit globalDefault here")
		}
	}
	return problems, remedies
}

// DeletePriorityClass removes a priority class. Jobs retain the priority that they got
// from it.
func (e *PriorityClasses) DeletePriorityClass(ctx context.Context, name string) (uint64, error) {
	if model.IsReservedClass(name) {
		return 0, apierror.New(apierror.CodeInvalid, "priority class %q is reserved", name)
	}
	if _, err := logwriter.Find(ctx, e.writer, func(snap *state.Snapshot) *model.PriorityClass { return snap.PriorityClass(name) },
		"no priority class %q", name); err != nil {
		return 0, err
	}
	return e.writer.CommitIndex(ctx, &replication.DeletePriorityClass{Name: name})
}

// findClass returns a stored or built-in class, or nil.
func findClass(snap *state.Snapshot, name string) *model.PriorityClass {
	if c := snap.PriorityClass(name); c != nil {
		return c
	}
	return model.SystemClass(name)
}
