package importer

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/client"
)

// importedJob is a job of the scenario.
type importedJob struct {
	key model.JobKey
	job scenario.Job
}

// jobs returns the jobs with running or pending instances, in ascending order of keys.
func (w *nomadWriter) jobs() []*importedJob {
	specs := w.specifications()
	var jobs []*importedJob
	seen := map[model.JobKey]bool{}
	for key := range specs {
		seen[key] = true
	}
	for key := range w.live {
		seen[key.job] = true
	}
	for _, key := range slices.SortedFunc(maps.Keys(seen), model.JobKey.Compare) {
		if job, ok := w.job(key, specs[key]); ok {
			jobs = append(jobs, &importedJob{key, job})
		}
	}
	return jobs
}

// specifications returns the most complete and newest specification of each job.
func (w *nomadWriter) specifications() map[model.JobKey]*nomadJob {
	specs := map[model.JobKey]*nomadJob{}
	take := func(j *nomadJob) {
		key := model.JobKey{Namespace: cmp.Or(j.Namespace, model.DefaultNamespace), ID: j.ID}
		old := specs[key]
		fuller := old != nil && (len(j.TaskGroups) > 0) != (len(old.TaskGroups) > 0)
		if old == nil || fuller && len(j.TaskGroups) > 0 || !fuller && j.Version > old.Version {
			specs[key] = j
		}
	}
	for _, j := range w.dump.jobs {
		take(j)
	}
	for _, list := range w.live {
		for _, a := range list {
			if a.Job != nil {
				take(a.Job)
			}
		}
	}
	return specs
}

// job returns a job in the form of a scenario. It uses the specification, or the resources
// of the allocations if there is no specification that cede can express.
func (w *nomadWriter) job(key model.JobKey, spec *nomadJob) (scenario.Job, bool) {
	groups := w.groupsOf(key)
	switch {
	case spec != nil && (spec.Stop || spec.Status == "dead") && len(groups) == 0,
		spec != nil && spec.isTemplate() && len(groups) == 0:
		return scenario.Job{}, false
	case spec != nil && len(spec.TaskGroups) == 0 && len(groups) == 0:
		w.reportQueued(spec)
		return scenario.Job{}, false
	case spec != nil && len(spec.TaskGroups) > 0:
		m, err := jobspec.ToModel(w.schedulable(spec))
		if err == nil {
			if spec.Priority == nil {
				m.Priority = model.DefaultPriority
			}
			w.dropCompleted(key, spec, m)
			return build.Job(m, nil), true
		}
		w.report.Note(1, "jobs with a specification that cede cannot express", "derived from their allocations: "+firstLine(err))
	}
	return w.jobFromAllocations(key, spec, groups), len(groups) > 0
}

// reportQueued counts the pending instances of a job if their request is unknown.
func (w *nomadWriter) reportQueued(stub *nomadJob) {
	n := stub.JobSummary.queued()
	w.report.TasksRead += n
	w.report.LeaveOut(n, "pending instances of jobs without a specification (/v1/job/ID)")
}

// isTemplate reports whether a job only creates others (periodic or parameterized) and
// never runs itself. Lists have a boolean, specifications the parameters.
func (j *nomadJob) isTemplate() bool {
	for _, field := range []json.RawMessage{j.ParameterizedJob, j.Periodic} {
		if s := string(field); s != "" && s != "null" && s != "false" {
			return true
		}
	}
	return false
}

func firstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// groupsOf returns the groups of a job that have allocations, in ascending order.
func (w *nomadWriter) groupsOf(key model.JobKey) []string {
	var groups []string
	for k := range w.live {
		if k.job == key {
			groups = append(groups, k.group)
		}
	}
	slices.Sort(groups)
	return groups
}

