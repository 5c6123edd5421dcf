package kuberec

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/internal/plainjson"
	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// policyName and algorithm are those of an imported Kubernetes cluster.
const policyName = "kubernetes"

// maxTime bounds the time of an event: longer than any recording, and valid in a scenario.
const maxTime = 30 * 365 * 24 * time.Hour

// A recording collects the lives of the objects of a cluster.
type recording struct {
	*build.Builder
	dump  kube.Dump // nodes and classes
	nodes map[string]bool
	lives []*life
	live  map[string]*life // of the objects that exist, by kind and name
	ids   map[string]int   // uses of each job ID
	other map[string]int   // objects of other kinds
	pods  int
}

// A life is one pod or workload from its creation to its deletion.
type life struct {
	pod      *kube.Pod      // nil for a workload
	workload *kube.Workload // nil for a pod
	created  time.Duration
	bound    time.Duration // -1: it never had a node
	ended    time.Duration // -1: its containers did not end
	deleted  time.Duration // -1: it was not deleted
	duration time.Duration // mean lifetime of the pods of a workload; 0: unknown
}

func newRecording(format, title, stem string, opts build.Options) (*recording, error) {
	b, err := build.New(format, title, stem, opts)
	if err != nil {
		return nil, err
	}
	b.File.Scheduler = scenario.Scheduler{Algorithm: string(model.SpreadRank), Policy: policyName}
	return &recording{Builder: b, nodes: map[string]bool{}, live: map[string]*life{}, ids: map[string]int{}, other: map[string]int{}}, nil
}

// object holds the fields that identify an object.
type object struct {
	Kind     string        `json:"kind"`
	Metadata kube.Metadata `json:"metadata"`
}

func (o *object) key() string { return o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name }

// apply processes an object that was created or replaced.
func (r *recording) apply(at time.Duration, text []byte) error {
	var o object
	if err := plainjson.Unmarshal(text, &o); err != nil {
		return fmt.Errorf("not a Kubernetes object: %w", err)
	}
	if o.Kind == "" || o.Metadata.Name == "" {
		return errors.New("not a Kubernetes object: kind and metadata.name are required")
	}
	switch o.Kind {
	case "Node":
		return r.applyNode(&o, text)
	case "PriorityClass":
		var k kube.PriorityClass
		if err := plainjson.Unmarshal(text, &k); err != nil {
			return fmt.Errorf("PriorityClass %s: %w", o.Metadata.Name, err)
		}
		r.dump.Classes = append(r.dump.Classes, &k)
		return nil
	case "Pod":
		return r.applyPod(at, &o, text)
	case "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job":
		return r.applyWorkload(at, &o, text)
	}
	r.other[o.Kind]++
	return nil
}

func (r *recording) applyNode(o *object, text []byte) error {
	if r.nodes[o.Metadata.Name] {
		r.Report.Note(1, "changes of nodes", "the first state of a node applies")
		return nil
	}
	var n kube.Node
	if err := plainjson.Unmarshal(text, &n); err != nil {
		return fmt.Errorf("node %s: %w", o.Metadata.Name, err)
	}
	r.nodes[o.Metadata.Name] = true
	r.dump.Nodes = append(r.dump.Nodes, &n)
	return nil
}

func (r *recording) applyPod(at time.Duration, o *object, text []byte) error {
	l := r.live[o.key()]
	if l == nil || o.Metadata.UID != "" && l.pod.Metadata.UID != "" && o.Metadata.UID != l.pod.Metadata.UID {
		var p kube.Pod
		if err := plainjson.Unmarshal(text, &p); err != nil {
			return fmt.Errorf("pod %s: %w", o.Metadata.Name, err)
		}
		l = &life{pod: &p, created: at, bound: -1, ended: -1, deleted: -1}
		r.lives, r.live[o.key()] = append(r.lives, l), l
		r.pods++
	}
	return r.changePod(l, at, text)
}

