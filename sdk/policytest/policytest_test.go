package policytest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

const story = `
preemptor 90 cpu=1000 device:gpu=4   # asks for both
node n1 cpu=100 memory=5 device:gpu=2@7
  big   40 cpu=1000 device:gpu=3 port
  small 20 cpu=200 memory=1 evictions=1/2
node n1 cpu=100 device:gpu=0@8
`

func TestParse_BuildsColumns(t *testing.T) {
	t.Parallel()
	c := policytest.MustParse(t, story)
	in := c.Candidates()
	for _, tt := range []struct{ what, got, want any }{
		{"dimensions", fmt.Sprint(c.Dims), "[cpu memory]"},
		{"priority", c.Preemptor.Priority, int32(90)},
		{"needs", fmt.Sprint(in.Need), "[[900 900] [-5 0]]"},
		{"device needs", fmt.Sprint(in.DeviceNeed), "[[2 4]]"},
		{"rows", fmt.Sprint(in.FirstRow), "[0 2 2]"},
		{"priorities", fmt.Sprint(in.Rows.Priority), "[20 40]"},
		{"use", fmt.Sprint(in.Rows.Use), "[[200 1000] [1 0]]"},
		{"devices", fmt.Sprint(in.Rows.Devices), "[[0 3]]"},
		{"must leave", fmt.Sprintf("%d %d", in.MustLeave, in.Rows.MustLeave), "[1 0] [0 1]"},
		{"evictions", fmt.Sprint(in.Rows.Evictions, in.Rows.EvictionLimit), "[1 0] [2 0]"},
		{"nodes", c.Options[0].Node == c.Options[1].Node, true},
		{"group", c.Options[1].DeviceGroup[0], int32(8)},
	} {
		if tt.got != tt.want {
			t.Errorf("%v: %v, want %v", tt.what, tt.got, tt.want)
		}
	}
}

func TestParse_ReadsTenantsAndTimes(t *testing.T) {
	t.Parallel()
	c := policytest.MustParse(t, `
	cluster cpu=100
	namespace b weight=2 cpu=30
	preemptor 90 delta=5 waiting=10m attempts=2 namespace=c job=shop group=web type=batch ports=1 label:app=web note:cost=3 cpu=10
	node n1 cpu=5
	  x 20 cpu=5 age=2h namespace=b job=etl label:tier=gold
	  y 30 cpu=7 age=1h lostwork=10m
	node n1 cpu=5
	  x 20 cpu=5 note:cost=2.5`)
	in := c.Candidates()
	name := func(id int32) string { return strings.ReplaceAll(in.Strings[id], "\x00", "/") }
	p, r, s := in.Preemptor, &in.Rows, in.Shared
	for _, tt := range []struct{ what, got, want any }{
		{
			"preemptor", fmt.Sprintln(p.Delta, p.Waiting, p.Attempts, p.Namespace, p.Job, p.Group, p.JobType, p.Ports, p.Labels, p.Annotations),
			"5 600000000000 2 c shop web batch 1 map[app:web] map[cost:3]\n",
		},
		{"age", in.Now - r.Start[0], int64(7200e9)},
		{"lost work", fmt.Sprint(r.LostWork), "[7200000000000 600000000000 0]"},
		{"jobs", name(r.Job[0]) + " " + name(r.Job[1]), "b/etl default/y"},
		{"groups", name(r.Group[0]), "b/etl/g"},
		{"labels", fmt.Sprintln(r.Labels.First, name(r.Labels.Key[0]), name(r.Labels.Value[0])), "[0 1 1 1] tier gold\n"},
		{"annotations", fmt.Sprint(r.Annotations.Names, r.Annotations.Values), "[cost] [[NaN NaN 2.5]]"},
		{"totals", fmt.Sprint(s.Totals), "[100]"},
		{"namespaces", name(s.Namespaces.Name[0]) + name(s.Namespaces.Name[1]) + name(s.Namespaces.Name[2]), "bcdefault"},
		{"weights", fmt.Sprint(s.Namespaces.Weight), "[2 1 1]"},
		{"use", fmt.Sprint(s.Namespaces.Use), "[[30 0 7]]"},
	} {
		if tt.got != tt.want {
			t.Errorf("%v: %v, want %v", tt.what, tt.got, tt.want)
		}
	}
	options := c.OptionsOf([][]int{{1, 0}, {}})
	if got, want := fmt.Sprintln(options.LostWork, options.Victims.Start, options.Shared.Totals), fmt.Sprintln([]int64{7800e9, 0}, []int64{in.Now - 3600e9, in.Now - 7200e9}, "[100]"); got != want {
		t.Errorf("options: %s, want %s", got, want)
	}
	gaps, at := policytest.Gaps(t, gapAbove25{}, in)
	if got := fmt.Sprint(policytest.Eligible(in, gaps, 0), at-in.Now); got != "[0] 60" {
		t.Errorf("eligible and recheck: %s", got)
	}
}