// schedulable returns a job with the fields that scheduling reads. It counts fields that a
// scenario cannot express.
func (w *nomadWriter) schedulable(spec *nomadJob) *client.Job {
	j := spec.Job
	j.Stop = false
	j.Constraints, j.Affinities, j.Spreads = w.supported(j.Constraints), supportedOf(w, j.Affinities, affinityTarget), supportedOf(w, j.Spreads, spreadTarget)
	if pool := spec.NodePool; pool != "" && pool != "all" {
		j.Constraints = append(j.Constraints, &client.Constraint{LTarget: nodePool, Operand: "=", RTarget: pool})
	}
	j.TaskGroups = nil
	for _, from := range spec.TaskGroups {
		g := from.TaskGroup
		g.Constraints, g.Affinities, g.Spreads = w.supported(g.Constraints), supportedOf(w, g.Affinities, affinityTarget), supportedOf(w, g.Spreads, spreadTarget)
		g.Networks, g.Tasks = w.networks(g.Networks), nil
		for _, t := range from.Tasks {
			if c := t.Lifecycle; c != nil && !c.Sidecar && c.Hook != "poststart" {
				w.report.Note(1, "tasks that run before or after the others", "their resources are not counted")
				continue
			}
			g.Tasks = append(g.Tasks, w.task(&t.Task))
		}
		j.TaskGroups = append(j.TaskGroups, &g)
	}
	if operators := jobspec.JobWideCounts(&j); len(operators) > 0 {
		w.report.Note(1, "jobs with several groups and "+strings.Join(operators, " and ")+" of the job", "applied to each group separately")
	}
	return &j
}

// task returns the fields of a task that scheduling reads.
func (w *nomadWriter) task(from *client.Task) *client.Task {
	t := &client.Task{
		Name: from.Name, Driver: "sim", KillTimeout: from.KillTimeout,
		Constraints: w.supported(from.Constraints), Affinities: supportedOf(w, from.Affinities, affinityTarget),
	}
	if from.Resources != nil {
		r := *from.Resources
		r.Networks, r.Devices, r.Other = w.networks(r.Networks), slices.Clone(r.Devices), nil
		for i, d := range r.Devices {
			plain := *d
			if len(d.Constraints) > 0 {
				w.report.Note(1, "constraints on devices", "left out")
				plain.Constraints = nil
			}
			r.Devices[i] = &plain
		}
		t.Resources = &r
	}
	return t
}

// networks returns the static ports. Modes and dynamic ports never exclude a node.
func (w *nomadWriter) networks(list []*client.NetworkResource) []*client.NetworkResource {
	var kept []*client.NetworkResource
	for _, n := range list {
		if n != nil && n.Mode != "bridge" && len(n.ReservedPorts) > 0 {
			kept = append(kept, &client.NetworkResource{ReservedPorts: n.ReservedPorts})
		}
	}
	return kept
}

// supported returns the constraints without those on attributes that the dump lacks.
func (w *nomadWriter) supported(list []*client.Constraint) []*client.Constraint {
	return supportedOf(w, list, func(c *client.Constraint) string { return c.LTarget })
}

func affinityTarget(a *client.Affinity) string { return a.LTarget }
func spreadTarget(s *client.Spread) string     { return s.Attribute }

func supportedOf[T any](w *nomadWriter, list []*T, target func(*T) string) []*T {
	if w.hasAttributes {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(one *T) bool {
		on := target(one)
		unknown := strings.HasPrefix(on, "${attr.") || strings.HasPrefix(on, "${meta.")
		if unknown {
			w.report.Note(1, "constraints, affinities and spreads on attributes", "left out because the dump has no node attributes")
		}
		return unknown
	})
}

// dropCompleted adapts the counts to the state of the cluster. Completed instances of a
// finite job do not run again, and a stopped job only retains its running instances.
// Allocations of groups that the job no longer has are left out.
func (w *nomadWriter) dropCompleted(key model.JobKey, spec *nomadJob, m *model.Job) {
	m.Stopped = false
	for _, g := range m.Groups {
		list, done := w.live[groupKey{key, g.Name}], w.done[groupKey{key, g.Name}]
		switch perNode := m.Type == model.JobSystem || m.Type == model.JobSysBatch; {
		case perNode && !spec.Stop && (done == 0 || !m.Type.Finite()): // one on each node
		case perNode && len(list) > 0:
			g.Constraints = append(g.Constraints, model.Constraint{Attribute: "node.id", Operator: model.OpIn, Values: w.nodesOf(list)})
			w.report.Note(1, "system jobs that are stopped or partly complete", "bound to the nodes where they run")
		case spec.Stop:
			g.Count = len(list)
		case m.Type.Finite():
			g.Count = max(len(list), g.Count-done)
		}
	}
	for _, name := range w.groupsOf(key) {
		if !slices.ContainsFunc(m.Groups, func(g *model.Group) bool { return g.Name == name }) {
			n := len(w.live[groupKey{key, name}])
			w.report.TasksRead += n
			w.report.LeaveOut(n, "allocations of groups that their job no longer has")
			delete(w.live, groupKey{key, name})
		}
	}
}