// podChange holds the fields of a pod that change during its life.
type podChange struct {
	Metadata struct {
		DeletionTimestamp string `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// changePod processes a state of a pod, or the part of it that changed.
func (r *recording) changePod(l *life, at time.Duration, text []byte) error {
	var c podChange
	if err := plainjson.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("pod %s: %w", l.pod.Metadata.Name, err)
	}
	if c.Spec.NodeName != "" && l.bound < 0 {
		l.bound = at
	}
	if c.Metadata.DeletionTimestamp != "" && l.deleted < 0 {
		l.deleted = at
	}
	if (c.Status.Phase == "Succeeded" || c.Status.Phase == "Failed") && l.ended < 0 {
		l.ended = at
	}
	return nil
}

func (r *recording) applyWorkload(at time.Duration, o *object, text []byte) error {
	for _, owner := range o.Metadata.Owners {
		if owner.Controller {
			return nil // the owner is the workload
		}
	}
	var w kube.Workload
	if err := plainjson.Unmarshal(text, &w); err != nil {
		return fmt.Errorf("%s %s: %w", o.Kind, o.Metadata.Name, err)
	}
	w.Kind = o.Kind
	l := r.live[o.key()]
	if l == nil {
		l = &life{workload: &w, created: at, bound: -1, ended: -1, deleted: -1}
		r.lives, r.live[o.key()] = append(r.lives, l), l
		return nil
	}
	was, is := l.workload.Spec.Replicas, w.Spec.Replicas
	if was != nil && is != nil && *was != *is {
		r.Report.Note(1, "changes of the replicas of a workload", "the largest number applies to its whole life")
		if *is > *was {
			l.workload.Spec.Replicas = is
		}
	}
	return nil
}

// patch processes a change of an object that exists.
func (r *recording) patch(at time.Duration, o *object, text []byte) error {
	l := r.live[o.key()]
	switch {
	case l == nil && (o.Kind == "Pod" || o.Kind == "Node") && !r.nodes[o.Metadata.Name]:
		return fmt.Errorf("%s %s/%s is changed before it is created", o.Kind, o.Metadata.Namespace, o.Metadata.Name)
	case l == nil && o.Kind == "Node":
		r.Report.Note(1, "changes of nodes", "the first state of a node applies")
	case l == nil:
		r.other[o.Kind]++
	case l.pod != nil:
		return r.changePod(l, at, text)
	default:
		var change struct {
			Spec struct {
				Replicas *int32 `json:"replicas"`
			} `json:"spec"`
		}
		if err := plainjson.Unmarshal(text, &change); err != nil {
			return fmt.Errorf("%s %s: %w", o.Kind, o.Metadata.Name, err)
		}
		if n := change.Spec.Replicas; n != nil {
			r.Report.Note(1, "changes of the replicas of a workload", "the largest number applies to its whole life")
			if old := l.workload.Spec.Replicas; old == nil || *n > *old {
				l.workload.Spec.Replicas = n
			}
		}
	}
	return nil
}

// remove processes the deletion of an object.
func (r *recording) remove(at time.Duration, o *object) {
	if o.Kind == "Node" {
		r.Report.Note(1, "nodes that were deleted", "they stay until the end")
		return
	}
	if l := r.live[o.key()]; l != nil {
		if l.deleted < 0 {
			l.deleted = at
		}
		delete(r.live, o.key())
	}
}

// finish translates the objects and completes the scenario.
func (r *recording) finish(noNodes string) (*scenario.File, *build.Report, error) {
	if len(r.dump.Nodes) == 0 {
		return nil, r.Report, r.FilesError(errors.New(noNodes))
	}
	cluster, err := kube.Translate(&r.dump)
	if err != nil {
		return nil, r.Report, r.FilesError(err)
	}
	if hasQuantity, err := cluster.InvalidValues(); hasQuantity {
		return nil, r.Report, r.FilesError(err)
	}
	lives, jobs, err := r.jobs(cluster)
	if err != nil {
		return nil, r.Report, r.FilesError(err)
	}
	classes := map[string]bool{}
	for _, k := range cluster.Classes {
		classes[k.Name] = true
		r.File.Classes = append(r.File.Classes, build.Class(k))
	}
	for _, n := range cluster.Nodes {
		r.Node(build.Node(n))
	}
	if err := r.Shrink(); err != nil {
		return nil, r.Report, err
	}
	for i, l := range lives {
		r.submit(l, jobs[i], classes)
	}
	for kind, n := range r.other {
		r.Report.Note(n, "objects of kind "+kind, "not imported")
	}
	return r.Finish()
}

// jobs translates the pods, or the workloads if there are none. The jobs are in the order of
// the lives.
func (r *recording) jobs(cluster *kube.Cluster) ([]*life, []*model.Job, error) {
	var lives []*life
	work := kube.Dump{Classes: r.dump.Classes}
	for _, l := range r.lives {
		switch {
		case l.pod != nil:
			// The node is the decision that a replay makes again.
			one := *l.pod
			one.Spec.NodeName = ""
			work.Pods, lives = append(work.Pods, &one), append(lives, l)
		case r.pods == 0:
			work.Workloads, lives = append(work.Workloads, l.workload), append(lives, l)
		default:
			r.other[l.workload.Kind]++
		}
	}
	report := &kube.Report{}
	t := kube.NewTranslator(cluster.Nodes, report)
	jobs, err := t.JobsOf(&work, nil)
	if err != nil {
		return nil, nil, invalidWork(cluster, &work, err)
	}
	for _, j := range jobs {
		for _, g := range j.Groups {
			g.Labels = t.Label(j.Namespace, g.Labels)
		}
	}
	for _, n := range report.List {
		r.Report.Add(n.Count, n.Subject, n.Handling, false)
	}
	return lives, jobs, nil
}

// invalidWork returns an error that lists each object that cannot be translated.
func invalidWork(cluster *kube.Cluster, work *kube.Dump, err error) error {
	const most = 20
	var all []error
	t := kube.NewTranslator(cluster.Nodes, &kube.Report{})
	try := func(d kube.Dump) {
		if len(all) < most {
			d.Classes = work.Classes
			if _, err := t.JobsOf(&d, nil); err != nil {
				all = append(all, err)
			}
		}
	}
	for _, p := range work.Pods {
		try(kube.Dump{Pods: []*kube.Pod{p}})
	}
	for _, w := range work.Workloads {
		try(kube.Dump{Workloads: []*kube.Workload{w}})
	}
	if len(all) == 0 {
		return err
	}
	return errors.Join(all...)
}

func (r *recording) submit(l *life, j *model.Job, classes map[string]bool) {
	j.ID = r.jobID(j)
	job := build.Job(j, classes)
	tasks := 0
	for _, g := range j.Groups {
		tasks += g.Count
	}
	r.Report.TasksRead += tasks
	if !build.Sampled(j.ID, r.Opts.Sample) {
		r.Report.LeaveOut(tasks, "tasks outside the sample")
		return
	}
	if !r.InWindow(l.created, tasks) {
		return
	}
	w := build.Submission{At: l.created, Job: job}
	if l.created == 0 && l.bound == 0 {
		r.Report.Note(tasks, "pods that ran when the recording started", "submitted at its start; the replay places them again")
	}
	switch {
	case l.bound < 0 && l.pod != nil && l.deleted >= 0 && r.Opts.NeverRan == build.NeverRanDrop:
		r.Report.LeaveOut(tasks, "pods that never had a node")
		return
	case l.duration > 0:
		r.setDuration(&w.Job, l.duration)
	case l.pod != nil && l.ended >= 0 && l.bound >= 0:
		r.setDuration(&w.Job, l.ended-l.bound)
	case l.deleted >= 0:
		w.Quits = max(l.deleted, w.At+time.Second)
	}
	r.Submit(w)
}

// setDuration makes a job one that ends by itself.
func (r *recording) setDuration(j *scenario.Job, d time.Duration) {
	if d < time.Second {
		r.Report.Note(1, "pods that ran for less than a second", "duration 1s")
		d = time.Second
	}
	if j.Type == model.JobService.String() {
		j.Type = model.JobBatch.String()
	}
	for i := range j.Groups {
		j.Groups[i].Duration = scenario.Duration(d)
	}
}

// jobID returns an unused ID. Pods of a StatefulSet have the same name again after each
// restart.
func (r *recording) jobID(j *model.Job) string {
	id := build.CleanName(j.ID)
	if ns := cmp.Or(j.Namespace, model.DefaultNamespace); ns != model.DefaultNamespace {
		id = build.CleanName(strings.Join([]string{ns, j.ID}, "."))
	}
	for {
		r.ids[id]++
		n := r.ids[id]
		if n == 1 {
			return id
		}
		// The number of uses advances, so that equal names cost constant time.
		id += "-" + strconv.Itoa(n)
	}
}
