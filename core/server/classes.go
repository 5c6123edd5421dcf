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

// The rules of priority classes are those of Kubernetes: jobs keep the priority
// that they got from a class, so that a class which changed would lie about them.

// PutPriorityClass stores a new priority class, or another description of one.
func (s *Server) PutPriorityClass(ctx context.Context, c *model.PriorityClass) (uint64, error) {
	if problems, remedies := classProblems(s.Snapshot(), c); len(problems) > 0 {
		return 0, apierror.New(apierror.CodeInvalid, "priority class %q: %s", c.Name, strings.Join(problems, "; ")).
			WithHint("%s", strings.Join(remedies, "; ")).WithDetails(map[string]any{"Problems": problems})
	}
	class := *c
	return s.writer.CommitIndex(ctx, &replication.UpsertPriorityClass{Class: &class})
}

// classProblems is what is wrong with a class, and what to do about each.
func classProblems(snap *state.Snapshot, c *model.PriorityClass) (problems, remedies []string) {
	add := func(problem, remedy string) {
		problems, remedies = append(problems, problem), append(remedies, remedy)
	}
	if c.Name == "" || strings.ContainsAny(c.Name, " \t\n/") {
		add("its name is empty or has spaces or slashes", "choose another name")
	}
	for _, p := range c.Problems() {
		add(fmt.Sprintf("its %s: %s", p.Field, p.Message), p.Remedy)
	}
	if old := snap.PriorityClass(c.Name); old != nil {
		same := *c
		same.Description = old.Description
		if same != *old {
			add("only its description may change", "delete it and make it anew; jobs keep the priority that they got from it")
		}
		return problems, remedies
	}
	for _, other := range snap.PriorityClasses() {
		if c.GlobalDefault && other.GlobalDefault {
			add(other.Name+" is the global default already", "delete "+other.Name+" and make it anew without globalDefault, or leave it out here")
		}
	}
	return problems, remedies
}

// DeletePriorityClass forgets a priority class. Jobs keep the priority that they
// got from it.
func (s *Server) DeletePriorityClass(ctx context.Context, name string) (uint64, error) {
	if model.IsReservedClass(name) {
		return 0, apierror.New(apierror.CodeInvalid, "priority class %q is reserved", name)
	}
	if _, err := logwriter.Find(ctx, s.writer, func(snap *state.Snapshot) *model.PriorityClass { return snap.PriorityClass(name) },
		"there is no priority class %q", name); err != nil {
		return 0, err
	}
	return s.writer.CommitIndex(ctx, &replication.DeletePriorityClass{Name: name})
}

// classNamed is a class that was made or that is always there; nil: neither.
func classNamed(snap *state.Snapshot, name string) *model.PriorityClass {
	if c := snap.PriorityClass(name); c != nil {
		return c
	}
	return model.SystemClass(name)
}
