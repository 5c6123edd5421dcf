package apiview

import (
	"fmt"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/sdk/client"
)

// EvalTable prints evaluations, one per row, with their namespaces if there are several.
func EvalTable(p cmdutil.Page, env *cmdutil.Env, list []*client.Evaluation) {
	titles := []string{"EVAL ID", "JOB", "PRIORITY>", "TRIGGERED BY", "STATUS", "UNPLACED>", "AGE>"}
	namespaces := p.Wide || inSeveral(list, func(e *client.Evaluation) string { return e.Namespace })
	if namespaces {
		titles = append(titles, "NAMESPACE")
	}
	if p.Wide {
		titles = append(titles, "TYPE", "DESCRIPTION", "PREVIOUS", "NEXT", "BLOCKED", "SUPERSEDED BY")
	}
	t := cmdutil.NewTable(titles...)
	for _, e := range list {
		unplaced := 0
		for _, n := range e.QueuedAllocations {
			unplaced += n
		}
		cells := []term.Cell{
			cmdutil.Cell(p.ID(e.ID)), cmdutil.Cell(e.JobID), cmdutil.Cell(fmt.Sprint(e.Priority)), cmdutil.Cell(e.TriggeredBy), cmdutil.StatusCell(e.Status),
			cmdutil.Cell(fmt.Sprint(unplaced)), cmdutil.Cell(env.Age(e.CreateTime)),
		}
		if namespaces {
			cells = append(cells, cmdutil.Cell(e.Namespace))
		}
		if p.Wide {
			for _, text := range []string{e.Type, e.StatusDescription, e.PreviousEval, e.NextEval, e.BlockedEval, e.SupersededBy} {
				cells = append(cells, cmdutil.Cell(text))
			}
		}
		t.Cells(cells...)
	}
	p.Table(t)
}
