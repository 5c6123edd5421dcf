package compare

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim/metrics"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// golden compares got with a file under testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (run with -rewrite to accept):\n%s", path, got)
	}
}

// run returns a run with a few numbers.
func run(policy string, seed uint64, victims int, cpu, delay float64) Run {
	regret := victims / 3
	goodput := metrics.Round(1 - cpu/1e6)
	return Run{
		Scenario: "contended", Policy: policy, Seed: seed,
		Metrics: &metrics.Metrics{
			Placed: 40, Unplaced: 2, Preemptions: victims / 2, Victims: victims, RegretVictims: &regret,
			VictimsPerPreemption: &metrics.PerPreemption{Mean: 2, P95: 3, Max: 3},
			CascadeDepth:         metrics.Depth{P99: 1, Max: 1},
			Waste:                metrics.Waste{WastedWork: map[string]float64{"cpu": cpu, "nvidia.com/gpu": 7200}}, Goodput: &goodput,
			QueueDelay:  map[string]metrics.Quantiles{"75": {P50: 1, P90: delay, P99: delay, Max: delay}},
			Utilisation: map[string]float64{"cpu": 0.8123}, Evaluations: metrics.Evaluations{Created: 50, Processed: 44, Cancelled: 6},
		},
		Decisions: []Decision{
			{At: 0, Preemptor: "a.g[0]", Job: "a", Group: "g", Node: "n1", Victims: []string{"x"}, Score: 0.5},
			{At: 5e9, Preemptor: "b.g[0]", Job: "b", Group: "g", Node: "n2", Victims: []string{"y", "z"}, Score: 0.25},
		},
	}
}

// comparison returns five seeds of two policies. The second is better in victims
// only.
func comparison() *Document {
	var runs []Run
	for seed := uint64(1); seed <= 5; seed++ {
		more := int(seed) * 10
		runs = append(runs, run("default", seed, more+8, 50_000+1000*float64(seed%3), 30+float64(seed)))
		r := run("nomad", seed, more, 50_000+1000*float64((seed+1)%3), 30+float64(seed))
		r.Decisions[1].Victims = []string{"q", "z"}
		r.Decisions = append(r.Decisions,
			Decision{At: 6e9, Preemptor: "c.g[0]", Job: "c", Group: "g", Node: "n3", Victims: []string{"x1", "x2"}},
			Decision{At: 9e9, Preemptor: "d.g[0]", Job: "d", Group: "g", Node: "n3"})
		runs = append(runs, r)
	}
	return New(runs)
}

