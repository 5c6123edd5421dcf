package kube

import "encoding/json"

// What kube-scheduler and an extender say to each other. The envelopes have Go's
// names for fields, and the objects within them the API's.

// ExtenderArgs is what filter and prioritize are asked.
type ExtenderArgs struct {
	Pod       *Pod
	Nodes     *RawNodeList
	NodeNames *[]string
}

// RawNodeList is a list of nodes as it came: an answer must give them back whole.
type RawNodeList struct {
	Items []json.RawMessage `json:"items"`
}

// ExtenderFilterResult is filter's answer.
type ExtenderFilterResult struct {
	Nodes                      *RawNodeList      `json:"Nodes,omitempty"`
	NodeNames                  *[]string         `json:"NodeNames,omitempty"`
	FailedNodes                map[string]string `json:"FailedNodes,omitempty"`
	FailedAndUnresolvableNodes map[string]string `json:"FailedAndUnresolvableNodes,omitempty"`
	Error                      string            `json:"Error,omitempty"`
}

// HostPriority is a node's score, 0 to 10, in prioritize's answer.
type HostPriority struct {
	Host  string
	Score int64
}

// ExtenderPreemptionArgs is what preempt is asked: with victims whole, or, where
// the extender keeps nodes and pods itself, by their UIDs.
type ExtenderPreemptionArgs struct {
	Pod                   *Pod
	NodeNameToVictims     map[string]*Victims
	NodeNameToMetaVictims map[string]*MetaVictims
}

// Victims are the pods that kube-scheduler would evict from a node.
type Victims struct {
	Pods             []*Pod
	NumPDBViolations int64
}

// MetaVictims are the same by UID.
type MetaVictims struct {
	Pods             []MetaPod
	NumPDBViolations int64
}

// MetaPod names a pod.
type MetaPod struct{ UID string }

// ExtenderPreemptionResult is preempt's answer: a node that is missing is no
// candidate any more.
type ExtenderPreemptionResult struct {
	NodeNameToMetaVictims map[string]*MetaVictims
}

// ExtenderBindingArgs is what bind is asked.
type ExtenderBindingArgs struct {
	PodName, PodNamespace, PodUID, Node string
}

// ExtenderBindingResult is bind's answer.
type ExtenderBindingResult struct {
	Error string
}

// ProposedVictims is what kube-scheduler proposes, by UIDs.
func (a *ExtenderPreemptionArgs) ProposedVictims() map[string]*MetaVictims {
	all := make(map[string]*MetaVictims, len(a.NodeNameToMetaVictims)+len(a.NodeNameToVictims))
	for node, victims := range a.NodeNameToMetaVictims {
		if victims != nil {
			all[node] = victims
		}
	}
	if len(all) > 0 {
		return all
	}
	for node, victims := range a.NodeNameToVictims {
		if victims == nil {
			continue
		}
		meta := &MetaVictims{NumPDBViolations: victims.NumPDBViolations, Pods: []MetaPod{}}
		for _, p := range victims.Pods {
			if p != nil {
				meta.Pods = append(meta.Pods, MetaPod{UID: p.Metadata.UID})
			}
		}
		all[node] = meta
	}
	return all
}
