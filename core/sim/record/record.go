package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim/importer"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/state"
)

// An Event is a recorded event of a job or node.
type Event struct {
	Kind      string // as in the event stream: JobRegistered, NodeDown
	Namespace string // if the object is a job
	ID        string // of the job or node
	Version   uint64 // of a registered job
	On        bool   // of a drain or eligibility: whether it is enabled
	Time      int64  // Unix nanoseconds
}

// A Recording holds the decisions of a server between two states.
type Recording struct {
	Name       string // of the scenario
	Began      int64  // Unix nanoseconds: the scenario's time 0
	Ended      int64  // Unix nanoseconds
	Begin, End *state.Snapshot
	Events     []Event // of the log entries between Begin and End, in their order
	// Use is the source of the active policy version as written to the scenario: a
	// built-in policy, or a file in the scenario's folder. If it is empty, the user
	// must provide the file.
	Use string
}

// Notes counts facts that a scenario cannot express, by description.
type Notes map[string]int

func (n Notes) add(format string, args ...any) { n[fmt.Sprintf(format, args...)]++ }

// Scenario converts the recording to a scenario. It also returns the notes.
func (r *Recording) Scenario() (*scenario.File, Notes) {
	w := &writer{
		Recording: r, notes: Notes{}, names: map[nameKey]string{}, taken: map[[2]string]bool{}, jobs: map[versioned]string{},
		definitions: map[versioned]definition{}, stopped: map[model.JobKey]bool{}, current: map[model.JobKey]versioned{}, runs: map[string]string{}, placed: map[string]int{}, instances: map[string]string{},
		file: &scenario.File{Version: 1, Name: r.Name, Description: "Recorded from a server."},
	}
	w.scheduler()
	w.namespaces()
	w.nodes()
	w.running()
	w.budgets()
	w.events()
	w.decisions()
	w.durations()
	w.tieOrder()
	w.file.Until = new(scenario.Duration(max(r.Ended-r.Began, 1)))
	return w.file, w.notes
}

type writer struct {
	*Recording
	file  *scenario.File
	notes Notes

	names       map[nameKey]string   // server name -> scenario name
	taken       map[[2]string]bool   // used scenario names, by kind
	jobs        map[versioned]string // job version -> scenario job
	definitions map[versioned]definition
	stopped     map[model.JobKey]bool // jobs that were stopped since their last registration
	// current is the version of each job that the scenario submitted last.
	current map[model.JobKey]versioned
	runs    map[string]string // allocation ID -> scenario allocation
	placed  map[string]int    // number of placements by instance
	// instances holds the scenario's name of the instance of each allocation.
	instances map[string]string
}

type nameKey struct{ kind, name string }

type versioned struct {
	key     model.JobKey
	version uint64
}

// name returns the unique scenario name of an object on the server. wish is the
// preferred name.
func (w *writer) name(kind, name, wish string) string {
	at := nameKey{kind, name}
	if known, ok := w.names[at]; ok {
		return known
	}
	clean := importer.CleanName(wish)
	for n, base := 2, clean; w.taken[[2]string{kind, clean}]; n++ {
		clean = fmt.Sprintf("%s-%d", base, n)
	}
	if clean != wish {
		w.notes.add("names with characters other than a-z, 0-9, dot and dash, or repeated across namespaces: renamed")
	}
	w.names[at], w.taken[[2]string{kind, clean}] = clean, true
	return clean
}

func (w *writer) scheduler() {
	c := w.Begin.Config()
	s := &w.file.Scheduler
	s.Algorithm, s.PriorityDelta = string(cmp.Or(c.Algorithm, model.Binpack)), c.PriorityDelta
	if c.Moves != nil {
		s.Moves = &scenario.Moves{PerJob: c.Moves.Number, Window: scenario.Duration(c.Moves.Window)}
	}
	s.Preemption = &scenario.Preemption{
		Service: mode(c, model.JobService), Batch: mode(c, model.JobBatch), System: mode(c, model.JobSystem), SysBatch: mode(c, model.JobSysBatch),
		Binding: new(c.Preemption[model.JobBinding]),
	}
	w.policy(c.Policy)
}

// mode returns the mode of preemption of a job type.
func mode(c *model.SchedulerConfig, t model.JobType) *scenario.PreemptionMode {
	return new(scenario.PreemptionMode{On: c.Preemption[t], Observe: c.Observes(t)})
}

