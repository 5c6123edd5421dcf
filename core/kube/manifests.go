package kube

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
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
	var jobs []*model.Job
	for _, p := range d.Pods {
		job, err := t.jobOf(p, owner{kind: kindBare, name: p.Metadata.Name, group: "pod"}, 1, classes)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	for _, w := range d.Workloads {
		count := 1
		for _, n := range []*int32{w.Spec.Replicas, w.Spec.Parallelism} {
			if n != nil {
				count = int(*n)
			}
		}
		if n := w.Spec.Completions; n != nil {
			count = min(count, int(*n))
		}
		if count < 0 || w.Kind == kindDaemonSet {
			count = 1
		}
		p := &Pod{Metadata: w.Spec.Template.Metadata, Spec: w.Spec.Template.Spec}
		p.Metadata.Name, p.Metadata.Namespace = w.Metadata.Name, w.Metadata.Namespace
		job, err := t.jobOf(p, owner{kind: w.Kind, name: w.Metadata.Name, group: "pods"}, count, classes)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// jobOf returns the job of one pod or pod template.
func (t *Translator) jobOf(p *Pod, o owner, count int, classes map[string]*PriorityClass) (*model.Job, error) {
	if name := p.Spec.PriorityClassName; name != "" && p.Spec.Priority == nil && classes[name] == nil && model.SystemClass(name) == nil {
		return nil, fmt.Errorf("%s %s: unknown priority class %q: neither the manifest nor the scenario defines it", o.kind, p.Metadata.full(), name)
	}
	if len(p.Spec.Containers) == 0 {
		return nil, fmt.Errorf("%s %s: containers are required", o.kind, p.Metadata.full())
	}
	if err := t.checkAmounts(p, o.kind); err != nil {
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

// checkAmounts returns an error that lists the invalid quantities of a pod. For pods
// of a cluster they are only counted, but a manifest must state its requests.
func (t *Translator) checkAmounts(p *Pod, kind string) error {
	var all []error
	check := func(where string, lists ...ResourceList) {
		for _, list := range lists {
			for _, name := range slices.Sorted(maps.Keys(list)) {
				if _, err := t.amounts.of(resourceName(name), list[name], false); err != nil || !isResource(name) {
					all = append(all, fmt.Errorf("%s %s%s: %.60s: invalid quantity %.60q; write a quantity such as 500m, 2 or 1Gi", kind, p.Metadata.full(), where, name, string(list[name])))
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
