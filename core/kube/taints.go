package kube

import (
	"cmp"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// conditionTaints are the taints that the control plane gives nodes that are not well.
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

// taints are a node's: its own, and those that its conditions and its being
// cordoned amount to.
func (t *Translator) taints(n *Node) []model.Taint {
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
			t.Report.warn("taints without a key or with an effect that is not known", "left out")
		case !add(taint):
			t.Report.warn("taints with the key and the effect of another of the node", "left out")
		case taint.Effect == string(model.NoExecute):
			t.Report.info("taints with the effect NoExecute", "as if they had come at the time of the dump, for pods that tolerate them for some time")
		}
	}
	for _, c := range conditionTaints {
		if slices.ContainsFunc(n.Status.Conditions, func(have NodeCondition) bool { return have.Type == c.kind && have.Status == c.status }) &&
			add(Taint{Key: c.taint, Effect: string(model.NoSchedule)}) {
			t.Report.info("nodes that are not well and lack the taint that says so", "given it")
		}
	}
	if n.Spec.Unschedulable && add(Taint{Key: unschedulable, Effect: string(model.NoSchedule)}) {
		t.Report.info("nodes that are cordoned and lack the taint that says so", "given it")
	}
	return list
}

// tolerations are a pod's. Those of NoExecute alone, of which every pod has two, are
// kept only where some node has such a taint.
func (t *Translator) tolerations(p *Pod) []model.Toleration {
	var list []model.Toleration
	for _, w := range p.Spec.Tolerations {
		one := model.Toleration{Key: w.Key, Operator: model.TolerationOperator(w.Operator), Value: w.Value, Effect: model.TaintEffect(w.Effect)}
		switch {
		case w.Operator != "" && w.Operator != string(model.TolerationEqual) && w.Operator != string(model.TolerationExists):
			t.Report.warn("tolerations that compare numbers", "left out")
			continue
		case w.Effect != "" && !slices.Contains(model.TaintEffects, one.Effect):
			t.Report.warn("tolerations of an effect that is not known", "left out")
			continue
		case w.Operator == string(model.TolerationExists):
			one.Value = ""
		case w.Key == "":
			t.Report.warn("tolerations without a key that do not say Exists", "left out")
			continue
		}
		if one.Effect == model.NoExecute && w.Key != "" && !t.keepsAllTolerations && !t.noExecuteKeys[w.Key] {
			t.Report.info("tolerations of NoExecute alone, of taints that no node has", "left out; they keep nobody on a node or off it")
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

// maxTolerationSeconds is for how long a pod says at most that it stays beside a taint, in seconds:
// as long as scenarios last.
const maxTolerationSeconds = 50 * 365 * 24 * 60 * 60

func compareTolerations(a, b model.Toleration) int {
	return cmp.Or(
		cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Value, b.Value),
		cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.For, b.For),
	)
}