// jobFromAllocations returns a job derived from the resources of its allocations.
func (w *nomadWriter) jobFromAllocations(key model.JobKey, spec *nomadJob, groups []string) scenario.Job {
	job := scenario.Job{Namespace: key.Namespace, Type: "service", Priority: new(int32(model.DefaultPriority))}
	switch {
	case spec == nil:
		w.report.Note(1, "jobs that are not in the dump (/v1/jobs)", "priority 50")
	case spec.Priority != nil:
		job.Priority = new(int32(*spec.Priority))
	}
	for _, name := range groups {
		list := w.live[groupKey{key, name}]
		newest := list[len(list)-1]
		job.Type = cmp.Or(newest.JobType, job.Type)
		if spec != nil {
			job.Type = cmp.Or(spec.Type, job.Type)
		}
		g := w.groupFromAllocation(name, len(list), newest)
		if job.Type == model.JobSystem.String() || job.Type == model.JobSysBatch.String() {
			w.pinToNodes(&g, list)
		}
		job.Groups = append(job.Groups, g)
	}
	if spec != nil && len(spec.TaskGroups) == 0 {
		w.reportQueued(spec)
	}
	if spec == nil || len(spec.TaskGroups) == 0 {
		w.report.Note(1, "jobs without a specification (/v1/job/ID)", "derived from their allocations, without constraints")
	}
	return job
}

// pinToNodes constrains a group of a system job, whose constraints are unknown, to the
// nodes of its allocations. The count of such a group is its number on each node.
func (w *nomadWriter) pinToNodes(g *scenario.Group, list []*nomadAlloc) {
	g.Count = new(1)
	g.Constraints = append(g.Constraints, scenario.Constraint{Attribute: "node.id", Operator: string(model.OpIn), Values: w.nodesOf(list)})
	w.report.Note(1, "system jobs without a specification (/v1/job/ID)", "bound to the nodes where they run")
}

// nodesOf returns the names of the nodes on which allocations run, in ascending order.
func (w *nomadWriter) nodesOf(list []*nomadAlloc) []string {
	var names []string
	for _, a := range list {
		names = append(names, w.names[a.NodeID])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// groupFromAllocation returns a group that requests the resources of an allocation.
func (w *nomadWriter) groupFromAllocation(name string, count int, a *nomadAlloc) scenario.Group {
	g := scenario.Group{Name: name, Count: &count, Resources: scenario.Quantities{}}
	r := a.AllocatedResources
	if len(a.ResourceUse) > 0 {
		a.fill(&g)
		return g
	}
	if r == nil {
		w.report.Note(count, "allocations without resources (list them with ?resources=true)", "imported with empty requests")
		return g
	}
	devices := map[string]int32{}
	for _, t := range r.Tasks {
		g.Resources["cpu"] += t.Cpu.CpuShares
		g.Resources["memory"] += t.Memory.MemoryMB
		for i := range t.Devices {
			devices[t.Devices[i].id()] += int32(len(t.Devices[i].DeviceIDs))
		}
	}
	g.Resources["disk"] = r.Shared.DiskMB
	for _, id := range slices.Sorted(maps.Keys(devices)) {
		g.Devices = append(g.Devices, scenario.DeviceRequest{ID: id, Count: new(devices[id])})
	}
	return g
}

// AssignNodePool constrains a job to its node pool, as for imported jobs. An empty pool
// is Nomad's default pool if the nodes of the scenario have pools.
func AssignNodePool(f *scenario.File, j *model.Job, pool string) {
	hasPools := slices.ContainsFunc(f.Nodes, func(n scenario.Node) bool { return n.Attributes[nodePool] != "" })
	if pool == "all" || !hasPools && (pool == "" || pool == "default") {
		return
	}
	for _, g := range j.Groups {
		g.Constraints = append(g.Constraints, model.Constraint{Attribute: nodePool, Operator: model.OpEqual, Value: cmp.Or(pool, "default")})
	}
}
