package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Answer is the document of a --what-if.
type Answer struct {
	Version  int            `json:"version"`
	Scenario string         `json:"scenario"`
	Work     []whatIfWork   `json:"work"`
	Policies []whatIfPolicy `json:"policies"`
	// Differences lists the differences from the first policy.
	Differences []whatIfDifference `json:"differences"`
	// LeftAside is the number of pending jobs of the scenario, which are not submitted.
	LeftAside int `json:"leftAside"`

	w       *whatIf
	running map[string]*scenario.Running
	jobs    map[string]*scenario.Job
	own     map[string]bool // jobs of the workload
	faults  []error         // of policies
}

// whatIfWork is a job of the --what-if workload.
type whatIfWork struct {
	Job       string `json:"job"`
	Namespace string `json:"namespace"`
	Priority  int32  `json:"priority"`
	Instances int    `json:"instances"`
	PerNode   bool   `json:"perNode,omitempty"` // Instances is per eligible node
}

// whatIfPolicy is the outcome under one policy.
type whatIfPolicy struct {
	Policy        string            `json:"policy"`
	PolicyVersion string            `json:"policyVersion"`
	Placements    []whatIfPlacement `json:"placements"`
	Unplaced      []sim.Unplaced    `json:"unplaced"`
	Victims       []Victim          `json:"victims"`
	Violations    int               `json:"budgetViolations"`
	// Replaced victims are placed on other nodes at once, Waiting ones are not.
	// Further counts the evictions that the victims would cause.
	Replaced int `json:"replaced"`
	Waiting  int `json:"waiting"`
	Further  int `json:"further"`
}

type whatIfPlacement struct {
	Alloc string `json:"alloc"`
	Job   string `json:"job"`
	Group string `json:"group"`
	Node  string `json:"node"`
}

// Victim is an allocation that would be evicted.
type Victim struct {
	ID             string   `json:"id"`
	Namespace      string   `json:"namespace"`
	Job            string   `json:"job"`
	Group          string   `json:"group"`
	Node           string   `json:"node"`
	Priority       int32    `json:"priority"`
	Age            sim.At   `json:"age"`
	LostWork       sim.At   `json:"lostWork"`
	Budgets        []string `json:"budgets,omitempty"`
	BudgetViolated bool     `json:"budgetViolated"`
	By             string   `json:"by"`
}

// whatIfDifference describes how a policy differs from the first one.
type whatIfDifference struct {
	Policy string   `json:"policy"`
	Spares []string `json:"spares"` // victims of the first policy only
	Evicts []string `json:"evicts"` // victims of this policy only
	Nodes  bool     `json:"otherNodes"`
}

func newAnswer(w *whatIf) *Answer {
	a := &Answer{
		Version: 1, Scenario: w.file.Name, LeftAside: w.aside, Differences: []whatIfDifference{}, w: w,
		running: map[string]*scenario.Running{}, jobs: map[string]*scenario.Job{}, own: map[string]bool{},
	}
	for i := range w.with.Running {
		a.running[w.with.Running[i].ID] = &w.with.Running[i]
	}
	for i := range w.with.Jobs {
		a.jobs[w.with.Jobs[i].ID] = &w.with.Jobs[i]
	}
	for i := range w.jobs {
		j := &w.jobs[i]
		a.own[j.ID] = true
		instances := 0
		for _, g := range j.Groups {
			if g.Count == nil {
				instances++
			} else {
				instances += *g.Count
			}
		}
		a.Work = append(a.Work, whatIfWork{
			Job: j.ID, Namespace: namespaceOf(j), Priority: a.priority(j), Instances: instances, PerNode: j.Type == "system" || j.Type == "sysbatch",
		})
	}
	return a
}

func namespaceOf(j *scenario.Job) string { return cmp.Or(j.Namespace, model.DefaultNamespace) }

// priority returns the priority of a job, or that of its class.
func (a *Answer) priority(j *scenario.Job) int32 {
	if j.Priority != nil {
		return *j.Priority
	}
	var fallback *scenario.PriorityClass
	for i := range a.w.with.Classes {
		k := &a.w.with.Classes[i]
		switch {
		case k.Name == j.PriorityClass:
			return k.Value
		case k.GlobalDefault && (fallback == nil || k.Value < fallback.Value):
			fallback = k
		}
	}
	if fallback != nil {
		return fallback.Value
	}
	return model.DefaultPriority
}

