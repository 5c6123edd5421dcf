package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// kubePolicy is the policy of an imported Kubernetes cluster.
const kubePolicy = "kubernetes"

// Kube imports a dump of a Kubernetes cluster. See the package documentation.
func Kube(opts Options, src Source) (*scenario.File, *Report, error) {
	if err := errors.Join(opts.Validate(), opts.rejectTraceOptions()); err != nil {
		return nil, nil, err
	}
	report := &Report{Trace: "Kubernetes cluster"}
	dump, err := readDump(opts, src, report)
	if err != nil {
		return nil, report, err
	}
	f, err := translateDump(opts, dump, report)
	if err != nil {
		err = &FileError{File: strings.Join(report.Files, ", "), Err: err}
	}
	return f, report, err
}

// KubeDump imports the objects of a Kubernetes cluster that were read from its API
// server.
func KubeDump(name string, dump *kube.Dump) (*scenario.File, *Report, error) {
	report := &Report{Trace: "Kubernetes cluster"}
	f, err := translateDump(Options{Name: name}, dump, report)
	return f, report, err
}

// translateDump returns the scenario of a dump, and completes the report.
func translateDump(opts Options, dump *kube.Dump, report *Report) (*scenario.File, error) {
	cluster, err := kube.Translate(dump)
	if err != nil {
		all := []error{fmt.Errorf("%w; %s", err, hint(dump))}
		for _, e := range dump.Invalid {
			all = append(all, e)
		}
		return nil, errors.Join(all...)
	}
	if wrong := cluster.InvalidValues(); opts.Strict && wrong != nil {
		return nil, wrong
	}
	f := kubeFile(cluster)
	f.Name = cmp.Or(opts.Name, "kube")
	f.Description = "a Kubernetes cluster"
	if !cluster.Time.IsZero() {
		f.Description += " as it was at " + cluster.Time.UTC().Format("2006-01-02 15:04:05 MST")
	}
	fillReport(report, dump, cluster, f)
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("the resulting scenario is invalid: %w", err)
	}
	return f, nil
}

// hint returns the next step if no cluster can be built from a dump.
func hint(d *kube.Dump) string {
	const make = "make the dump with `kubectl get nodes,pods,pdb,priorityclasses,namespaces -A -o json`"
	if len(d.Workloads) > 0 {
		return make + "; to see the effect of manifests on a cluster, run `cede compare SCENARIO -p POLICY --what-if FILE`"
	}
	return make
}

// rejectTraceOptions returns an error if an option selects a part of a trace.
func (o *Options) rejectTraceOptions() error {
	all := *o
	all.Name, all.Strict = "", false
	if len(all.selection("")) == 0 && len(o.Bands) == 0 && o.NeverRan == NeverRanDefault && !o.WholeGPUs && !o.RawPriority {
		return nil
	}
	return errors.New("a dump of a cluster is imported completely: only the options name and strict apply")
}