// gapAbove25 requires a gap of 100 for rows with a priority above 25.
type gapAbove25 struct{}

func (gapAbove25) PriorityDelta(in *policy.Candidates, gap []int32, recheck *policy.Recheck) error {
	for row, p := range in.Rows.Priority {
		if p > 25 {
			gap[row] = 100
		}
	}
	recheck.At(in.Now + 60)
	return nil
}

func TestParse_ReadsBudgets(t *testing.T) {
	t.Parallel()
	const text = `budget web slack=1
budget all slack=0
preemptor 90 cpu=10
node n1 cpu=5
  x 20 cpu=5 budget=web budget=all
  y 30 cpu=7
  z 40 cpu=7 budget=web
`
	c := policytest.MustParse(t, text)
	in := c.Candidates()
	if got, want := fmt.Sprint(*in.Rows.Budgets, in.Shared.Budgets.Slack), "{[0 2 2 3] [0 1 0]} [1 0]"; got != want {
		t.Errorf("budgets %s, want %s", got, want)
	}
	if got := fmt.Sprint(c.OptionsOf([][]int{{2, 1, 0}}).BudgetViolations, c.OptionsOf([][]int{{2}}).BudgetViolations); got != "[1] [0]" {
		t.Errorf("violations %s", got)
	}
	if got := policytest.Format(c); got != text {
		t.Errorf("written as\n%s", got)
	}
}

func TestParse_ReportsLineOfError(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"  a 20 cpu=1":                               "line 1",
		"preemptor":                                  "priority",
		"preemptor 90 cpu":                           "name=number",
		"preemptor 90\nnode n1\n  a high":            "line 3: a",
		"preemptor 90\nnode n1 device:gpu=1":         "does not request",
		"preemptor 90\nnode n1\n  a 2 evictions=one": "a: ",
		"preemptor 90 waiting=soon":                  "waiting=soon",
		"preemptor 90\nnode n1\n  a 2 age=1":         "age=1",
		"namespace":                                  "name",
		"budget web":                                 "slack=number",
		"budget web slack=few":                       "line 1",
		"preemptor 90\nnode n1\n  a 2 budget=web":    "missing line budget web",
		"namespace a weight=x":                       "line 1",
		"cluster cpu":                                "name=number",
	} {
		if _, err := policytest.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

func TestParse_ListsEveryInvalidLine(t *testing.T) {
	t.Parallel()
	_, err := policytest.Parse("preemptor eighty\nnode n1 cpu=NaN memory=x\n  a 20 cpu=1e400\n  b 20 age=6x\nnode n2\n  c low\n")
	want := `line 1: priority: invalid value "eighty": must be a whole number of 32 bits
line 2: n1: cpu: invalid value "NaN": must be a finite number
line 2: n1: memory: invalid value "x": must be a finite number
line 3: a: cpu: invalid value "1e400": must be a finite number
line 4: b: age=6x: invalid value "6x": must be a duration such as 1h30m
line 6: c: priority: invalid value "low": must be a whole number of 32 bits`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestEvictUntilFit_ReprievesInReverseOrder(t *testing.T) {
	t.Parallel()
	c := policytest.MustParse(t, `
	preemptor 90 cpu=100
	node n1 cpu=0
	  a 10 cpu=40
	  b 20 cpu=50
	  c 30 cpu=60
	  d 40 cpu=100
	node n2 cpu=0
	  e 10 cpu=40`)
	in := c.Candidates()
	var s policy.Selection
	s.Reset()
	for row := range 4 {
		s.Pick(row)
	}
	s.Next()
	s.Pick(4)
	s.Next()
	if got, want := fmt.Sprint(policytest.EvictUntilFit(in, &s, false)), "[[0 2] []]"; got != want {
		t.Errorf("victims %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(policytest.EvictUntilFit(in, &s, true)), "[[0 1 2 3] []]"; got != want {
		t.Errorf("kept whole: victims %s, want %s", got, want)
	}
}
