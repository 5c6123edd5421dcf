package extender

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/kube"
)

// proposedOnUnknown is what was proposed on nodes that the policy is not asked about, as not
// everything on them is known: such as one that is newer than the last feed.
func proposedOnUnknown(proposal map[string]*kube.MetaVictims, asked []string) map[string]*kube.MetaVictims {
	left := maps.Clone(proposal)
	maps.DeleteFunc(left, func(node string, v *kube.MetaVictims) bool { return len(v.Pods) == 0 || slices.Contains(asked, node) })
	return left
}

// mergeUnknown lets stand what was proposed on nodes that the policy was not asked
// about: beside its own answer where kube-scheduler chooses the node, and else where it
// chose none. A node that it chose goes before those that it has not seen. Who wants
// nobody evicted without the policy gets none of them.
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
	err := fmt.Errorf("the policy lets nobody be evicted on the nodes that are known; %d that were proposed are not, such as %s", len(left), slices.Min(slices.Collect(maps.Keys(left))))
	return left, outcome{resultUnknown, err, len(left)}
}
