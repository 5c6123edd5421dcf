package kubernetes_test

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/policies/kubernetes"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// choose returns the best node if all rows of each option are victims.
func choose(t *testing.T, config, text string) string {
	t.Helper()
	c := policytest.MustParse(t, text)
	victims := make([][]int, len(c.Options))
	for i := range c.Options {
		for k := range c.Options[i].Rows {
			victims[i] = append(victims[i], k)
		}
	}
	in := c.OptionsOf(victims)
	out := policytest.NewScores(in.Len())
	if err := policytest.Configured(t, kubernetes.New(), config).ScoreOptions(in, out); err != nil {
		t.Fatal(err)
	}
	return c.Options[policytest.Best(out)].Name
}

// Each criterion decides if the previous ones are equal, against all later ones.
func TestScoreOptions_CriteriaAreInOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, nodes, want string }{
		{
			"the fewest budget violations, regardless of priorities", `
			node n1
			  a 1 budget=web
			node n2
			  b 50
			  c 50`, "n2",
		},
		{
			"the lowest maximum priority, regardless of the number", `
			node n1
			  a 21
			node n2
			  b 20
			  c 20
			  d 20`, "n2",
		},
		{
			"the lowest sum", `
			node n1
			  a 20
			  b 10
			node n2
			  c 20
			  d 9`, "n2",
		},
		{
			"fewer victims beat a sum that is more negative", `
			node n1
			  a -5
			  b -5
			node n2
			  c -5`, "n2",
		},
		{
			"the latest of the earliest starts among the most important", `
			node n1
			  a 20 age=1h
			  b 20 age=3h
			  c 10 age=1m
			node n2
			  d 20 age=2h
			  e 20 age=2h
			  f 10 age=9h`, "n2",
		},
		{
			"the first of equal options", `
			node n1
			  a 20 age=1h
			node n2
			  b 20 age=1h`, "n1",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := choose(t, `{}`, "budget web slack=0\npreemptor 90 cpu=1"+tt.nodes); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// manyOptions returns n options that violate a budget. If harmless is true, the last
// one does not.
func manyOptions(t *testing.T, n int, harmless bool) *policy.Options {
	t.Helper()
	text := "budget web slack=0\npreemptor 90 cpu=1 job=asker\n"
	for i := range n {
		text += fmt.Sprintf("node n%d\n  a%d %d", i, i, 80-i%60)
		if !harmless || i < n-1 {
			text += " budget=web"
		}
		text += "\n"
	}
	c := policytest.MustParse(t, text)
	victims := make([][]int, n)
	for i := range victims {
		victims[i] = []int{0}
	}
	return c.OptionsOf(victims)
}

// The sample continues until it contains an option without budget violations.
func TestScoreOptions_SampleSizeMatchesKubernetes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		options, percentage, absolute int
		harmless                      bool
		want                          int
	}{
		{1000, 10, 100, false, 100},
		{1000, 10, 100, true, 101},
		{1000, 100, 0, true, 1000},
		{50, 10, 100, true, 50},
	} {
		in := manyOptions(t, tt.options, tt.harmless)
		config := fmt.Sprintf(`{"minCandidateNodesPercentage":%d,"minCandidateNodesAbsolute":%d}`, tt.percentage, tt.absolute)
		if got := sampled(t, config, in); got != tt.want {
			t.Errorf("%+v: %d options sampled", tt, got)
		}
	}
	// Without violations the sample is ten percent, at least a hundred.
	c := policytest.MustParse(t, "preemptor 90 cpu=1 job=asker\nnode n\n  a 10")
	for len(c.Options) < 3000 {
		c.Options = append(c.Options, c.Options[0])
	}
	for n, want := range map[int]int{3000: 300, 700: 100, 60: 60} {
		some := *c
		some.Options = c.Options[:n]
		victims := make([][]int, n)
		for i := range victims {
			victims[i] = []int{0}
		}
		if got := sampled(t, `{"minCandidateNodesPercentage":10}`, some.OptionsOf(victims)); got != want {
			t.Errorf("%d of %d options sampled, want %d", got, n, want)
		}
	}
}

func sampled(t *testing.T, config string, in *policy.Options) (n int) {
	t.Helper()
	p := policytest.Configured(t, kubernetes.New(), config)
	out := policytest.NewScores(in.Len())
	if err := p.ScoreOptions(in, out); err != nil {
		t.Fatal(err)
	}
	for _, tier := range out.Tiers[0] {
		if tier != 1<<63-1 {
			n++
		}
	}
	return n
}

// The start of a sample depends on the preemptor and its number of attempts. Jobs that
// run on every node are not sampled.
func TestScoreOptions_SampleStartVaries(t *testing.T) {
	t.Parallel()
	in := manyOptions(t, 1000, true)
	in.BudgetViolations = make([]int32, in.Len())
	p := policytest.Configured(t, kubernetes.New(), `{"minCandidateNodesPercentage":1,"minCandidateNodesAbsolute":0}`)
	seen := map[int]bool{}
	for attempt := range int32(20) {
		in.Preemptor.Attempts = attempt
		out := policytest.NewScores(in.Len())
		if err := p.ScoreOptions(in, out); err != nil {
			t.Fatal(err)
		}
		seen[policytest.Best(out)] = true
	}
	if len(seen) < 5 {
		t.Errorf("20 attempts chose %d options", len(seen))
	}
	in.Preemptor.JobType = "system"
	if got := sampled(t, `{"minCandidateNodesPercentage":1,"minCandidateNodesAbsolute":0}`, in); got != in.Len() {
		t.Errorf("system job: sampled %d of %d options", got, in.Len())
	}
}