// add records the result of one policy.
func (a *Answer) add(policy string, r *sim.Result) {
	p := whatIfPolicy{
		Policy: policy, PolicyVersion: r.PolicyVersion,
		Placements: []whatIfPlacement{}, Unplaced: []sim.Unplaced{}, Victims: []Victim{},
	}
	own := map[string]bool{}
	placed := map[[2]string]int{}
	for i := range r.Placements {
		x := &r.Placements[i]
		if !a.own[x.Job] {
			placed[[2]string{x.Job, x.Group}]++
			continue
		}
		own[x.Alloc] = true
		p.Placements = append(p.Placements, whatIfPlacement{Alloc: x.Alloc, Job: x.Job, Group: x.Group, Node: x.Node})
	}
	for _, u := range r.Unplaced {
		if a.own[u.Job] {
			p.Unplaced = append(p.Unplaced, u)
		}
	}
	for i := range r.Evicted {
		e := &r.Evicted[i]
		if !own[e.By] {
			p.Further++
			continue
		}
		p.Victims = append(p.Victims, a.victim(e))
		if e.BudgetViolated {
			p.Violations++
		}
		if run := a.running[e.Alloc]; run != nil && placed[[2]string{run.Job, run.Group}] > 0 {
			placed[[2]string{run.Job, run.Group}]--
			p.Replaced++
		} else {
			p.Waiting++
		}
	}
	a.Policies = append(a.Policies, p)
}

func (a *Answer) victim(e *sim.Evicted) Victim {
	j := a.jobs[e.Job]
	v := Victim{
		ID: e.Alloc, Namespace: namespaceOf(j), Job: e.Job, Group: e.Group, Node: e.Node, Priority: e.Priority,
		LostWork: e.LostWork, BudgetViolated: e.BudgetViolated, By: e.By,
	}
	if run := a.running[e.Alloc]; run != nil { // otherwise it was placed in the same instant
		v.Age = sim.At(-run.StartedAt)
	}
	at := slices.IndexFunc(j.Groups, func(g scenario.Group) bool { return g.Name == e.Group })
	for i := range a.w.with.Budgets {
		b := &a.w.with.Budgets[i]
		term := model.LabelTerm{Labels: b.Labels}
		if at >= 0 && cmp.Or(b.Namespace, model.DefaultNamespace) == v.Namespace && term.Matches(j.Groups[at].Labels) {
			v.Budgets = append(v.Budgets, b.Name)
		}
	}
	return v
}

