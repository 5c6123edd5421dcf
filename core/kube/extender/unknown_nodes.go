package extender

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/kube"
)

// proposedOnUnknown returns the proposed victims on nodes that the policy does not
// evaluate, because the cache lacks pods on them. An example is a node that is
// newer than the last feed. evaluated is sorted.
func proposedOnUnknown(proposal map[string]*kube.MetaVictims, evaluated []string) map[string]*kube.MetaVictims {
	unknown := map[string]*kube.MetaVictims{}
	if len(evaluated) == len(proposal) {
		return unknown
	}
	for node, v := range proposal {
		if _, known := slices.BinarySearch(evaluated, node); !known && len(v.Pods) > 0 {
			unknown[node] = v
		}
	}
	return unknown
}

// mergeUnknown adds the proposal for nodes that the policy did not evaluate. If
// kube-scheduler chooses the node, it is added to the response. Otherwise it is the
// response only if the policy chose no node: a node that the policy chose has
// precedence. With EvictNone it is never used.
func mergeUnknown(answer map[string]*kube.MetaVictims, end outcome, unknown map[string]*kube.MetaVictims, w PreemptOptions) (map[string]*kube.MetaVictims, outcome) {
	if len(unknown) == 0 {
		return answer, end
	}
	end.unknownNodes = len(unknown)
	if w.AllNodes && w.OnFault == KeepProposal {
		maps.Copy(answer, unknown)
	}
	if end.result != resultVetoed {
		return answer, end
	}
	err := fmt.Errorf("the policy allows no eviction on the cached nodes; %d proposed nodes are unknown, such as %s", len(unknown), slices.Min(slices.Collect(maps.Keys(unknown))))
	return unknown, outcome{result: resultUnknown, err: err, unknownNodes: len(unknown)}
}
