package importer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// nomadPolicy is the policy of an imported Nomad cluster.
const nomadPolicy = "nomad"

// Nomad imports a dump of a Nomad cluster. See the package documentation.
func Nomad(opts Options, src Source) (*scenario.File, *Report, error) {
	if err := errors.Join(opts.Validate(), opts.RejectTraceOptions()); err != nil {
		return nil, nil, err
	}
	report := &Report{Trace: "Nomad cluster"}
	dump, err := readNomad(src, report)
	if err != nil {
		return nil, report, err
	}
	w := &nomadWriter{dump: dump, report: report, file: &scenario.File{Version: 1}}
	w.write()
	w.file.Name = cmp.Or(opts.Name, "nomad")
	if err := w.check(); err != nil {
		return nil, report, &FileError{File: strings.Join(report.Files, ", "), Err: err}
	}
	return w.file, report, nil
}

// nomadWriter converts a dump into a scenario.
type nomadWriter struct {
	dump   *nomadDump
	report *Report
	file   *scenario.File

	now           int64                      // time of the dump in Unix nanoseconds; 0 if unknown
	names         map[string]string          // node names by id
	hasAttributes bool                       // some node has attributes
	live          map[groupKey][]*nomadAlloc // by group, ascending by creation and id
	done          map[groupKey]int           // number of completed allocations
}

// groupKey identifies a group of a job.
type groupKey struct {
	job   model.JobKey
	group string
}

func (w *nomadWriter) write() {
	w.config()
	if len(w.dump.allocs) == 0 {
		w.report.Note(1, "dump without allocations (/v1/allocations?resources=true)", "imported without running allocations")
	}
	w.nodes()
	w.allocations()
	jobs := w.jobs()
	w.writeJobs(jobs)
	w.raiseCapacities()
	for _, namespace := range slices.Sorted(maps.Keys(w.namespaces(jobs))) {
		w.file.Namespaces = append(w.file.Namespaces, scenario.Namespace{Name: namespace})
	}
	w.escapeNames()
	w.file.Description = "a Nomad cluster"
	if w.now > 0 {
		w.file.Description += " as it was at " + time.Unix(0, w.now).UTC().Format("2006-01-02 15:04:05 MST")
	}
}

// check returns an error if the dump has no usable nodes or the scenario is invalid.
func (w *nomadWriter) check() error {
	if len(w.dump.nodes) == 0 {
		return errors.New("the dump has no nodes; add the output of `nomad operator api '/v1/nodes?resources=true'` writes")
	}
	if len(w.file.Nodes) == 0 {
		return errors.New("no node in the dump has resources; make the list with `nomad operator api '/v1/nodes?resources=true'`")
	}
	if err := w.file.Validate(); err != nil {
		return fmt.Errorf("the resulting scenario is invalid: %w", err)
	}
	return nil
}

// config sets the scheduler configuration, if the dump contains it.
func (w *nomadWriter) config() {
	w.file.Scheduler.Policy = nomadPolicy
	c := w.dump.config
	if c == nil {
		w.report.Note(1, "scheduler configuration is not in the dump (/v1/operator/scheduler/configuration)", "defaults: binpack, and preemption for all types")
		return
	}
	w.file.Scheduler.Algorithm = c.SchedulerAlgorithm
	p := c.PreemptionConfig
	w.file.Scheduler.Preemption = &scenario.Preemption{
		Service: &scenario.PreemptionMode{On: p.ServiceSchedulerEnabled}, Batch: &scenario.PreemptionMode{On: p.BatchSchedulerEnabled},
		System: &scenario.PreemptionMode{On: p.SystemSchedulerEnabled}, SysBatch: &scenario.PreemptionMode{On: p.SysBatchSchedulerEnabled},
	}
}