// namespaces writes the stored namespaces with their weights at the start.
func (w *writer) namespaces() {
	for _, n := range w.Begin.Namespaces() {
		own := scenario.Namespace{Name: w.name("namespace", n.Name, n.Name), Description: n.Description}
		if n.Weight != model.DefaultWeight {
			own.Weight = new(n.Weight)
		}
		w.file.Namespaces = append(w.file.Namespaces, own)
	}
	if w.End.WeightsChangeIndex() > w.Begin.Index() {
		w.notes.add("weights of namespaces that changed during the recording: replayed with those at the start")
	}
}

// PolicyVersion returns the policy version that was active at the start of the
// recording. It returns nil if that was an unmodified built-in policy.
func (r *Recording) PolicyVersion() *model.PolicyVersion {
	active := r.Begin.PolicyState(cmp.Or(r.Begin.Config().Policy, "default"))
	if active == nil || active.Active == "" {
		return nil
	}
	return r.Begin.PolicyVersion(active.Active)
}

// policy writes the active policy. A scenario does not contain code, so the file of a
// module must be next to it.
func (w *writer) policy(name string) {
	w.file.Scheduler.Policy = name
	v := w.PolicyVersion()
	if v == nil {
		return
	}
	use, config := cmp.Or(w.Use, v.Name), settings(v.Config)
	if v.Kind == model.PolicyBuiltin && use == v.Name && len(config) == 0 && len(v.Grants) == 0 {
		return
	}
	if v.Kind != model.PolicyBuiltin {
		use = w.policyFile(v)
	}
	variant := scenario.PolicyVariant{Name: importer.CleanName(v.Name) + "-recorded", Use: use, Config: config, Grant: v.Grants}
	w.file.Policies = append(w.file.Policies, variant)
	w.file.Scheduler.Policy = variant.Name
}

// policyFile returns the file of a version's code as written to the scenario.
func (w *writer) policyFile(v *model.PolicyVersion) string {
	limits := policy.DefaultLimits
	usual := model.PolicyLimits{Fuel: limits.Fuel, FuelPerRow: limits.FuelPerRow, Memory: limits.Memory, Time: int64(limits.Time)}
	if v.Kind == model.PolicyWasm && v.Limits != usual {
		w.notes.add("policy %s has custom call limits: replayed with the default limits", v.Name)
	}
	if w.Use != "" {
		return w.Use
	}
	use := "./" + importer.CleanName(v.Name)
	if v.Kind == model.PolicyProcess {
		w.notes.add("policy %s is an executable: place a copy next to the scenario as %s, or select another policy with -p", v.Name, use)
		return use
	}
	extension := ".wasm"
	if v.Kind == model.PolicyComposition {
		extension = ".tar"
	}
	use += extension
	w.notes.add("policy %s is a module: place it next to the scenario as %s, or select another policy with -p", v.Name, use)
	return use
}

// nodes writes the initial nodes, and the nodes registered later. The latter are not
// ready until their event.
func (w *writer) nodes() {
	for n := range w.Begin.Nodes() {
		w.node(n, n.IsEligible())
	}
	for n := range w.End.Nodes() {
		if w.Begin.Node(n.ID) == nil {
			w.node(n, false)
		}
	}
}

func (w *writer) node(n *model.Node, ready bool) {
	node := importer.NodeOf(n)
	node.ID = w.name("node", n.ID, n.ID)
	node.Datacenter = w.name("datacenter", n.Datacenter, n.Datacenter)
	if n.Class != "" {
		node.Class = w.name("class", n.Class, n.Class)
	}
	node.Reserved, node.Ports = scenario.Quantities(n.Reserved), n.Ports
	if len(n.Meta) > 0 {
		node.Attributes = merged(n.Meta, n.Attributes)
	}
	if !ready {
		node.Ready = new(false)
	}
	w.file.Nodes = append(w.file.Nodes, node)
}

func merged(list ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range list {
		maps.Copy(all, m)
	}
	return all
}

// job writes a version of a job once and returns its scenario name. A version that continues
// the instances of the previous one has the same name.
func (w *writer) job(j *model.Job) string {
	at := versioned{j.Key(), j.Version}
	if id, ok := w.jobs[at]; ok {
		return id
	}
	job, wish := importer.JobOf(j), j.ID
	text, _ := json.Marshal(&job) // a struct of plain values: cannot fail
	w.definitions[at] = definition{j, string(text)}
	old, other := w.current[j.Key()]
	if other && w.continues(old, at) {
		w.jobs[at], w.current[j.Key()] = w.jobs[old], at
		return w.jobs[at]
	}
	if other {
		wish = fmt.Sprintf("%s-v%d", j.ID, j.Version)
		w.notes.add("updated jobs: the new version is a separate job, and the old one is stopped")
	}
	id := w.name("job", fmt.Sprintf("%v %d", j.Key(), j.Version), wish)
	job.ID, job.Namespace, job.Policy = id, w.name("namespace", j.Namespace, j.Namespace), ""
	if j.Policy != "" {
		w.notes.add("job policies: omitted; one policy decides for all jobs")
	}
	for i, dc := range j.Datacenters {
		job.Datacenters[i] = w.name("datacenter", dc, dc)
	}
	for i, g := range j.Groups {
		job.Groups[i].Name = w.name("group "+id, g.Name, g.Name)
	}
	w.jobs[at], w.current[j.Key()] = id, at
	w.file.Jobs = append(w.file.Jobs, job)
	return id
}

