package kube

import "encoding/json"

// The types below are the extender protocol of kube-scheduler. Their JSON fields have
// the names of the Go fields; the API objects in them use their own JSON names.

// ExtenderArgs is the request of filter and prioritize.
type ExtenderArgs struct {
	Pod       *Pod
	Nodes     *RawNodeList
	NodeNames *[]string
}

// A RawNodeList is a list of nodes as received: a response must return nodes
// unmodified.
type RawNodeList struct {
	Items []json.RawMessage `json:"items"`
}

// ExtenderFilterResult is the response of filter.
type ExtenderFilterResult struct {
	Nodes                      *RawNodeList      `json:"Nodes,omitempty"`
	NodeNames                  *[]string         `json:"NodeNames,omitempty"`
	FailedNodes                map[string]string `json:"FailedNodes,omitempty"`
	FailedAndUnresolvableNodes map[string]string `json:"FailedAndUnresolvableNodes,omitempty"`
	Error                      string            `json:"Error,omitempty"`
}

// A HostPriority is the score of a node, 0 to 10, in the response of prioritize.
type HostPriority struct {
	Host  string
	Score int64
}

// ExtenderPreemptionArgs is the request of preempt. Victims are complete objects, or
// UIDs if the extender is nodeCacheCapable.
type ExtenderPreemptionArgs struct {
	Pod                   *Pod
	NodeNameToVictims     map[string]*Victims
	NodeNameToMetaVictims map[string]*MetaVictims
}

// Victims are the pods that kube-scheduler proposes to evict from a node.
type Victims struct {
	Pods             []*Pod
	NumPDBViolations int64
}

// MetaVictims are victims by UID.
type MetaVictims struct {
	Pods             []MetaPod
	NumPDBViolations int64
}

// A MetaPod identifies a pod.
type MetaPod struct{ UID string }

// ExtenderPreemptionResult is the response of preempt. A node that is missing is no
// longer a candidate.
type ExtenderPreemptionResult struct {
	NodeNameToMetaVictims map[string]*MetaVictims
}

// ExtenderBindingArgs is the request of bind.
type ExtenderBindingArgs struct {
	PodName, PodNamespace, PodUID, Node string
}

// ExtenderBindingResult is the response of bind.
type ExtenderBindingResult struct {
	Error string
}

// ProposedVictims returns the proposed victims by UID. Nodes without an entry are omitted.
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
