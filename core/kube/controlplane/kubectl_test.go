package controlplane

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
)

// kubectlCede returns the output of `cede kubectl`.
func kubectlCede(ctx context.Context, t *testing.T, c *Cluster, program string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append([]string{"kubectl", "--kubeconfig", c.Kubeconfig()}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return err.Error() + "\n" + out.String()
	}
	return out.String()
}

// kubectl cede predicts the eviction that kube-scheduler makes, and finds its reason in
// the condition and the event that kube-scheduler writes.
func TestKubectl_PredictsAndExplainsEviction(t *testing.T) {
	c, program := cluster(t), cede(t)
	low, high := c.CreatePriorityClass(t, 0), c.CreatePriorityClass(t, 1000)
	c.CreateNodes(t, Node("n1", "2"))
	c.CreatePods(t, Pod("low", "2", low, "n1"), Pod("high", "2", high, ""))
	Eventually(t, "the eviction is predicted", func(ctx context.Context) string {
		out := kubectlCede(ctx, t, c, program, "why", "high", "-o", "json")
		if strings.Contains(out, `"state":"pending"`) && strings.Contains(out, `"victims":[{"id":"low"`) {
			return ""
		}
		return out
	})
	if out := kubectlCede(t.Context(), t, c, program, "next", "n1"); !strings.Contains(out, "low") {
		t.Errorf("next: %s", out)
	}
	c.StartScheduler(t, Scheduler{Name: "scheduler"})
	Eventually(t, "the eviction is explained", func(ctx context.Context) string {
		out := kubectlCede(ctx, t, c, program, "why", "low")
		if strings.Contains(out, "was evicted") && strings.Contains(out, "evicted for default/high (priority 1000): Preempted by pod ") {
			return ""
		}
		return out
	})
}
