package extender

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each decision is reported once, when its result is final: with the victims and the
// reasons of the policy, or with the reason for which the policy did not choose.
func TestDecisions_ReportFinalResults(t *testing.T) {
	var got []string
	w := start(t, kubernetesPolicy, func(c *Config) {
		c.Decided = func(d Decision) {
			text := fmt.Sprintf("%s %s/%s (%d) on %q:", d.Outcome, d.Pod.Namespace, d.Pod.Name, d.Pod.Priority, d.Node)
			for _, v := range d.Victims {
				text += fmt.Sprintf(" %s (%d)", v.Name, v.Priority)
			}
			got = append(got, text+fmt.Sprintf(" reasons %d, problem %q, proposed %t", len(d.Reasons), d.Problem, d.Proposed))
			for _, r := range d.Reasons {
				if strings.Contains(r, "  ") || !strings.HasSuffix(r, ".") {
					t.Errorf("reason %q", r)
				}
				t.Log(r)
			}
		}
	})
	nodes, big, small1, small2 := cluster()
	w.feed(append(nodes, big, small1, small2)...)
	args := metaProposalOf(pod("pending", "", "2", 1000), map[string][]*corev1.Pod{"n1": {big}, "n2": {small1}})
	w.preempt("preempt", args)
	if len(got) != 0 {
		t.Errorf("reported before the result: %q", got)
	}
	w.preempt("preempt", args) // the response was discarded
	at := metav1.NewTime(epoch)
	small1.DeletionTimestamp = &at
	w.feed(append(nodes, big, small1, small2)...)
	w.preempt("preempt", metaProposalOf(pod("lost", "", "2", 1000), map[string][]*corev1.Pod{"n9": {pod("ghost", "n9", "2", 0)}}))
	want := []string{
		`discarded default/pending (1000) on "n2": small1 (10) reasons 2, problem "", proposed false`,
		`chosen default/pending (1000) on "n2": small1 (10) reasons 2, problem "", proposed false`,
		`unknown default/lost (1000) on "n9":  (0) reasons 0, problem "`,
	}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got %s, want %s", got[i], want[i])
		}
	}
}