// A definition is a version of a job, and the same as the scenario would define it, before
// renaming.
type definition struct {
	job  *model.Job
	text string
}

// continues reports whether instances of a version of a job continue in the next one: nothing
// that a scenario defines has changed, and the server does not replace them.
func (w *writer) continues(old, next versioned) bool {
	x, y := w.definitions[old], w.definitions[next]
	return !w.stopped[next.key] && x.text == y.text && slices.EqualFunc(x.job.Groups, y.job.Groups, (*model.Group).ContinuesAs)
}

// running writes the allocations that were live at the start, and submits the jobs
// that were pending.
func (w *writer) running() {
	var live []*model.Allocation
	for j := range w.Begin.Jobs() {
		if j.Stopped {
			continue
		}
		for _, a := range w.Begin.AppendJobAllocs(nil, j.Key()) {
			if a.Live() {
				live = append(live, a)
			}
		}
	}
	slices.SortFunc(live, func(a, b *model.Allocation) int {
		return cmp.Or(a.Job.Key().Compare(b.Job.Key()), cmp.Compare(a.Group.Name, b.Group.Name), cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
	})
	for _, a := range live {
		job := w.job(w.Begin.Job(a.Job.Key()))
		if w.Begin.Job(a.Job.Key()).Group(a.Group.Name) == nil {
			w.notes.add("allocations of groups that their job no longer has: omitted")
			continue
		}
		id := w.name("run", a.ID, a.ID)
		run := scenario.Running{ID: id, Job: job, Group: w.group(job, a), Node: w.name("node", a.NodeID, a.NodeID)}
		if a.Started {
			run.StartedAt = scenario.Duration(min(a.StartTime-w.Began, 0))
		}
		w.runs[a.ID] = id
		w.nextAllocName(job, a) // its replacement gets the first incarnation number
		w.file.Running = append(w.file.Running, run)
	}
	w.pending()
	for range w.Begin.Bindings() {
		w.notes.add("bindings and their member clusters: omitted")
	}
}

func (w *writer) group(job string, a *model.Allocation) string {
	return w.name("group "+job, a.Group.Name, a.Group.Name)
}

// pending submits the jobs with pending or blocked evaluations.
func (w *writer) pending() {
	for j := range w.Begin.Jobs() {
		if j.Stopped {
			continue
		}
		if len(w.Begin.PendingEvals(j.Key())) > 0 {
			w.file.Events = append(w.file.Events, scenario.Event{Submit: w.job(j)})
		}
	}
}

// tieOrder writes the order of the server's IDs, by which the server broke ties. The names
// of the scenario may be in another order.
func (w *writer) tieOrder() {
	nodes := map[string]string{}
	for at, name := range w.names {
		if at.kind == "node" {
			nodes[at.name] = name
		}
	}
	for _, names := range []map[string]string{nodes, w.runs} {
		order := make([]string, 0, len(names))
		for _, id := range slices.Sorted(maps.Keys(names)) {
			order = append(order, names[id])
		}
		if !slices.IsSorted(order) {
			w.file.TieOrder = append(w.file.TieOrder, order...)
		}
	}
}

func (w *writer) budgets() {
	for _, b := range w.Begin.Budgets() {
		if len(b.Labels) == 0 || b.MinAvailable == nil && b.MaxUnavailable == nil {
			w.notes.add("rate-based eviction budgets: omitted")
			continue
		}
		budget := scenario.Budget{
			Name: w.name("budget", b.Key().String(), b.Name), Namespace: w.name("namespace", b.Namespace, b.Namespace), Labels: b.Labels,
			MinAvailable: (*scenario.Bound)(b.MinAvailable), MaxUnavailable: (*scenario.Bound)(b.MaxUnavailable),
		}
		if b.Strict {
			budget.Enforcement = "strict"
		}
		w.file.Budgets = append(w.file.Budgets, budget)
	}
}
