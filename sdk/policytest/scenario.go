package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// hostPort stands for the ports that rows hold and the preemptor requests.
const hostPort = 8080

// Scenario returns a case as a scenario file for `cede sim run`: the nodes with their
// running allocations, and the preemptor, which is submitted at the start. use is the
// policy of the scenario.
//
// Scenarios cannot express separation or earlier evictions of the plan. If the case
// has them, they are omitted and listed in a comment. The simulator assigns
// allocations to device groups.
func Scenario(c *Case, name, use string) []byte {
	w := &scenarioWriter{c: c}
	w.printf("version: 1")
	w.printf("name: %s", name)
	for _, note := range w.omissions() {
		w.printf("# %s", note)
	}
	w.printf("scheduler: {priorityDelta: %d, policy: %s}", c.Preemptor.Delta, strconv.Quote(use))
	if len(c.Namespaces) > 0 {
		w.printf("namespaces:")
		for _, n := range c.Namespaces {
			w.printf("  - {name: %s, weight: %s}", n.Name, plain(max(n.Weight, 0)))
		}
	}
	w.printf("nodes:")
	for _, i := range w.nodes() {
		w.node(i)
	}
	w.printf("jobs:")
	w.preemptor()
	for _, i := range w.nodes() {
		for k := range c.Options[i].Rows {
			w.job(i, &c.Options[i].Rows[k])
		}
	}
	w.budgets()
	w.printf("running:")
	for _, i := range w.nodes() {
		for _, r := range c.Options[i].Rows {
			id := w.id(i, &r)
			w.printf("  - {id: %s, job: %s, group: g, node: %s, startedAt: %s}", id, id, c.Options[i].Name, -time.Duration(r.Age))
		}
	}
	w.printf("events:")
	w.printf("  - {at: 0s, submit: preemptor}")
	w.printf("until: 1s")
	return []byte(w.String())
}

type scenarioWriter struct {
	strings.Builder
	c *Case
}

