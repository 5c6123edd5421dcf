package kube

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// taintUse is which effects the taints of a key have.
type taintUse uint8

const (
	repels   taintUse = 1 << iota // NoSchedule
	deters                        // PreferNoSchedule
	banishes                      // NoExecute without NoSchedule of the same key beside it
	both                          // NoExecute with it
)

const noExecute = "NoExecute"

func useOf(effect string) taintUse {
	switch effect {
	case string(model.NoSchedule):
		return repels
	case string(model.PreferNoSchedule):
		return deters
	case noExecute:
		return banishes
	}
	return 0
}

// conditions are the taints that the control plane gives nodes that are not well.
var conditions = []struct {
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
// cordoned amount to. NoExecute keeps work off as NoSchedule does; that it drives
// out what runs is not told.
func (t *Translator) taints(n *Node) []model.Taint {
	var list []model.Taint
	add := func(taint Taint) bool {
		for i := range list {
			if list[i].Key == taint.Key && string(list[i].Effect) == taint.Effect {
				return false
			}
		}
		list = append(list, model.Taint{Key: taint.Key, Value: taint.Value, Effect: model.TaintEffect(taint.Effect)})
		t.repelling[taint.Key] |= useOf(taint.Effect)
		return true
	}
	var banishing []Taint
	for _, taint := range n.Spec.Taints {
		switch {
		case taint.Key == "" || useOf(taint.Effect) == 0:
			t.Notes.hard("taints without a key or with an effect that is not known", "left out")
		case taint.Effect == noExecute:
			banishing = append(banishing, taint)
		case !add(taint):
			t.Notes.hard("taints with the key and the effect of another of the node", "left out")
		}
	}
	for _, c := range conditions {
		if slices.ContainsFunc(n.Status.Conditions, func(have NodeCondition) bool { return have.Type == c.kind && have.Status == c.status }) &&
			add(Taint{Key: c.taint, Effect: string(model.NoSchedule)}) {
			t.Notes.soft("nodes that are not well and lack the taint that says so", "given it")
		}
	}
	if n.Spec.Unschedulable && add(Taint{Key: unschedulable, Effect: string(model.NoSchedule)}) {
		t.Notes.soft("nodes that are cordoned and lack the taint that says so", "given it")
	}
	for _, taint := range banishing {
		t.Notes.soft("taints with the effect NoExecute", "as NoSchedule: new work stays away, and what runs there stays")
		taint.Effect = string(model.NoSchedule)
		if add(taint) {
			t.repelling[taint.Key] |= banishes
		} else {
			t.repelling[taint.Key] |= both
		}
	}
	return list
}

// tolerations are a pod's, in our words, in which a toleration is of every
// effect. One that names an effect is kept where it means something here, and one
// that names no key becomes one for each key with that effect.
func (t *Translator) tolerations(p *Pod) []model.Toleration {
	var list []model.Toleration
	add := func(one model.Toleration) {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	for _, w := range p.Spec.Tolerations {
		one := model.Toleration{Key: w.Key, Operator: model.TolerationOperator(w.Operator), Value: w.Value}
		switch {
		case w.Operator != "" && w.Operator != string(model.TolerationEqual) && w.Operator != string(model.TolerationExists):
			t.Notes.hard("tolerations that compare numbers", "left out")
			continue
		case w.Operator == string(model.TolerationExists):
			one.Value = ""
		case w.Key == "":
			t.Notes.hard("tolerations without a key that do not say Exists", "left out")
			continue
		}
		switch {
		case w.Effect == "":
			add(one)
		case w.Key == "":
			for _, key := range slices.Sorted(maps.Keys(t.repelling)) {
				if t.repelling[key]&useOf(w.Effect) != 0 {
					t.oneEffect(key, w.Effect)
					add(model.Toleration{Key: key, Operator: model.TolerationExists})
				}
			}
		case w.Effect == noExecute && t.repelling[w.Key]&banishes == 0:
			t.Notes.soft("tolerations of NoExecute alone, of taints that no node has", "left out; they keep nobody on a node or off it")
		default:
			t.oneEffect(w.Key, w.Effect)
			add(one)
		}
	}
	slices.SortFunc(list, func(a, b model.Toleration) int { return compareTolerations(&a, &b) })
	return list
}

// oneEffect counts a toleration that is read as one of more effects than it has.
func (t *Translator) oneEffect(key, effect string) {
	if use := t.repelling[key]; use&^useOf(effect) != 0 {
		t.Notes.hard("tolerations of one effect, of taints that have others too", "taken to be of every effect")
	}
}

func compareTolerations(a, b *model.Toleration) int {
	for _, pair := range [][2]string{{a.Key, b.Key}, {string(a.Operator), string(b.Operator)}, {a.Value, b.Value}} {
		if pair[0] != pair[1] {
			if pair[0] < pair[1] {
				return -1
			}
			return 1
		}
	}
	return 0
}