func TestDocument_Golden(t *testing.T) {
	t.Parallel()
	text, err := json.MarshalIndent(comparison(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "document.json", append(text, '\n'))
	for _, again := range []int{1, 2} {
		if other, _ := json.MarshalIndent(comparison(), "", " "); !bytes.Equal(text, other) {
			t.Fatalf("repetition %d differs", again)
		}
	}
}

func TestDocument_BestRequiresSignificantDifference(t *testing.T) {
	t.Parallel()
	d := comparison()
	for _, tc := range []struct {
		metric string
		best   string
	}{
		{"victims", "nomad"},
		{"wastedWork.cpu", ""},    // the sign varies by seed
		{"queueDelay.75.p99", ""}, // equal
		{"placed", ""},            // context metric
	} {
		r := d.Row(tc.metric)
		got := ""
		if len(r.Best) > 0 {
			got = r.Best[0]
		}
		if got != tc.best || len(r.Best) > 1 {
			t.Errorf("best of %s is %v, want %q", tc.metric, r.Best, tc.best)
		}
	}
}

func TestDocument_EmptyIfThereAreNoRuns(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(New(nil))
	if err != nil || string(text) != `{"version":1,"runs":[],"summary":[],"decisions":[]}` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestTable_Widths(t *testing.T) {
	t.Parallel()
	for name, width := range map[string]int{"table-wide.txt": 0, "table-60.txt": 60} {
		var b bytes.Buffer
		if err := comparison().WriteTable(&b, width); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

// Two runs of one workload that differ in tie-breaks do not count as two workloads: the
// interval over four draws with many seeds each is as wide as that over the draws.
func TestDocument_IntervalCoversDraws(t *testing.T) {
	t.Parallel()
	var grouped, pooled []Run
	for draw := range 6 {
		for seed := range uint64(20) {
			r := run("default", seed, 100*draw, 500, 3)
			r.Draw = draw + 1
			grouped = append(grouped, r)
			r.Draw, r.Seed = 0, uint64(100*draw)+seed
			pooled = append(pooled, r)
		}
	}
	d, ties := New(grouped), New(pooled)
	if d.Workloads != 6 || d.Pairs != 120 || ties.Workloads != 1 || ties.Pairs != 120 {
		t.Fatalf("%d workloads, %d pairs; %d, %d", d.Workloads, d.Pairs, ties.Workloads, ties.Pairs)
	}
	wide, narrow := d.Row("victims").Policies["default"], ties.Row("victims").Policies["default"]
	if wide.Median != narrow.Median || wide.Low != 50 || wide.High != 450 || narrow.Low < 150 || narrow.High > 350 {
		t.Errorf("by draw %v, as one sample %v", wide, narrow)
	}
}

func TestDocument_Sample(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		draws int
		seeds uint64
		want  string
	}{
		{1, 1, "One run of each scenario"},
		{1, 4, "Median [range] of 4 paired runs of one workload: too few for an interval; use --draws 11 or --seeds 11. No difference: the range of the paired"},
		{1, 5, "Median [95 % interval] of 5 paired runs of one workload; "},
		{4, 5, "Median [range] of 20 paired runs of 4 workloads: too few"},
		{5, 2, "Median [95 % interval] of 10 paired runs of 5 workloads; "},
	} {
		var runs []Run
		for draw := range tc.draws {
			for seed := range tc.seeds {
				r := run("default", seed, 1, 1, 1)
				r.Draw = draw + 1
				runs = append(runs, r)
			}
		}
		if got := New(runs).Sample(); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%d draws, %d seeds: %q, want %q", tc.draws, tc.seeds, got, tc.want)
		}
	}
}

func TestTable_OneRunOfThreePolicies(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	d := New([]Run{run("default", 1, 12, 500, 3), run("nomad", 1, 10, 700, 3), run("aging", 1, 10, 500, 9)})
	if err := d.WriteTable(&b, 100); err != nil {
		t.Fatal(err)
	}
	golden(t, "table-one-seed.txt", b.Bytes())
}

func TestDivergence_Reasons(t *testing.T) {
	t.Parallel()
	choice := func(policy, node string, at int64, victims ...string) Choice {
		return Choice{Policy: policy, Placed: true, Node: node, At: at * 1e9, Victims: victims}
	}
	a := choice("a", "n1", 0, "x", "y")
	for _, tc := range []struct {
		b    Choice
		want string
	}{
		{choice("b", "n1", 0, "x"), "on the same node b does not evict y"},
		{choice("b", "n1", 0, "x", "y", "z"), "on the same node b also evicts z"},
		{choice("b", "n1", 0, "z"), "on the same node b evicts z instead of x, y"},
		{choice("b", "n2", 3, "z"), "a evicts 2 on n1, b evicts 1 on n2, 3s later"},
		{choice("b", "n2", 0), "a evicts 2 on n1, b places it on n2 without evictions"},
		{Choice{Policy: "b"}, "b never places it"},
		{a, ""},
	} {
		v := Divergence{Choices: []Choice{a, tc.b}}
		if got := v.reason(); got != tc.want {
			t.Errorf("reason = %q, want %q", got, tc.want)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0", 3: "3", -3: "-3", 99_999: "99999", 100_000: "100k", 1_234_567: "1.235M", 0.8123456: "0.812", 12.5: "12.5",
		1234.5678: "1235", 2.5e10: "25G", 0.00001: "<0.001", 7e15: "7P",
	} {
		if got := Number(x); got != want {
			t.Errorf("Number(%v) = %q, want %q", x, got, want)
		}
	}
}

// Observed decisions are compared like those that are carried out.
func TestCompare_ReportsObservedDecisions(t *testing.T) {
	t.Parallel()
	of := func(policy string, victims ...string) Run {
		r := run(policy, 1, 0, 0, 0)
		r.Decisions = []Decision{{Preemptor: "high.g[0] (observed 1)", Job: "high", Group: "g", Observed: true, Node: "n1", Victims: victims}}
		return r
	}
	none := run("none", 1, 0, 0, 0)
	none.Decisions = nil
	for _, c := range []struct {
		runs []Run
		want string
	}{
		{[]Run{of("a", "x"), of("b", "x")}, "No decision differs."},
		{[]Run{of("a", "x"), of("b", "y")}, "high.g[0] (observed 1): on the same node b would evict y instead of x"},
		{[]Run{of("a", "x", "y"), of("b", "x")}, "on the same node b would not evict y"},
		{[]Run{of("a", "x"), none}, "none finds no victims for it"},
	} {
		var b bytes.Buffer
		if err := New(c.runs).WriteTable(&b, 200); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), c.want) {
			t.Errorf("the table lacks %q:\n%s", c.want, b.String())
		}
	}
}
