package apiview

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

// IsLive reports whether an allocation with this status has not ended.
func IsLive(status string) bool {
	return status == "running" || status == "pending" || status == "unknown"
}

// AllocTable prints allocations, with their namespaces if there are several. ofJob omits
// the column of the job.
func AllocTable(p cmdutil.Page, env *cmdutil.Env, list []*client.AllocationStub, ofJob bool) {
	titles := []string{"ALLOC ID", "JOB", "GROUP", "NODE", "PRIORITY>", "DESIRED", "STATUS", "AGE>", "NOTE"}
	namespaces := !ofJob && inSeveral(list, func(a *client.AllocationStub) string { return a.Namespace })
	if namespaces {
		titles = append(titles, "NAMESPACE")
	}
	if p.Wide {
		titles = append(titles, "NAME", "VERSION>", "EVAL", "PREEMPTED", "PREEMPTED BY")
	}
	if ofJob {
		titles = slices.Delete(titles, 1, 2)
	}
	t := cmdutil.NewTable(titles...)
	for _, a := range list {
		cells := []term.Cell{
			cmdutil.Cell(p.ID(a.ID)), cmdutil.Cell(a.JobID), cmdutil.Cell(a.TaskGroup), cmdutil.Cell(AllocNode(p, a)), cmdutil.Cell(fmt.Sprint(a.Priority)),
			cmdutil.StatusCell(a.DesiredStatus), cmdutil.StatusCell(a.ClientStatus), cmdutil.Cell(env.Age(a.CreateTime)), cmdutil.Cell(allocNote(p, a)),
		}
		if namespaces {
			cells = append(cells, cmdutil.Cell(a.Namespace))
		}
		if p.Wide {
			cells = append(cells, cmdutil.Cell(a.Name), cmdutil.Cell(fmt.Sprint(a.JobVersion)), cmdutil.Cell(a.EvalID), cmdutil.Cell(p.IDs(a.PreemptedAllocations)), cmdutil.Cell(a.PreemptedByAllocation))
		}
		if ofJob {
			cells = slices.Delete(cells, 1, 2)
		}
		t.Cells(cells...)
	}
	p.Table(t)
}

// inSeveral reports whether the objects are in more than one namespace.
func inSeveral[T any](list []T, namespace func(T) string) bool {
	return len(list) > 0 && slices.ContainsFunc(list, func(o T) bool { return namespace(o) != namespace(list[0]) })
}

// AllocNode returns the node of an allocation, by name if possible.
func AllocNode(p cmdutil.Page, a *client.AllocationStub) string {
	if p.Wide {
		return a.NodeID
	}
	return cmp.Or(p.Name(a.NodeName), p.ID(a.NodeID))
}

// allocNote returns the note of an allocation in tables.
func allocNote(p cmdutil.Page, a *client.AllocationStub) string {
	switch {
	case a.PreemptedByAllocation != "":
		return "evicted by " + p.ID(a.PreemptedByAllocation)
	case a.NextAllocation != "":
		return "moved to " + p.ID(a.NextAllocation)
	case len(a.PreemptedAllocations) > 0:
		return "evicted " + p.IDs(a.PreemptedAllocations)
	case a.ClientDescription != "":
		return a.ClientDescription
	}
	return a.DesiredDescription
}
