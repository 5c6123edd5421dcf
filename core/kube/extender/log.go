package extender

import "github.com/cede-scheduler/cede/core/kube"

// changeLog is which pods came to nodes and which left them, since something else
// changed: for who keeps a picture of the cluster and follows it. The zero value is
// of a cluster of which there is no picture yet.
type changeLog struct {
	epoch uint64 // another one: follow no more, begin anew
	list  []change
}

// change is a pod that came to a node, or one that left by its key.
type change struct {
	pod *kube.Pod // nil: it left
	key string
}

// maxChanges is up to how many changes are kept for who asks next: with more of them
// it is as well to begin anew.
const maxChanges = 1 << 14

func (l *changeLog) restart() { l.epoch, l.list = l.epoch+1, nil }

func (l *changeLog) came(p *kube.Pod) {
	if p.Spec.NodeName != "" {
		l.add(change{p, key(p)})
	}
}

func (l *changeLog) left(k string, p *kube.Pod) {
	if p.Spec.NodeName != "" {
		l.add(change{nil, k})
	}
}

func (l *changeLog) add(c change) {
	if len(l.list) == maxChanges {
		l.restart()
		return
	}
	l.list = append(l.list, c)
}