// compare computes the differences from the first policy.
func (a *Answer) compare() {
	ids := func(p *whatIfPolicy) map[string]bool {
		set := map[string]bool{}
		for _, v := range p.Victims {
			set[v.ID] = true
		}
		return set
	}
	nodes := func(p *whatIfPolicy) []string {
		var list []string
		for _, x := range p.Placements {
			list = append(list, x.Node)
		}
		slices.Sort(list)
		return list
	}
	first := ids(&a.Policies[0])
	for i := 1; i < len(a.Policies); i++ {
		p := &a.Policies[i]
		other := ids(p)
		d := whatIfDifference{Policy: p.Policy, Spares: []string{}, Evicts: []string{}, Nodes: !slices.Equal(nodes(&a.Policies[0]), nodes(p))}
		for _, id := range slices.Sorted(maps.Keys(first)) {
			if !other[id] {
				d.Spares = append(d.Spares, id)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(other)) {
			if !first[id] {
				d.Evicts = append(d.Evicts, id)
			}
		}
		a.Differences = append(a.Differences, d)
	}
}

// unplaced returns an error if a policy cannot place the workload.
func (a *Answer) unplaced() error {
	var lines []string
	for i := range a.Policies {
		for _, u := range a.Policies[i].Unplaced {
			lines = append(lines, fmt.Sprintf("under %s: %s of %s.%s not placed: %s", a.Policies[i].Policy, cmdutil.Thousands(u.Count), u.Job, u.Group, u.Reason))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return &cmdutil.Error{
		Exit: cmdutil.ExitUnplaced, Code: cmdutil.CodeUnplaced, Message: "not every instance could be placed", Lines: lines, Details: lines,
		Hint: "the reasons are listed above by node",
	}
}

func (a *Answer) document() cmdutil.Document {
	var names []string
	for i := range a.Policies {
		names = append(names, a.Policies[i].Policy)
	}
	return cmdutil.Document{Data: a, Names: names, Page: a.page}
}

// page renders the answer as text.
func (a *Answer) page(p cmdutil.Page) {
	if !p.NoHeaders {
		for i := range a.Work {
			p.Printf("%s\n", a.Work[i].sentence(a.Scenario, func(name string) string { return p.Style.Text(term.Bold, name) }))
		}
		if a.LeftAside > 0 {
			p.Printf("%s\n", a.leftAside())
		}
	}
	p.Title("Under each policy")
	p.Table(a.overview(p.Wide))
	if !p.NoHeaders && a.anyVictims() {
		p.Printf("%s\n", overviewNote)
	}
	p.Title("Victims")
	victims, left := a.victims(p.Wide)
	p.Table(victims)
	if left > 0 && !p.NoHeaders {
		p.Printf("  and %s more; -o wide lists all\n", cmdutil.Thousands(left))
	}
	if len(a.Differences) > 0 && !p.NoHeaders {
		p.Title(a.differencesTitle())
		for i := range a.Differences {
			d := &a.Differences[i]
			p.Printf("  %s: %s\n", d.Policy, d.text(p.Wide))
		}
	}
}

// overviewNote explains columns of the overview.
const overviewNote = "Victims that are PLACED on another node at once, that WAIT, and that EVICT OTHERS."

func (a *Answer) anyVictims() bool {
	return slices.ContainsFunc(a.Policies, func(x whatIfPolicy) bool { return len(x.Victims) > 0 })
}

func (a *Answer) differencesTitle() string { return "Differences from " + a.Policies[0].Policy }

// sentence describes a submitted job; strong emphasises names.
func (w *whatIfWork) sentence(scenario string, strong func(string) string) string {
	return fmt.Sprintf("If %s is submitted to %s: %s, priority %d", strong(w.Namespace+"/"+w.Job), strong(scenario), w.size(), w.Priority)
}

func (a *Answer) leftAside() string {
	return "Ignored: " + cmdutil.Count(a.LeftAside, "job that is already pending", "jobs that are already pending") + "."
}

func (w *whatIfWork) size() string {
	text := cmdutil.Count(w.Instances, "instance", "instances")
	if w.PerNode {
		text += " on each feasible node"
	}
	return text
}

// overview returns a row for each policy. all selects all nodes instead of the first ones.
func (a *Answer) overview(all bool) *term.Table {
	t := &term.Table{Columns: []term.Column{
		{Title: "POLICY"},
		{Title: "NODES"},
		{Title: "UNPLACED", Right: true},
		{Title: "VICTIMS", Right: true},
		{Title: "BUDGETS VIOLATED", Right: true},
		{Title: "LOST WORK", Right: true},
		{Title: "PLACED", Right: true},
		{Title: "WAIT", Right: true},
		{Title: "EVICT OTHERS", Right: true},
	}}
	for i := range a.Policies {
		x := &a.Policies[i]
		var lost time.Duration
		for _, v := range x.Victims {
			lost += time.Duration(v.LostWork)
		}
		missing := 0
		for _, u := range x.Unplaced {
			missing += u.Count
		}
		t.Row(x.Policy, a.nodes(x, all), cmdutil.Thousands(missing), cmdutil.Thousands(len(x.Victims)), cmdutil.Thousands(x.Violations),
			shortAge(lost), cmdutil.Thousands(x.Replaced), cmdutil.Thousands(x.Waiting), cmdutil.Thousands(x.Further))
	}
	return t
}

// victimTitle returns the noun for a victim in the scenario's source format.
func (a *Answer) victimTitle() string {
	if a.w.file.Scheduler.Policy == "kubernetes" {
		return "POD"
	}
	return "ALLOCATION"
}

// nodes lists the nodes on which the workload would be placed.
func (a *Answer) nodes(x *whatIfPolicy, all bool) string {
	var list []string
	for _, placed := range x.Placements {
		if !slices.Contains(list, placed.Node) {
			list = append(list, placed.Node)
		}
	}
	const most = 3
	if len(list) > most && !all {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %s more", cmdutil.Thousands(len(list)-most))
	}
	return strings.Join(list, ", ")
}

// victims returns a row for each victim, and the number of victims left out if all is not
// set.
func (a *Answer) victims(all bool) (t *term.Table, left int) {
	t = &term.Table{Columns: []term.Column{
		{Title: "POLICY"},
		{Title: a.victimTitle()},
		{Title: "NAMESPACE"},
		{Title: "JOB"},
		{Title: "GROUP"},
		{Title: "NODE"},
		{Title: "PRIORITY", Right: true},
		{Title: "AGE", Right: true},
		{Title: "BUDGET"},
	}}
	for i := range a.Policies {
		x := &a.Policies[i]
		if len(x.Victims) == 0 {
			t.Row(x.Policy, "none")
			continue
		}
		for k := range x.Victims {
			v := &x.Victims[k]
			if k >= simrun.MaxRunRows && !all {
				left += len(x.Victims) - k
				break
			}
			budget := strings.Join(v.Budgets, ", ")
			if v.BudgetViolated {
				budget += " violated"
			}
			t.Row(x.Policy, v.ID, v.Namespace, v.Job, v.Group, v.Node, fmt.Sprint(v.Priority), shortAge(time.Duration(v.Age)), strings.TrimSpace(budget))
		}
	}
	return t, left
}

// shortAge formats a duration with its two largest units.
func shortAge(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.Truncate(time.Second).String()
}

// text describes the difference in one line.
func (d *whatIfDifference) text(all bool) string {
	var parts []string
	if len(d.Spares) > 0 {
		parts = append(parts, "spares "+someOf(d.Spares, all))
	}
	if len(d.Evicts) > 0 {
		parts = append(parts, "evicts "+someOf(d.Evicts, all))
	}
	if d.Nodes {
		parts = append(parts, "uses other nodes")
	}
	if len(parts) == 0 {
		return "the same victims on the same nodes"
	}
	return strings.Join(parts, "; ")
}

func someOf(list []string, all bool) string {
	if len(list) > simrun.MaxVictims && !all {
		return strings.Join(list[:simrun.MaxVictims], ", ") + fmt.Sprintf(" and %s more", cmdutil.Thousands(len(list)-simrun.MaxVictims))
	}
	return strings.Join(list, ", ")
}
