package kube

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/suggest"
)

// ErrNoWorkload means that a manifest contains neither a pod nor a workload.
var ErrNoWorkload = errors.New("no Pod, Deployment, StatefulSet, ReplicaSet, DaemonSet or Job found")

// rejectDuplicates returns an error if an object occurs twice: the result would cover
// one of the two only.
func (d *Dump) rejectDuplicates() error {
	var all []error
	for _, r := range d.Duplicates {
		all = append(all, fmt.Errorf("%s is defined twice, at line %d and at line %d; give each object a unique name", r.Object, r.First, r.Again))
	}
	return errors.Join(all...)
}

// JobsOf translates manifests into jobs: one per pod and one per workload. Priorities
// are resolved by the classes in the dump first, then by the given classes. It
// returns ErrNoWorkload if there is nothing to translate.
func (t *Translator) JobsOf(d *Dump, known []*PriorityClass) ([]*model.Job, error) {
	classes := map[string]*PriorityClass{}
	for _, list := range [][]*PriorityClass{known, d.Classes} {
		for _, k := range list {
			classes[k.Metadata.Name] = k
		}
	}
	if len(d.Pods)+len(d.Workloads) == 0 {
		return nil, ErrNoWorkload
	}
	if err := d.rejectDuplicates(); err != nil {
		return nil, err
	}
	for _, p := range d.Pods {
		p.selectors(func(s *LabelSelector, _ []string) { s.keys(func(key string) { t.readLabels[key] = true }) })
	}
	t.ports.reserve(d.Pods)
	t.claimed.add(&d.Devices)
	m := &manifestJobs{Translator: t, classes: classes, podGroups: d.PodGroups, byGroup: map[*PodGroup]*model.Job{}}
	var problems []error
	for _, p := range d.Pods {
		problems = append(problems, m.add(p, owner{kind: kindBare, name: p.Metadata.Name, group: "pod"}, 1))
	}
	for _, w := range d.Workloads {
		count, err := w.count()
		p := &Pod{Metadata: w.Spec.Template.Metadata, Spec: w.Spec.Template.Spec}
		p.Metadata.Name, p.Metadata.Namespace = w.Metadata.Name, w.Metadata.Namespace
		problems = append(problems, err, m.add(p, owner{kind: w.Kind, name: w.Metadata.Name, group: "pods"}, count))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return m.jobs, nil
}

// count returns the number of pods that run at once. A DaemonSet has one per node, and a
// workload without a number has one. It returns an error if a number is negative.
func (w *Workload) count() (int, error) {
	count := 1
	var problems []error
	for _, x := range []struct {
		field  string
		number *int32
	}{{"replicas", w.Spec.Replicas}, {"parallelism", w.Spec.Parallelism}, {"completions", w.Spec.Completions}} {
		switch {
		case x.number == nil:
		case *x.number < 0:
			problems = append(problems, fmt.Errorf("%s %s: invalid %s %d; write 0 or more", w.Kind, w.Metadata.full(), x.field, *x.number))
		case x.field == "completions":
			count = min(count, int(*x.number))
		default:
			count = int(*x.number)
		}
	}
	if w.Kind == kindDaemonSet {
		count = 1
	}
	return count, errors.Join(problems...)
}

// A manifestJobs collects the jobs of manifests.
type manifestJobs struct {
	*Translator
	classes   map[string]*PriorityClass
	podGroups []*PodGroup
	byGroup   map[*PodGroup]*model.Job
	jobs      []*model.Job
}

// add adds the job of a pod or pod template. Those of one pod group form one job, with the
// priority of the group.
func (m *manifestJobs) add(p *Pod, o owner, count int) error {
	g := m.podGroup(p, &o)
	if g != nil {
		one := *p
		one.Spec.Priority, one.Spec.PriorityClassName = g.Spec.Priority, g.Spec.PriorityClassName
		one.Spec.PreemptionPolicy = cmp.Or(g.Spec.PreemptionPolicy, p.Spec.PreemptionPolicy)
		p = &one
	}
	job, err := m.jobOf(p, o, count, m.classes)
	if err != nil {
		return err
	}
	g.shareDomain(m.Translator, job.Groups[0])
	switch {
	case g == nil:
		m.jobs = append(m.jobs, job)
	case m.byGroup[g] == nil:
		job.ID, m.byGroup[g] = g.Metadata.Name, job
		job.AllOrNone, job.AllAtOnce = g.Spec.DisruptionMode.All != nil, g.Spec.SchedulingPolicy.Gang != nil
		m.jobs = append(m.jobs, job)
	default:
		existing := &Job{Job: m.byGroup[g]}
		job.Groups[0].Name = existing.unusedGroupName(job.Groups[0].Name)
		existing.Groups = append(existing.Groups, job.Groups[0])
	}
	if g != nil && g.Spec.SchedulingPolicy.Gang != nil {
		whole := &Job{Job: m.byGroup[g]}
		if int(g.Spec.SchedulingPolicy.Gang.MinCount) < whole.instances() {
			m.Report.warn("gangs with a minCount below the number of their pods", "all their pods are placed at once, or none")
		}
	}
	return nil
}

// podGroup returns the group of a pod in the manifests, or nil. Pods of DaemonSets have none.
func (m *manifestJobs) podGroup(p *Pod, o *owner) *PodGroup {
	key := p.Group()
	if key == "" || o.kind == kindDaemonSet {
		return nil
	}
	for _, g := range m.podGroups {
		if g.Key() == key {
			return g
		}
	}
	m.Report.info("pods of a pod group that the manifests do not contain", "treated as pods without a group")
	return nil
}

// jobOf returns the job of one pod or pod template.
func (t *Translator) jobOf(p *Pod, o owner, count int, classes map[string]*PriorityClass) (*model.Job, error) {
	problems := []error{t.checkAmounts(p, o.kind)}
	if name := p.Spec.PriorityClassName; name != "" && p.Spec.Priority == nil && classes[name] == nil && model.SystemClass(name) == nil {
		problems = append(problems, fmt.Errorf("%s %s: unknown priority class %q: neither the manifest nor the scenario defines it%s",
			o.kind, p.Metadata.full(), name, didYouMean(name, slices.Sorted(maps.Keys(classes)))))
	}
	if len(p.Spec.Containers) == 0 {
		problems = append(problems, fmt.Errorf("%s %s: containers are required", o.kind, p.Metadata.full()))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if p.Spec.NodeName != "" { // ignored: the caller requests a placement
		t.Report.warn("pods with a nodeName", "nodeName ignored; in Kubernetes such pods bypass kube-scheduler, and no pod is evicted for them")
	}
	priority, class, neverPreempts := priorityOf(p, classes)
	g := t.Group(p, o.kind == kindDaemonSet)
	g.Name, g.Count = o.group, count
	return &model.Job{
		Namespace: p.namespace(), ID: cmp.Or(o.name, "work"), Type: jobType(o.kind, p), Priority: priority, PriorityClass: class,
		NeverPreempts: neverPreempts, Groups: []*model.Group{g},
	}, nil
}

// didYouMean returns the remedy for a misspelt name as the end of a message, or "".
func didYouMean(name string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return "; " + suggest.Question(near)
	}
	return ""
}

// checkAmounts returns an error that lists the invalid quantities of a pod. For pods
// of a cluster they are only counted, but a manifest must state its requests.
func (t *Translator) checkAmounts(p *Pod, kind string) error {
	var all []error
	check := func(where string, lists ...ResourceList) {
		for _, list := range lists {
			for _, name := range slices.Sorted(maps.Keys(list)) {
				if _, err := t.amounts.of(resourceName(name), list[name], false); err != nil || !isResource(name) {
					all = append(all, fmt.Errorf("%s %s%s: %.60s: %w", kind, p.Metadata.full(), where, name, invalidQuantity(list[name])))
				}
			}
		}
	}
	for _, containers := range [][]Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			check(", container "+c.Name, c.Resources.Requests, c.Resources.Limits)
		}
	}
	if r := p.Spec.Resources; r != nil {
		check("", r.Requests, r.Limits)
	}
	check(", overhead", p.Spec.Overhead)
	return errors.Join(all...)
}
