package model

import "testing"

func TestExplanation_StatesTheReasonOfAGang(t *testing.T) {
	t.Parallel()
	const why = "no rack takes all 5 instances"
	for _, c := range []struct {
		name string
		x    Explanation
		want string
	}{
		{"alone", Explanation{Nodes: 3, Gang: why}, "all at once: no rack takes all 5 instances"},
		{
			"with nodes that are not ready, without preemption",
			Explanation{Nodes: 3, Gang: why, NotReady: map[string]int{"down": 1}, NoEviction: "preemption is off"},
			"all at once: no rack takes all 5 instances; of 3 nodes 1 is down; no preemption: preemption is off",
		},
		{
			"beside the reasons of an instance",
			Explanation{Nodes: 2, Gang: "an attempt placed 1 of 2 instances", Exhausted: map[string]int{"cpu": 2}, Preempted: map[string]int{"nothing is lower": 2}},
			"all at once: an attempt placed 1 of 2 instances; for the next one, 0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing is lower",
		},
		{"cleared at the first version of the log", Explanation{Nodes: 3}, "0 of 3 nodes"},
		{"a driver", Explanation{Nodes: 3, Filtered: map[string]int{"lacks driver exec": 2, "zone = a": 1}}, "0 of 3 nodes: 1 excluded by zone = a, 2 lack driver exec"},
		{"a misspelt resource", Explanation{Nodes: 2, Exhausted: map[string]int{"mem": 2}}, "0 of 2 nodes: 2 lack mem (did you mean memory?)"},
		{"a resource of some nodes", Explanation{Nodes: 2, Exhausted: map[string]int{"mem": 1, "cpu": 1}}, "0 of 2 nodes: 1 lacks cpu, 1 lacks mem"},
		{"of a group by itself", Explanation{Nodes: 1, Filtered: map[string]int{"zone = a": 1}}, "0 of 1 node: 1 excluded by zone = a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.x.String(); got != c.want {
				t.Errorf("got\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func TestSimilarResource(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"mem": "memory", "Memory": "memory", "memroy": "memory", "cpus": "cpu", "vCPU": "cpu", "ephemeral-storage": "disk",
		"cpu": "", "memory": "", "gpu": "", "npu": "", "tpu": "", "licenses": "", "": "", "nvidia.com/gpu": "",
	} {
		if got := SimilarResource(name); got != want {
			t.Errorf("SimilarResource(%q) = %q, want %q", name, got, want)
		}
	}
}
