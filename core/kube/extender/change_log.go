package extender

import (
	"slices"

	"github.com/cede-scheduler/cede/core/kube"
)

// changeLog is what happened to nodes and to what is on them, one after the other: for
// who keeps a picture of the cluster and follows it. It forgets what is long ago. The
// zero value is of a cluster of which there is no picture yet.
type changeLog struct {
	epoch   uint64 // another one: follow no more, begin anew
	dropped int    // how many changes of this epoch are forgotten
	list    []change
}

// change is a pod that came to a node or left it, or a node that came, is another one
// now, or is gone.
type change struct {
	key    string // of the pod, or the node's name
	pod    *kube.Pod
	node   *kube.Node
	isNode bool
}

func podAddition(p *kube.Pod) change { return change{key: key(p), pod: p} }
func podRemoval(k string) change     { return change{key: k} }
func nodeUpdate(n *kube.Node) change { return change{key: n.Metadata.Name, node: n, isNode: true} }
func nodeRemoval(name string) change { return change{key: name, isNode: true} }

// maxChanges is how many changes are kept for who asks next: with more of them it is
// as well to begin anew.
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

// add forgets the older half of the changes where they are too many: who has followed
// them goes on. What was given out stays as it is.
func (l *changeLog) add(c change) {
	if len(l.list) == maxChanges {
		l.dropped += maxChanges / 2
		l.list = slices.Clone(l.list[maxChanges/2:])
	}
	l.list = append(l.list, c)
}

// size is how many changes there were in this epoch.
func (l *changeLog) size() int { return l.dropped + len(l.list) }

// since are the changes after the first n of an epoch; false where they are not known
// any more.
func (l *changeLog) since(epoch uint64, n int) ([]change, bool) {
	if epoch != l.epoch || n < l.dropped {
		return nil, false
	}
	return l.list[n-l.dropped:], true
}
