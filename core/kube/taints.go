package kube

import (
	"cmp"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// conditionTaints lists the taints that the control plane sets for node conditions.
var conditionTaints = []struct {
	kind, status, taint string
}{
	{"Ready", "False", "node.kubernetes.io/not-ready"},
	{"Ready", "Unknown", "node.kubernetes.io/unreachable"},
	{"MemoryPressure", "True", "node.kubernetes.io/memory-pressure"},
	{"DiskPressure", "True", "node.kubernetes.io/disk-pressure"},
	{"PIDPressure", "True", "node.kubernetes.io/pid-pressure"},
	{"NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"},
}

const unschedulable = "node.kubernetes.io/unschedulable"

// translateTaints returns the taints of a node: those in its spec, and those that
// follow from its conditions or from a cordon but are missing from the spec.
func translateTaints(n *Node, r *Report) []model.Taint {
	var list []model.Taint
	add := func(taint Taint) bool {
		one := model.Taint{Key: taint.Key, Value: taint.Value, Effect: model.TaintEffect(taint.Effect)}
		if slices.ContainsFunc(list, one.Matches) {
			return false
		}
		list = append(list, one)
		return true
	}
	for _, taint := range n.Spec.Taints {
		switch {
		case taint.Key == "" || !slices.Contains(model.TaintEffects, model.TaintEffect(taint.Effect)):
			r.warn("taints without a key or with an unknown effect", "left out")
		case !add(taint):
			r.warn("taints that duplicate the key and effect of another taint of the node", "left out")
		case taint.Effect == string(model.NoExecute):
			r.info("taints with the effect NoExecute", "tolerationSeconds count from the time of the dump")
		}
	}
	for _, c := range conditionTaints {
		if slices.ContainsFunc(n.Status.Conditions, func(have NodeCondition) bool { return have.Type == c.kind && have.Status == c.status }) &&
			add(Taint{Key: c.taint, Effect: string(model.NoSchedule)}) {
			r.info("nodes with a failing condition but without its taint", "taint added")
		}
	}
	if n.Spec.Unschedulable && add(Taint{Key: unschedulable, Effect: string(model.NoSchedule)}) {
		r.info("cordoned nodes without the unschedulable taint", "taint added")
	}
	return list
}

// tolerations translates the tolerations of a pod. Tolerations of effect NoExecute
// are dropped if no node has such a taint: every pod has two of them by default.
func (t *Translator) tolerations(p *Pod) []model.Toleration {
	var list []model.Toleration
	for _, w := range p.Spec.Tolerations {
		one := model.Toleration{Key: w.Key, Operator: model.TolerationOperator(w.Operator), Value: w.Value, Effect: model.TaintEffect(w.Effect)}
		switch {
		case w.Operator != "" && w.Operator != string(model.TolerationEqual) && w.Operator != string(model.TolerationExists):
			t.Report.warn("tolerations that compare numbers", "left out")
			continue
		case w.Effect != "" && !slices.Contains(model.TaintEffects, one.Effect):
			t.Report.warn("tolerations with an unknown effect", "left out")
			continue
		case w.Operator == string(model.TolerationExists):
			one.Value = ""
		case w.Key == "":
			t.Report.warn("tolerations without a key and without the operator Exists", "left out")
			continue
		}
		if one.Effect == model.NoExecute && w.Key != "" && !t.live && !t.noExecuteKeys[w.Key] {
			t.Report.info("tolerations of effect NoExecute for taints that no node has", "left out; they have no effect")
			continue
		}
		if w.TolerationSeconds != nil && one.Effect == model.NoExecute {
			one.For = time.Duration(min(max(*w.TolerationSeconds, 1), maxTolerationSeconds)) * time.Second
		}
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, compareTolerations)
	return list
}

// maxTolerationSeconds is the upper bound of tolerationSeconds: the longest duration
// of a scenario.
const maxTolerationSeconds = 50 * 365 * 24 * 60 * 60

func compareTolerations(a, b model.Toleration) int {
	return cmp.Or(
		cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Value, b.Value),
		cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.For, b.For),
	)
}
