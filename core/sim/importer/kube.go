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
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// kubePolicy is the policy of an imported Kubernetes cluster.
const kubePolicy = "kubernetes"

// Kube imports a dump of a Kubernetes cluster. See the package documentation.
func Kube(opts Options, src Source) (*scenario.File, *Report, error) {
	if err := errors.Join(opts.Validate(), opts.RejectTraceOptions()); err != nil {
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
	// With an amount of 0, a node would offer nothing, and a pod would fit everywhere.
	if hasQuantity, wrong := cluster.InvalidValues(); wrong != nil && (opts.Strict || hasQuantity) {
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

// readDump reads the named file, or every dump in a folder.
func readDump(opts Options, src Source, report *Report) (*kube.Dump, error) {
	files := []string{src.File}
	if src.File == "" {
		files = src.Match("*.json", "*.yaml", "*.yml")
		if len(files) == 0 {
			return nil, fmt.Errorf("no .json, .yaml or .yml file in this folder (found: %s)", src.Listing())
		}
	}
	report.Files = files
	src.Expect(files...)
	var readers []io.Reader
	for _, name := range files {
		f, err := src.Open(name)
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
	report.Note(dump.UnterminatedLists, "lists without the trailing kind that kubectl writes", "read to their end; they may be truncated")
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
		f, openErr := src.Open(name)
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
		r.Add(n.Count, n.Subject, n.Handling, n.Skipped)
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
		f.Classes = append(f.Classes, build.Class(k))
	}
	for _, n := range c.Nodes {
		f.Nodes = append(f.Nodes, build.Node(n))
	}
	for _, j := range c.Jobs {
		f.Jobs = append(f.Jobs, build.Job(j.Job, classes))
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
