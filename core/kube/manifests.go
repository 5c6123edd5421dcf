package kube

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// ErrNoWorkload means that a manifest has no pod and nothing that makes pods.
var ErrNoWorkload = errors.New("there is no Pod and no Deployment, StatefulSet, ReplicaSet, DaemonSet or Job in it")

// rejectDuplicates refuses manifests that have an object twice: one of them would go unanswered.
func (d *Dump) rejectDuplicates() error {
	var all []error
	for _, r := range d.Duplicates {
		all = append(all, fmt.Errorf("%s is there twice, at line %d and at line %d; give each a name of its own", r.Object, r.First, r.Again))
	}
	return errors.Join(all...)
}

// JobsOf turns manifests into jobs: pods, and the pods that workloads would make.
// Priorities come from the classes of the dump and those given, by name.
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

// jobOf is one job.
func (t *Translator) jobOf(p *Pod, o owner, count int, classes map[string]*PriorityClass) (*model.Job, error) {
	if name := p.Spec.PriorityClassName; name != "" && p.Spec.Priority == nil && classes[name] == nil && model.SystemClass(name) == nil {
		return nil, fmt.Errorf("%s %s has the priority class %q, which neither the manifest nor the scenario has", o.kind, p.Metadata.full(), name)
	}
	if len(p.Spec.Containers) == 0 {
		return nil, fmt.Errorf("%s %s has no containers", o.kind, p.Metadata.full())
	}
	if err := t.checkAmounts(p, o.kind); err != nil {
		return nil, err
	}
	if p.Spec.NodeName != "" { // where it would go is the question
		t.Report.warn("pods that name their node (nodeName)", "asked about as if they named none; in Kubernetes they go there past kube-scheduler, and nobody is evicted for them")
	}
	priority, class, neverPreempts := priorityOf(p, classes)
	g := t.Group(p, o.kind == kindDaemonSet)
	g.Name, g.Count = o.group, count
	return &model.Job{
		Namespace: p.namespace(), ID: cmp.Or(o.name, "work"), Type: jobType(o.kind, p), Priority: priority, PriorityClass: class,
		NeverPreempts: neverPreempts, Groups: []*model.Group{g},
	}, nil
}

// checkAmounts lists the amounts of a pod that are no quantities. Of a cluster's own
// pods they are counted; what is asked about must say what it wants.
func (t *Translator) checkAmounts(p *Pod, kind string) error {
	var all []error
	check := func(where string, lists ...ResourceList) {
		for _, list := range lists {
			for _, name := range slices.Sorted(maps.Keys(list)) {
				if _, err := t.amounts.of(resourceName(name), list[name], false); err != nil || !isResource(name) {
					all = append(all, fmt.Errorf("%s %s%s: %.60s: %.60q is no amount; write a quantity such as 500m, 2 or 1Gi", kind, p.Metadata.full(), where, name, string(list[name])))
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