// readDump reads the named file, or every dump in a folder.
func readDump(opts Options, src Source, report *Report) (*kube.Dump, error) {
	files := []string{src.File}
	if src.File == "" {
		files = src.match("*.json", "*.yaml", "*.yml")
		if len(files) == 0 {
			return nil, fmt.Errorf("no .json, .yaml or .yml file in this folder (found: %s)", src.listing())
		}
	}
	report.Files = files
	src.expect(files...)
	var readers []io.Reader
	for _, name := range files {
		f, err := src.openFile(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // opened for reading
		readers = append(readers, f)
	}
	read := kube.ReadPartial
	if opts.Strict {
		read = kube.Read
	}
	dump, err := read(readers...)
	if err != nil {
		return nil, unreadableFiles(src, files, err, read)
	}
	if len(dump.InvalidFiles) > 0 {
		var all []error
		for _, e := range dump.Invalid {
			all = append(all, e)
		}
		return nil, unreadableFiles(src, files, errors.Join(all...), kube.Read)
	}
	for _, e := range dump.Invalid {
		report.Unread = append(report.Unread, Unread{File: files[e.File], Line: e.Line, Object: e.Describe(), Reason: e.Err.Error()})
	}
	report.Lost = dump.InvalidCount
	report.note(dump.UnterminatedLists, "lists without the trailing kind that kubectl writes", "read to their end; they may be truncated")
	return dump, nil
}

// unreadableFiles returns an error that names each unreadable file. It reads each file
// again on its own.
func unreadableFiles(src Source, files []string, err error, read func(...io.Reader) (*kube.Dump, error)) error {
	if len(files) == 1 {
		return &FileError{File: files[0], Err: err}
	}
	var blamed *FileError
	var more []error
	for _, name := range files {
		f, openErr := src.FS.Open(name)
		if openErr != nil {
			return openErr
		}
		_, alone := read(f)
		_ = f.Close() // opened for reading
		switch {
		case alone == nil:
		case blamed == nil:
			blamed = &FileError{File: name, Err: alone}
		default:
			more = append(more, &FileError{File: name, Err: alone})
		}
	}
	if blamed == nil {
		return &FileError{File: strings.Join(files, ", "), Err: err}
	}
	blamed.Err = errors.Join(slices.Insert(more, 0, blamed.Err)...)
	return blamed
}

// fillReport completes the report.
func fillReport(r *Report, d *kube.Dump, c *kube.Cluster, f *scenario.File) {
	r.NodesRead, r.Nodes = len(d.Nodes), len(f.Nodes)
	r.TasksRead, r.Tasks, r.Jobs = c.PodsRead, c.PodsTranslated, len(f.Jobs)
	r.Running, r.Budgets = len(f.Running), len(f.Budgets)
	for i := range f.Jobs {
		r.Groups += len(f.Jobs[i].Groups)
	}
	for _, n := range c.Report.List {
		r.add(n.Count, n.Subject, n.Handling, n.Skipped)
	}
}

// kubeFile returns a cluster as a scenario.
func kubeFile(c *kube.Cluster) *scenario.File {
	f := &scenario.File{Version: 1, Scheduler: scenario.Scheduler{Algorithm: string(model.SpreadRank), Policy: kubePolicy}}
	for _, name := range c.Namespaces {
		f.Namespaces = append(f.Namespaces, scenario.Namespace{Name: name})
	}
	classes := map[string]bool{}
	for _, k := range c.Classes {
		classes[k.Name] = true
		f.Classes = append(f.Classes, scenario.PriorityClass{
			Name: k.Name, Value: k.Value, GlobalDefault: k.GlobalDefault,
			PreemptionPolicy: preemptionPolicy(k.NeverPreempts), Description: k.Description,
		})
	}
	for _, n := range c.Nodes {
		f.Nodes = append(f.Nodes, nodeOf(n))
	}
	for _, j := range c.Jobs {
		f.Jobs = append(f.Jobs, jobOf(j.Job, classes))
	}
	for _, b := range c.Budgets {
		f.Budgets = append(f.Budgets, scenario.Budget{
			Name: b.Name, Namespace: b.Namespace, Labels: b.Labels,
			MinAvailable: (*scenario.Bound)(b.MinAvailable), MaxUnavailable: (*scenario.Bound)(b.MaxUnavailable),
		})
	}
	for _, i := range c.Instances {
		f.Running = append(f.Running, scenario.Running{
			ID: i.ID, Job: i.Job.ID, Group: i.Group.Name, Node: i.Node, StartedAt: scenario.Duration(i.Started),
		})
	}
	f.Events = kubeEvents(c.Jobs)
	return f
}

// kubeEvents returns the events at the start: terminating pods are stopped and pending
// ones submitted, in the order in which kube-scheduler takes pods of equal priority.
func kubeEvents(jobs []*kube.Job) []scenario.Event {
	var events []scenario.Event
	var waiting []*kube.Job
	for _, j := range jobs {
		switch {
		case j.Terminating:
			events = append(events, scenario.Event{Stop: j.ID})
		case j.Pending > 0:
			waiting = append(waiting, j)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *kube.Job) int {
		if a.HasNominated != b.HasNominated {
			if a.HasNominated {
				return -1
			}
			return 1
		}
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	for _, j := range waiting {
		events = append(events, scenario.Event{Submit: j.ID})
	}
	return events
}

func preemptionPolicy(never bool) string {
	if never {
		return "Never"
	}
	return ""
}

// nodeOf returns a node in the form of a scenario.
func nodeOf(n *model.Node) scenario.Node {
	node := scenario.Node{ID: n.ID, Capacity: scenario.Quantities(n.Capacity), Attributes: n.Attributes}
	for _, d := range n.Devices {
		node.Devices = append(node.Devices, scenario.Device{ID: d.ID, Count: d.Count, Attributes: d.Attributes})
	}
	for _, t := range n.Taints {
		node.Taints = append(node.Taints, scenario.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return node
}

// jobOf returns a job in the form of a scenario. Classes holds the names of the
// scenario's priority classes.
func jobOf(j *model.Job, classes map[string]bool) scenario.Job {
	job := scenario.Job{
		ID: j.ID, Namespace: j.Namespace, Type: j.Type.String(), AllAtOnce: j.AllAtOnce, Datacenters: j.Datacenters, Policy: j.Policy,
	}
	if j.NonPreemptible {
		job.Preemptible = new(false)
	}
	if j.AllOrNone {
		job.DisruptionMode = "all"
	}
	if t := j.Toleration; t != nil {
		job.Toleration = &scenario.PreemptionToleration{MinPreemptorPriority: t.MinPreemptorPriority, MinRuntime: scenario.Duration(t.MinRuntime)}
	}
	if j.PriorityClass != "" && classes[j.PriorityClass] {
		job.PriorityClass = j.PriorityClass
	} else {
		job.Priority, job.PreemptionPolicy = new(j.Priority), preemptionPolicy(j.NeverPreempts)
	}
	for _, g := range j.Groups {
		job.Groups = append(job.Groups, groupOf(g))
	}
	return job
}

func groupOf(g *model.Group) scenario.Group {
	group := scenario.Group{
		Name: g.Name, Count: new(g.Count), MinCount: g.MinCount, Resources: scenario.Quantities(g.Resources), Ports: g.Ports, Labels: g.Labels,
		Constraints: constraintsOf(g.Constraints), KillTimeout: scenario.Duration(g.KillTimeout),
		Colocate: termsOf(g.Colocate), Separate: termsOf(g.Separate),
		Duration: scenario.Duration(g.Duration), Checkpoint: scenario.Duration(g.Checkpoint), Annotations: g.Annotations,
	}
	if g.MaxParallelEvictions != 1 {
		group.MaxParallelEvictions = new(g.MaxParallelEvictions)
	}
	for _, d := range g.Devices {
		group.Devices = append(group.Devices, scenario.DeviceRequest{ID: d.ID, Count: new(d.Count), Constraints: constraintsOf(d.Constraints)})
	}
	if d := g.Disconnect; d != nil {
		group.Disconnect = &scenario.Disconnect{Replace: new(d.Replace)}
		if d.LostAfter > 0 {
			group.Disconnect.LostAfter = new(scenario.Duration(d.LostAfter))
		}
	}
	for _, t := range g.Tolerations {
		group.Tolerations = append(group.Tolerations, scenario.Toleration{
			Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect), For: scenario.Duration(t.For),
		})
	}
	for i := range g.Affinities {
		a := &g.Affinities[i]
		group.Affinities = append(group.Affinities, scenario.Affinity{Constraint: constraintOf(&a.Constraint), Weight: a.Weight})
	}
	for _, s := range g.Spread {
		spread := scenario.Spread{Attribute: s.Attribute, Weight: new(s.Weight), Targets: s.Targets}
		if s.MaxSkew > 0 {
			spread.MaxSkew = new(s.MaxSkew)
		}
		group.Spread = append(group.Spread, spread)
	}
	return group
}

func constraintsOf(list []model.Constraint) []scenario.Constraint {
	var written []scenario.Constraint
	for i := range list {
		written = append(written, constraintOf(&list[i]))
	}
	return written
}

func constraintOf(c *model.Constraint) scenario.Constraint {
	return scenario.Constraint{Attribute: c.Attribute, Operator: string(c.Operator), Value: c.Value, Values: c.Values}
}

func termsOf(list []model.LabelTerm) []scenario.LabelTerm {
	var written []scenario.LabelTerm
	for _, t := range list {
		written = append(written, scenario.LabelTerm{Labels: t.Labels, TopologyKey: t.TopologyKey})
	}
	return written
}
