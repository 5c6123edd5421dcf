package build

import (
	"strings"
	"testing"
)

func TestReport_CountsOneObjectInSingular(t *testing.T) {
	t.Parallel()
	r := &Report{Trace: "kube", Nodes: 1, NodesRead: 1, Tasks: 1, TasksRead: 2, Jobs: 1, Groups: 1, Running: 1}
	r.LeaveOut(1, "pods that were never scheduled")
	for _, want := range []string{"1  node, of 1\n", "1  task, of 2\n", "1  job with 1 group; 1 task runs at the start, 0 are submitted then\n", "1  pods that were never scheduled: left out\n"} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("no line %q in\n%s", want, r)
		}
	}
}
