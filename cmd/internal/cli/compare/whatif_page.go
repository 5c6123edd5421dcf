package compare

import (
	"io"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/report"
)

// report writes the answer as an HTML page: everything that the terminal shows with -o
// wide, and how to repeat it.
func (a *Answer) report() error {
	source := compare.Provenance{Command: cmdutil.ShellCommand(a.w.env.Args), Program: a.w.env.Build.Version, Versions: map[string]string{}}
	var names []string
	for i := range a.Policies {
		p := &a.Policies[i]
		names = append(names, p.Policy)
		source.Versions[p.Policy] = p.PolicyVersion
	}
	page := &report.TablePage{Title: "cede compare --what-if: " + strings.Join(names, ", "), Source: report.Source(&source, names)}
	for i := range a.Work {
		page.Lead = append(page.Lead, a.Work[i].sentence(a.Scenario, func(name string) string { return name })+".")
	}
	if a.LeftAside > 0 {
		page.Lead = append(page.Lead, a.leftAside())
	}
	note := ""
	if a.anyVictims() {
		note = overviewNote
	}
	victims, _ := a.victims(true)
	page.Tables = []report.Table{
		htmlTable("Under each policy", note, a.overview(true)), htmlTable("Victims", "", victims), a.unplacedTable(),
	}
	if len(a.Differences) > 0 {
		t := report.Table{Title: a.differencesTitle(), Header: []string{"POLICY", "DIFFERENCE"}}
		for i := range a.Differences {
			t.Rows = append(t.Rows, []string{a.Differences[i].Policy, a.Differences[i].text(true)})
		}
		page.Tables = append(page.Tables, t)
	}
	return a.w.env.Write(a.w.html, func(w io.Writer) error { return page.Write(w) })
}

func htmlTable(title, note string, t *term.Table) report.Table {
	header, rows := t.Texts()
	return report.Table{Title: title, Note: note, Header: header, Rows: rows}
}

// unplacedTable lists the instances that each policy cannot place.
func (a *Answer) unplacedTable() report.Table {
	t := report.Table{Title: "Not placed", Header: []string{"POLICY", "JOB", "GROUP", "COUNT", "REASON"}}
	for i := range a.Policies {
		for _, u := range a.Policies[i].Unplaced {
			t.Rows = append(t.Rows, []string{a.Policies[i].Policy, u.Job, u.Group, cmdutil.Thousands(u.Count), u.Reason})
		}
	}
	if len(t.Rows) == 0 {
		t.Note, t.Header = "Every policy places every instance.", nil
	}
	return t
}
