package extender

import (
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/decision"
	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
)

// A Decision is the final result of one preemption request.
type Decision struct {
	Time     time.Time // of the response
	Pod      PodRef    // for which pods are evicted
	Node     string    // "" if the response names no node, or several
	Victims  []PodRef
	Outcome  string   // as the label of cede_kube_preemptions_total
	Reasons  []string // sentences on the choice of the node and of the victims; nil if the policy did not choose
	Problem  string   // reason for which the proposal of kube-scheduler stands; "": it does not
	Proposed bool     // the victims are those that kube-scheduler proposed
}

// A PodRef identifies a pod. If the cache does not contain it, only the UID is known.
type PodRef struct {
	Namespace, Name, UID string
	Priority             int32
}

func podRef(p *kube.Pod) PodRef {
	return PodRef{Namespace: p.Metadata.Namespace, Name: p.Metadata.Name, UID: p.Metadata.UID, Priority: p.PriorityValue()}
}

// describe adds the pods of an answer to it. The caller must hold the lock of the cache.
func (a *answer) describe(c *cache) {
	a.known = make(map[string]PodRef)
	for _, victims := range a.victims {
		for _, k := range victims {
			if p := c.pods[k]; p != nil {
				a.known[k] = podRef(p)
			}
		}
	}
}

// decision returns the final result of an answer.
func (a *answer) decision(outcome string) Decision {
	d := Decision{Time: a.time, Pod: podRef(a.pod), Node: a.node, Outcome: outcome, Reasons: a.reasons}
	if a.node == gangNode {
		d.Node = ""
	}
	for _, node := range a.nodes() {
		for _, k := range a.victims[node] {
			ref, ok := a.known[k]
			if !ok {
				ref = PodRef{UID: k}
			}
			d.Victims = append(d.Victims, ref)
		}
	}
	return d
}

// unanswered returns the result of a request that the policy did not answer.
func unanswered(args *kube.ExtenderPreemptionArgs, at time.Time, answer map[string]*kube.MetaVictims, end *outcome) Decision {
	d := Decision{Time: at, Pod: podRef(args.Pod), Outcome: end.result, Proposed: len(answer) > 0}
	if end.err != nil {
		d.Problem = end.err.Error()
	}
	if len(answer) != 1 {
		return d // kube-scheduler chooses among several nodes
	}
	for node, victims := range answer {
		d.Node = node
		for _, v := range victims.Pods {
			d.Victims = append(d.Victims, PodRef{UID: v.UID})
		}
	}
	return d
}

// reasons explains the choices of a plan.
func (q *query) reasons(choices []*model.Choice) (list []string) {
	for _, c := range choices {
		if why := decision.Why(c, q.snap); why != nil {
			list = append(list, why.Text...)
		}
	}
	return slices.DeleteFunc(list, func(text string) bool { return text == "" })
}
