package extender

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/kube"
)

// proposedOnUnknown returns the proposed victims on nodes that the policy does not
// evaluate, because the cache lacks pods on them. An example is a node that is
// newer than the last feed.
func proposedOnUnknown(proposal map[string]*kube.MetaVictims, asked []string) map[string]*kube.MetaVictims {
	left := maps.Clone(proposal)
	maps.DeleteFunc(left, func(node string, v *kube.MetaVictims) bool { return len(v.Pods) == 0 || slices.Contains(asked, node) })
	return left
}

// mergeUnknown adds the proposal for nodes that the policy did not evaluate. If
// kube-scheduler chooses the node, it is added to the response. Otherwise it is the
// response only if the policy chose no node: a node that the policy chose has
// precedence. With EvictNone it is never used.
func mergeUnknown(answer map[string]*kube.MetaVictims, end outcome, left map[string]*kube.MetaVictims, w PreemptOptions) (map[string]*kube.MetaVictims, outcome) {
	if len(left) == 0 {
		return answer, end
	}
	end.unknownNodes = len(left)
	if w.AllNodes && w.OnFault == KeepProposal {
		maps.Copy(answer, left)
	}
	if end.result != resultVetoed {
		return answer, end
	}
	err := fmt.Errorf("the policy allows no eviction on the cached nodes; %d proposed nodes are unknown, such as %s", len(left), slices.Min(slices.Collect(maps.Keys(left))))
	return left, outcome{resultUnknown, err, len(left)}
}