// nodes adds the nodes, under their names if those are unique.
func (w *nomadWriter) nodes() {
	named := map[string]int{}
	for _, n := range w.dump.nodes {
		named[n.Name]++
		if n.ID != n.Name {
			named[n.ID]++
		}
		w.hasAttributes = w.hasAttributes || len(n.Attributes) > 0
	}
	w.names = map[string]string{}
	slices.SortFunc(w.dump.nodes, func(a, b *nomadNode) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	for _, n := range w.dump.nodes {
		w.report.NodesRead++
		switch {
		case n.NodeResources == nil:
			w.report.Note(1, "nodes without resources (list them with ?resources=true)", "left out")
			continue
		case n.Status == "down":
			w.report.Note(1, "nodes that are down", "left out")
			continue
		}
		id := n.ID
		if n.Name != "" && named[n.Name] == 1 {
			id = n.Name
		}
		w.names[n.ID] = id
		w.file.Nodes = append(w.file.Nodes, w.node(id, n))
	}
	w.report.Nodes = len(w.file.Nodes)
	if !w.hasAttributes {
		w.report.Note(len(w.file.Nodes), "nodes without attributes (lists have none; /v1/node/ID has)", "constraints on attributes are left out")
	}
}

// ineligible is the taint of draining and ineligible nodes.
const ineligible = "nomad/ineligible"

func (w *nomadWriter) node(id string, n *nomadNode) scenario.Node {
	r := n.NodeResources
	node := scenario.Node{
		ID: id, Datacenter: n.Datacenter, Class: n.NodeClass,
		Capacity:   scenario.Quantities{"cpu": r.Cpu.CpuShares, "memory": r.Memory.MemoryMB, "disk": r.Disk.DiskMB},
		Attributes: map[string]string{},
	}
	maps.Copy(node.Attributes, n.Meta)
	maps.Copy(node.Attributes, n.Attributes)
	maps.DeleteFunc(node.Attributes, func(name, _ string) bool { return name == "" || holdsName(name) }) // metadata has any name
	if n.NodePool != "" {
		node.Attributes[nodePool] = n.NodePool
	}
	if k := n.ReservedResources; k != nil {
		node.Reserved = scenario.Quantities{
			"cpu": min(k.Cpu.CpuShares, r.Cpu.CpuShares), "memory": min(k.Memory.MemoryMB, r.Memory.MemoryMB), "disk": min(k.Disk.DiskMB, r.Disk.DiskMB),
		}
		node.Ports = nomadPorts(k.Networks.ReservedHostPorts)
	}
	for _, d := range r.Devices {
		healthy := 0
		for _, i := range d.Instances {
			if i.Healthy {
				healthy++
			}
		}
		if healthy > 0 {
			node.Devices = append(node.Devices, scenario.Device{ID: d.id(), Count: int32(healthy)})
		}
	}
	n.fill(&node)
	if n.Drain || n.SchedulingEligibility == ineligibleWord {
		node.Taints = append(node.Taints, scenario.Taint{Key: ineligible, Effect: string(model.NoSchedule)})
		w.report.Note(1, "draining and ineligible nodes", "running allocations stay; taint "+ineligible)
	}
	return node
}

const (
	ineligibleWord = "ineligible"
	nodePool       = "node.pool"
)

// allocations selects the running allocations.
func (w *nomadWriter) allocations() {
	w.live, w.done = map[groupKey][]*nomadAlloc{}, map[groupKey]int{}
	for _, a := range w.dump.allocs {
		w.now = max(w.now, a.CreateTime, a.ModifyTime)
		key := groupKey{model.JobKey{Namespace: cmp.Or(a.Namespace, model.DefaultNamespace), ID: a.JobID}, a.TaskGroup}
		switch {
		case a.ClientStatus == "complete" && a.DesiredStatus == "run":
			w.done[key]++
		case a.ClientStatus != "running" && a.ClientStatus != "pending": // terminal
		case a.DesiredStatus != "run":
			w.report.TasksRead++
			w.report.LeaveOut(1, "terminating allocations")
		case w.names[a.NodeID] == "":
			w.report.TasksRead++
			w.report.LeaveOut(1, "allocations on nodes that are down or not in the dump")
		default:
			w.live[key] = append(w.live[key], a)
		}
	}
	for _, list := range w.live {
		slices.SortFunc(list, func(a, b *nomadAlloc) int {
			return cmp.Or(cmp.Compare(a.CreateTime, b.CreateTime), cmp.Compare(a.ID, b.ID))
		})
	}
}

// namespaces returns the namespaces of the jobs.
func (w *nomadWriter) namespaces(jobs []*importedJob) map[string]bool {
	all := map[string]bool{}
	for _, j := range jobs {
		all[j.key.Namespace] = true
	}
	return all
}

// writeJobs adds the jobs, their running allocations, and a submit event for each job
// with pending instances.
func (w *nomadWriter) writeJobs(jobs []*importedJob) {
	ids := map[string]int{}
	for _, j := range jobs {
		ids[j.key.ID]++
	}
	for _, j := range jobs {
		j.job.ID = j.key.ID
		if ids[j.key.ID] > 1 { // in several namespaces
			for ids[j.job.ID] > 0 {
				j.job.ID = j.key.Namespace + "." + j.job.ID
			}
			ids[j.job.ID]++
		}
		waiting := 0
		for i := range j.job.Groups {
			g := &j.job.Groups[i]
			list := w.live[groupKey{j.key, g.Name}]
			for _, a := range list {
				w.file.Running = append(w.file.Running, scenario.Running{
					ID: a.ID, Job: j.job.ID, Group: g.Name, Node: w.names[a.NodeID], StartedAt: scenario.Duration(a.CreateTime - w.now),
				})
			}
			waiting += max(0, *g.Count-len(list))
			w.report.Tasks, w.report.Running = w.report.Tasks+max(*g.Count, len(list)), w.report.Running+len(list)
			w.report.Groups++
		}
		w.file.Jobs = append(w.file.Jobs, j.job)
		if waiting > 0 {
			w.file.Events = append(w.file.Events, scenario.Event{Submit: j.job.ID})
		}
	}
	w.report.TasksRead += w.report.Tasks
	w.report.Jobs = len(w.file.Jobs)
}

// groupName identifies a group by its names in the scenario.
type groupName struct{ job, group string }

// raiseCapacities raises the capacity of nodes on which allocations request more than the
// node has, because a scenario in which they do not fit is not valid. This happens in
// Nomad: an allocation of an earlier version of its job has the request of the current
// version in the scenario, and the capacity that a node detects may shrink.
func (w *nomadWriter) raiseCapacities() {
	requests := map[groupName]scenario.Quantities{}
	for i := range w.file.Jobs {
		for k := range w.file.Jobs[i].Groups {
			g := &w.file.Jobs[i].Groups[k]
			requests[groupName{w.file.Jobs[i].ID, g.Name}] = g.Resources
		}
	}
	used := map[string]scenario.Quantities{}
	for i := range w.file.Running {
		r := &w.file.Running[i]
		if used[r.Node] == nil {
			used[r.Node] = scenario.Quantities{}
		}
		for resource, amount := range requests[groupName{r.Job, r.Group}] {
			used[r.Node][resource] += amount
		}
	}
	for i := range w.file.Nodes {
		if raise(&w.file.Nodes[i], used[w.file.Nodes[i].ID]) {
			w.report.Note(1, "nodes with requests beyond their capacity", "raised to the requests")
		}
	}
}

// raise raises the capacity of a node to amounts beside those that are reserved, and
// reports whether it was too small.
func raise(n *scenario.Node, amounts scenario.Quantities) (raised bool) {
	for resource, amount := range amounts {
		if needed := amount + n.Reserved[resource]; needed > n.Capacity[resource] {
			n.Capacity[resource] = needed
			raised = true
		}
	}
	return raised
}
