package generate

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
)

// Report summarizes the jobs and the load of a scenario.
type Report struct {
	Nodes   int            `json:"nodes"`
	Classes []ClassReport  `json:"classes"`
	Load    map[string]int `json:"load"`            // per cent of the capacity over the horizon, by resource
	Unfit   int            `json:"unfit,omitempty"` // tasks that fit no empty node
}

// ClassReport summarizes one class.
type ClassReport struct {
	Name     string         `json:"name"`
	Priority int32          `json:"priority"`
	Jobs     int            `json:"jobs"`
	Tasks    int            `json:"tasks"`
	Load     map[string]int `json:"load"`
}

func (g *generator) report() *Report {
	r := &Report{Nodes: len(g.all)}
	all := make(load)
	for i := range g.made {
		m, k := &g.made[i], &g.classes[i]
		r.Classes = append(r.Classes, ClassReport{k.Name, k.priority, len(m.jobs), m.tasks, m.load.percent()})
		r.Unfit += m.unfit
		for name, v := range m.load {
			all[name] += v
		}
	}
	r.Load = all.percent()
	return r
}

func (l load) percent() map[string]int {
	out := make(map[string]int, len(l))
	for name, v := range l {
		out[name] = int(math.Round(100 * v))
	}
	return out
}

// String returns the report as a table.
func (r *Report) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	resources := sorted(r.Load)
	fmt.Fprint(w, "CLASS\tPRIORITY\tJOBS\tTASKS\t")
	for _, name := range resources {
		fmt.Fprintf(w, "%s\t", strings.ToUpper(name))
	}
	fmt.Fprintln(w)
	row := func(name, priority string, jobs, tasks int, l map[string]int) {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t", name, priority, jobs, tasks)
		for _, r := range resources {
			fmt.Fprintf(w, "%d%%\t", l[r])
		}
		fmt.Fprintln(w)
	}
	jobs, tasks := 0, 0
	for _, c := range r.Classes {
		row(c.Name, fmt.Sprint(c.Priority), c.Jobs, c.Tasks, c.Load)
		jobs += c.Jobs
		tasks += c.Tasks
	}
	row("all", "", jobs, tasks, r.Load)
	_ = w.Flush() // a strings.Builder never fails
	fmt.Fprintf(&b, "%d nodes; load is offered load as a share of their capacity over the horizon\n", r.Nodes)
	if r.Unfit > 0 {
		fmt.Fprintf(&b, "%d tasks request more than any node has\n", r.Unfit)
	}
	return b.String()
}