func (w *scenarioWriter) printf(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// nodes returns the first option of each node.
func (w *scenarioWriter) nodes() []int {
	var first []int
	for i := range w.c.Options {
		if i == 0 || w.c.Options[i].Node != w.c.Options[i-1].Node {
			first = append(first, i)
		}
	}
	return first
}

// id returns the name of a row's allocation and job. Names of rows are unique per node only.
func (w *scenarioWriter) id(i int, r *Row) string { return w.c.Options[i].Name + "-" + r.Name }

// omissions returns a message for each part of the case that is omitted.
func (w *scenarioWriter) omissions() []string {
	var notes []string
	add := func(note string) {
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	for _, o := range w.c.Options {
		for _, r := range o.Rows {
			if r.MustLeave&policy.MustLeaveSeparation != 0 {
				add("omitted: separation of the preemptor from " + r.Name)
			}
			if r.Evictions > 0 {
				add("omitted: earlier evictions of the plan")
			}
		}
	}
	for _, b := range w.c.Budgets {
		if len(w.under(b.Name)) > 1 {
			add("omitted: budget " + b.Name + ", which covers several namespaces")
		}
	}
	return notes
}

// under returns the number of rows that a budget covers, by namespace.
func (w *scenarioWriter) under(budget string) map[string]int32 {
	rows := map[string]int32{}
	for _, i := range w.nodes() {
		for _, r := range w.c.Options[i].Rows {
			if slices.Contains(r.Budgets, budget) {
				rows[orDefault(r.Namespace)]++
			}
		}
	}
	return rows
}

// budgets writes the budgets that cover rows of one namespace only. Each selects rows
// with a label of its own.
func (w *scenarioWriter) budgets() {
	head := "budgets:"
	for _, b := range w.c.Budgets {
		rows := w.under(b.Name)
		if len(rows) != 1 {
			continue
		}
		if head != "" {
			w.printf("%s", head)
			head = ""
		}
		for namespace, n := range rows {
			w.printf("  - {name: %s, namespace: %s, labels: {%s: \"\"}, minAvailable: %d}", b.Name, namespace, strconv.Quote(budgetLabel+b.Name), max(0, n-b.Slack))
		}
	}
}

// budgetLabel is the prefix of the labels that budgets select.
const budgetLabel = "budget/"

func (w *scenarioWriter) node(i int) {
	c, o := w.c, &w.c.Options[i]
	devices := ""
	for j := i; j < len(c.Options) && c.Options[j].Node == o.Node; j++ {
		for r, free := range c.Options[j].DeviceFree {
			total := max(free, 0)
			for _, row := range c.Options[j].Rows {
				total += row.Devices[r]
			}
			if total > 0 {
				devices += fmt.Sprintf("{id: cede/%s/g%d-%d, count: %s}, ", c.Preemptor.Devices[r].ID, c.Options[j].DeviceGroup[r], r, plain(total))
			}
		}
	}
	if devices != "" {
		devices = ", devices: [" + strings.TrimSuffix(devices, ", ") + "]"
	}
	w.printf("  - {id: %s, capacity: %s%s}", o.Name, w.resources(o.capacity()), devices)
}

func (w *scenarioWriter) resources(v []float64) string {
	var list []string
	for d, x := range v {
		list = append(list, w.c.Dims[d]+": "+plain(max(x, 0)))
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func (w *scenarioWriter) preemptor() {
	p := &w.c.Preemptor
	w.printf("  - id: preemptor")
	w.printf("    namespace: %s", orDefault(p.Namespace))
	w.printf("    type: %s", p.JobType)
	w.printf("    priority: %d", p.Priority)
	w.printf("    groups:")
	w.printf("      - name: g")
	w.printf("        resources: %s", w.resources(p.Ask))
	var devices []string
	for _, d := range p.Devices {
		devices = append(devices, fmt.Sprintf("{id: %s, count: %d}", d.ID, d.Count))
	}
	if devices != nil {
		w.printf("        devices: [%s]", strings.Join(devices, ", "))
	}
	if p.Ports > 0 || w.anyPort() {
		w.printf("        ports: [%d]", hostPort)
	}
	w.marks(p.Labels, p.Annotations)
}

func (w *scenarioWriter) anyPort() bool {
	return slices.ContainsFunc(w.c.Options, func(o Option) bool {
		return slices.ContainsFunc(o.Rows, func(r Row) bool { return r.MustLeave&policy.MustLeavePort != 0 })
	})
}

func (w *scenarioWriter) job(i int, r *Row) {
	w.printf("  - id: %s", w.id(i, r))
	w.printf("    namespace: %s", orDefault(r.Namespace))
	w.printf("    priority: %d", r.Priority)
	w.printf("    groups:")
	w.printf("      - name: g")
	w.printf("        resources: %s", w.resources(r.Use))
	w.printf("        maxParallelEvictions: %d", r.EvictionLimit)
	if done := r.Age - r.LostWork; done > 0 {
		w.printf("        checkpoint: %s", time.Duration(done)) // saved at the checkpoint
	}
	if r.MustLeave&policy.MustLeavePort != 0 {
		w.printf("        ports: [%d]", hostPort)
	}
	var devices []string
	for k, n := range r.Devices {
		if n > 0 {
			devices = append(devices, fmt.Sprintf("{id: %s, count: %s}", w.c.Preemptor.Devices[k].ID, plain(n)))
		}
	}
	if devices != nil {
		w.printf("        devices: [%s]", strings.Join(devices, ", "))
	}
	labels := maps.Clone(r.Labels)
	for _, name := range r.Budgets {
		setKey(&labels, budgetLabel+name, "")
	}
	w.marks(labels, r.Annotations)
}

func (w *scenarioWriter) marks(labels map[string]string, notes map[string]float64) {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, strconv.Quote(key)+": "+strconv.Quote(labels[key]))
	}
	if list != nil {
		w.printf("        labels: {%s}", strings.Join(list, ", "))
	}
	list = nil
	for _, name := range slices.Sorted(maps.Keys(notes)) {
		list = append(list, strconv.Quote(name)+": "+plain(notes[name]))
	}
	if list != nil {
		w.printf("        annotations: {%s}", strings.Join(list, ", "))
	}
}

func orDefault(namespace string) string {
	if namespace == "" {
		return "default"
	}
	return namespace
}
