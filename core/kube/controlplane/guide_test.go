package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// guideBlocks returns the fenced blocks of a section of the guide, without indentation.
func guideBlocks(t *testing.T, section string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs/guides/kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("the guide has no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var blocks []string
	for _, match := range regexp.MustCompile("(?ms)^( *)```text\n(.*?)^ *```$").FindAllStringSubmatch(rest, -1) {
		var lines []string
		for line := range strings.SplitSeq(match[2], "\n") {
			lines = append(lines, strings.TrimPrefix(line, match[1]))
		}
		blocks = append(blocks, strings.Join(lines, "\n"))
	}
	return blocks
}

// The commands and the configuration of the page for newcomers work as they are, with the
// paths and the port of this cluster: the policy decides which pod is evicted.
func TestGuide_TenMinutes(t *testing.T) {
	c := cluster(t)
	blocks := guideBlocks(t, "Try it in ten minutes")
	if len(blocks) != 6 {
		t.Fatalf("%d blocks, want those of cede, curl, kube-scheduler, its mount, the pod and the metrics: %q", len(blocks), blocks)
	}
	port, metrics := strconv.Itoa(freePort(t)), strconv.Itoa(freePort(t))
	t.Setenv("CEDE_LISTEN__HTTP", "127.0.0.1:"+port)
	t.Setenv("CEDE_LISTEN__METRICS", "127.0.0.1:"+metrics)
	local := strings.NewReplacer("/etc/kubernetes/admin.conf", c.kubeconfig, "/etc/kubernetes/scheduler.conf", c.schedulerKubeconfig, "127.0.0.1:4646", "127.0.0.1:"+port, "127.0.0.1:4649", "127.0.0.1:"+metrics, "'", "")

	command := strings.Fields(local.Replace(blocks[0]))
	if command[0] != "cede" {
		t.Fatalf("first command %q", command)
	}
	e := StartProcess(t, c.Dir, "cede", cede(t), command[1:]...)
	e.awaitHealth(t, strings.Fields(local.Replace(blocks[1]))[1])

	old, young := Pod("old", "2", c.CreatePriorityClass(t, 10), "n1"), Pod("young", "2", c.CreatePriorityClass(t, 0), "n2")
	old.Annotations = map[string]string{StartedAnnotation: time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}
	c.CreateNodes(t, Node("n1", "2"), Node("n2", "2"))
	c.CreatePods(t, old, young)
	config, found := strings.CutPrefix(local.Replace(blocks[2]), "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
	if !found {
		t.Fatalf("configuration of kube-scheduler: %s", blocks[2])
	}
	connection := fmt.Sprintf("clientConnection:\n  kubeconfig: %s\n", c.schedulerKubeconfig)
	if !strings.Contains(config, connection) {
		t.Fatalf("the configuration names no kubeconfig: %s", config)
	}
	c.StartScheduler(t, Scheduler{Name: "scheduler", Config: strings.Replace(config, connection, "", 1)})
	demo := guidePod(t, blocks[4])
	demo.Spec.PriorityClassName = c.CreatePriorityClass(t, 1000)
	c.CreatePods(t, demo)
	Eventually(t, "the preemptor is bound", func(ctx context.Context) string { return unless(c.nodeOf(t, demo.Name) != "", "it is pending") })
	if node := c.nodeOf(t, demo.Name); node != "n1" {
		t.Errorf("the pod is on %s, want n1: the policy protects the pod of n2, which kube-scheduler would evict", node)
	}
	if !strings.Contains(e.Output(), "kubernetes preemption") {
		t.Errorf("the log has no line for the decision:\n%s", e.Tail(5))
	}
	words := strings.Fields(local.Replace(blocks[5]))
	Eventually(t, "the metrics count the decision", func(ctx context.Context) string {
		got, err := Outcomes(ctx, words[2])
		if err != nil {
			return err.Error()
		}
		return unless(got["chosen"] == 1, fmt.Sprintf("%v, want one that is chosen", got))
	})
}

// guidePod returns the pod that the commands of the guide create.
func guidePod(t *testing.T, commands string) *corev1.Pod {
	t.Helper()
	match := regexp.MustCompile(`(?m)^kubectl create priorityclass (\S+) --value 1000\nkubectl run (\S+) --image \S+ --overrides '(.*)'$`).FindStringSubmatch(commands)
	if match == nil {
		t.Fatalf("the commands create no pod: %s", commands)
	}
	pod := &corev1.Pod{}
	decoder := json.NewDecoder(strings.NewReader(match[3]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(pod); err != nil {
		t.Fatalf("%s: %v", match[3], err)
	}
	if pod.Spec.PriorityClassName != match[1] || pod.Spec.Containers[0].Name != match[2] {
		t.Errorf("the pod has another class or container than the commands: %s", commands)
	}
	pod.Name, pod.Namespace = match[2], metav1.NamespaceDefault
	return pod
}
