package extender

import (
	"slices"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/dra"
)

// A changeLog records changes of nodes, of the pods on them, and of budgets, so that a reader can
// update a copy of the cluster. Old changes are dropped. The zero value is ready to
// use.
type changeLog struct {
	epoch   uint64 // if it differs, the reader must rebuild its copy
	dropped int    // changes of this epoch that are no longer in list
	list    []change
}

// A change is a pod added to or removed from a node, or a node, a budget, a pod group or a
// resource claim added, updated or removed.
type change struct {
	key    string // of the pod, or name of the node
	pod    *kube.Pod
	node   *kube.Node
	isNode bool
	// One of these, the last version if it was removed. exists is false then.
	budget   *kube.Budget
	podGroup *kube.PodGroup
	claim    *dra.Claim
	exists   bool
}

func podAddition(p *kube.Pod) change { return change{key: key(p), pod: p} }
func podRemoval(k string) change     { return change{key: k} }
func nodeUpdate(n *kube.Node) change { return change{key: n.Metadata.Name, node: n, isNode: true} }
func budgetUpdate(b *kube.Budget) change {
	return change{budget: b, exists: true}
}
func budgetRemoval(last *kube.Budget) change { return change{budget: last} }
func nodeRemoval(name string) change         { return change{key: name, isNode: true} }

// maxChanges bounds the length of the log. Beyond it a rebuild is about as fast as
// applying the changes.
const maxChanges = 1 << 14

func (l *changeLog) restart() { *l = changeLog{epoch: l.epoch + 1} }

func (l *changeLog) podAdded(p *kube.Pod) {
	if p.Spec.NodeName != "" {
		l.add(podAddition(p))
	}
}

func (l *changeLog) podRemoved(k string, p *kube.Pod) {
	if p.Spec.NodeName != "" {
		l.add(podRemoval(k))
	}
}

// add appends a change. If the log is full, the older half is dropped first. Slices
// that since has returned remain valid.
func (l *changeLog) add(c change) {
	if len(l.list) == maxChanges {
		l.dropped += maxChanges / 2
		l.list = slices.Clone(l.list[maxChanges/2:])
	}
	l.list = append(l.list, c)
}

// size returns the number of changes in this epoch, including dropped ones.
func (l *changeLog) size() int { return l.dropped + len(l.list) }

// since returns the changes after the first n of an epoch, or false if some of them
// have been dropped.
func (l *changeLog) since(epoch uint64, n int) ([]change, bool) {
	if epoch != l.epoch || n < l.dropped {
		return nil, false
	}
	return l.list[n-l.dropped:], true
}
