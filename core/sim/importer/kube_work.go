package importer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// AddManifests returns a copy of a scenario with the jobs of manifests at its end, these
// jobs, and notes on facts that a scenario cannot express. It does not modify f.
func AddManifests(f *scenario.File, d *kube.Dump) (with *scenario.File, jobs []scenario.Job, notes []Note, err error) {
	nodes := make([]*model.Node, len(f.Nodes))
	for i := range f.Nodes {
		nodes[i] = modelNode(&f.Nodes[i])
	}
	report := &kube.Report{}
	t := kube.NewTranslator(nodes, report)
	var classes []*kube.PriorityClass
	for i := range f.Classes {
		k := &f.Classes[i]
		classes = append(classes, &kube.PriorityClass{
			Metadata: kube.Metadata{Name: k.Name}, Value: k.Value, GlobalDefault: k.GlobalDefault, PreemptionPolicy: k.PreemptionPolicy,
		})
	}
	work, err := t.JobsOf(d, classes)
	if err != nil {
		return nil, nil, nil, err
	}
	copied := *f
	copied.Nodes = withAttributes(f.Nodes, nodes)
	copied.Jobs = withLabels(f.Jobs, t)
	made := selectorLabels(f)
	have := map[string]bool{}
	for i := range f.Classes {
		have[f.Classes[i].Name] = true
	}
	for _, j := range work {
		for _, g := range j.Groups {
			g.Labels = labelled(t.Label(j.Namespace, g.Labels), made)
		}
		jobs = append(jobs, build.Job(j, have))
	}
	for _, n := range report.List {
		notes = append(notes, Note{Count: n.Count, Subject: n.Subject, Handling: n.Handling, LeftOut: n.Skipped})
	}
	with, jobs = AddJobs(&copied, jobs)
	return with, jobs, notes, nil
}

// AddJobs returns a copy of a scenario with additional jobs, and these jobs. A job with an
// id that is in use gets another one. It does not modify f.
func AddJobs(f *scenario.File, jobs []scenario.Job) (*scenario.File, []scenario.Job) {
	taken := make(map[string]bool, len(f.Jobs))
	for i := range f.Jobs {
		taken[f.Jobs[i].ID] = true
	}
	jobs = slices.Clone(jobs)
	for i := range jobs {
		base := jobs[i].ID
		for n := 1; taken[jobs[i].ID]; n++ {
			if jobs[i].ID = base + "-what-if"; n > 1 {
				jobs[i].ID = fmt.Sprintf("%s-what-if-%d", base, n)
			}
		}
		taken[jobs[i].ID] = true
	}
	with := *f
	with.Jobs = slices.Concat(f.Jobs, jobs)
	return &with, jobs
}

// JobOf returns a job of the model in the form of a scenario.
func JobOf(j *model.Job) scenario.Job { return build.Job(j, nil) }

// NodeOf returns a node of the model in the form of a scenario, limited to properties
// that Kubernetes has.
func NodeOf(n *model.Node) scenario.Node { return build.Node(n) }

// modelNode returns the properties of a node that the placement of manifests reads.
func modelNode(n *scenario.Node) *model.Node {
	node := &model.Node{ID: n.ID, Capacity: model.Resources(n.Capacity), Attributes: maps.Clone(n.Attributes)}
	for _, d := range n.Devices {
		node.Devices = append(node.Devices, model.Device{ID: d.ID, Count: d.Count, Attributes: d.Attributes})
	}
	for _, t := range n.Taints {
		node.Taints = append(node.Taints, model.Taint{Key: t.Key, Value: t.Value, Effect: model.TaintEffect(t.Effect)})
	}
	return node
}

// withAttributes returns the nodes with the attributes that the translator added.
func withAttributes(list []scenario.Node, made []*model.Node) []scenario.Node {
	nodes := slices.Clone(list)
	for i := range nodes {
		if len(made[i].Attributes) != len(nodes[i].Attributes) {
			nodes[i].Attributes = made[i].Attributes
		}
	}
	return nodes
}

// withLabels returns the jobs with the labels that the translator added.
func withLabels(list []scenario.Job, t *kube.Translator) []scenario.Job {
	jobs := slices.Clone(list)
	for i := range jobs {
		namespace := jobs[i].Namespace
		namespace = cmp.Or(namespace, model.DefaultNamespace)
		cloned := false
		for k := range jobs[i].Groups {
			labels := t.Label(namespace, jobs[i].Groups[k].Labels)
			if len(labels) == len(jobs[i].Groups[k].Labels) {
				continue
			}
			if !cloned {
				jobs[i].Groups, cloned = slices.Clone(jobs[i].Groups), true
			}
			jobs[i].Groups[k].Labels = labels
		}
	}
	return jobs
}

// selectorLabels returns the labels of a scenario that represent selectors.
func selectorLabels(f *scenario.File) map[string]*kube.LabelSelector {
	made := map[string]*kube.LabelSelector{}
	see := func(labels map[string]string) {
		for label := range labels {
			if s, ok := kube.ParseSelectorLabel(label); ok {
				made[label] = s
			}
		}
	}
	for i := range f.Budgets {
		see(f.Budgets[i].Labels)
	}
	for i := range f.Jobs {
		for k := range f.Jobs[i].Groups {
			g := &f.Jobs[i].Groups[k]
			for _, terms := range [][]scenario.LabelTerm{g.Colocate, g.Separate} {
				for _, term := range terms {
					see(term.Labels)
				}
			}
		}
	}
	return made
}

// labelled returns a pod's labels plus those that represent the selectors that match it.
func labelled(labels map[string]string, made map[string]*kube.LabelSelector) map[string]string {
	more := maps.Clone(labels)
	for label, s := range made {
		if s.Matches(labels) {
			if more == nil {
				more = map[string]string{}
			}
			more[label] = "true"
		}
	}
	return more
}
