package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

// The rules of priority classes are those of Kubernetes: jobs keep the priority
// that they got from a class, so that a class which changed would lie about them.

// highestClass is the greatest value of a class that people make; what is above
// is for what keeps the cluster itself alive.
const highestClass = 1_000_000_000

// systemPrefix is of the names that are reserved.
const systemPrefix = "system-"

// PutPriorityClass stores a new priority class, or another description of one.
func (s *Server) PutPriorityClass(ctx context.Context, c *model.PriorityClass) (uint64, error) {
	if problems := classProblems(s.Snapshot(), c); len(problems) > 0 {
		return 0, fail(CodeInvalid, "priority class %q: %s", c.Name, strings.Join(problems, "; ")).
			with(map[string]any{"Problems": problems})
	}
	class := *c
	return s.index(s.do(ctx, &replication.UpsertPriorityClass{Class: &class}))
}

func classProblems(snap *state.Snapshot, c *model.PriorityClass) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if c.Name == "" || strings.ContainsAny(c.Name, " \t\n/") {
		add("its name is empty or has spaces or slashes")
	}
	if strings.HasPrefix(c.Name, systemPrefix) {
		add("names that begin with %s are reserved", systemPrefix)
	}
	if c.Value > highestClass {
		add("its value %d is above %d", c.Value, highestClass)
	}
	if old := snap.PriorityClass(c.Name); old != nil {
		same := *c
		same.Description = old.Description
		if same != *old {
			add("only its description may change: delete it and make it anew")
		}
		return problems
	}
	for _, other := range snap.PriorityClasses() {
		if c.GlobalDefault && other.GlobalDefault {
			add("%s is the global default already", other.Name)
		}
	}
	return problems
}

// DeletePriorityClass forgets a priority class. Jobs keep the priority that they
// got from it.
func (s *Server) DeletePriorityClass(ctx context.Context, name string) (uint64, error) {
	switch {
	case strings.HasPrefix(name, systemPrefix):
		return 0, fail(CodeInvalid, "priority class %q is reserved", name)
	case s.Snapshot().PriorityClass(name) == nil:
		return 0, fail(CodeNotFound, "there is no priority class %q", name)
	}
	return s.index(s.do(ctx, &replication.DeletePriorityClass{Name: name}))
}
