package extender

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// If the policy chooses no cached node, the proposal for nodes newer than the last
// feed is used; otherwise the pod would remain pending.
func TestPreempt_KeepsProposalOnUnknownNodes(t *testing.T) {
	w := start(t, func() sdk.Policy { return shield{rules.New()} }, nil)
	protected, evictable, recent := pod("protected", "n1", "4", 60), pod("evictable", "n2", "4", 10), pod("recent", "n3", "4", 10)
	w.feed(node("n1"), node("n2"), protected, evictable)
	pending := pod("pending", "", "3", 1000)
	proposal := func(list ...*corev1.Pod) map[string][]*corev1.Pod {
		m := map[string][]*corev1.Pod{}
		for _, p := range list {
			m[p.Spec.NodeName] = []*corev1.Pod{p}
		}
		return m
	}
	for _, c := range []struct {
		verb string
		on   []*corev1.Pod
		want string
		end  string
	}{
		{"preempt", []*corev1.Pod{protected, recent}, "n3: recent", resultUnknown},
		{"preempt", []*corev1.Pod{protected, evictable, recent}, "n2: evictable", resultAnswered},
		{"preempt", []*corev1.Pod{protected}, "", resultVetoed},
		{"preempt?onFault=none", []*corev1.Pod{protected, recent}, "", resultUnknown},
		{"preempt?nodes=all", []*corev1.Pod{protected, recent}, "n3: recent", resultUnknown},
		{"preempt?nodes=all", []*corev1.Pod{protected, evictable, recent}, "n2: evictable; n3: recent", resultAnswered},
		{"preempt?nodes=all&onFault=none", []*corev1.Pod{protected, evictable, recent}, "n2: evictable", resultAnswered},
	} {
		before := w.countOf(c.end)
		args := proposalOf(pending, proposal(c.on...))
		if c.want == "n3: recent" {
			args.NodeNameToVictims["n3"].NumPDBViolations = 1
			c.want += " (1 violations)" // as in the request
		}
		if got := w.preempt(c.verb, args); got != c.want || c.end != resultAnswered && w.countOf(c.end) != before+1 {
			t.Errorf("%s of %d nodes: got %q, %v more counted as %s; want %q\n%s", c.verb, len(c.on), got, w.countOf(c.end)-before, c.end, c.want, w.log)
		}
	}
	if got := strings.Count(w.log.String(), "nodes_unknown=1"); got != 6 || !strings.Contains(w.log.String(), "such as n3") {
		t.Errorf("%d log lines with an unknown node, want 6\n%s", got, w.log)
	}
}
