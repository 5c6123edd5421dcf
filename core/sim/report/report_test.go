package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden file")

// toyCluster is a minimal scheduler that queues, places and evicts, so that pages
// are drawn from the output of a real collector.
type toyCluster struct {
	c       *metrics.Collector
	rng     *rand.Rand
	free    []int64
	live    []*model.Allocation
	ends    map[string]int64
	starts  map[string]int64
	queue   []*model.Allocation
	greedy  bool // evicts largest first
	run     compare.Run
	waiting map[*model.Group]int
}

// play runs a small cluster for two hours in ticks of 10 s.
func play(policy string, seed uint64, scenario string) compare.Run {
	dims := model.NewDimensions()
	cfg := metrics.Config{Dims: dims, Until: 7200e9}
	t := &toyCluster{
		rng: rand.New(rand.NewPCG(seed, 7)), ends: map[string]int64{}, starts: map[string]int64{}, greedy: policy == "nomad",
		run: compare.Run{Scenario: scenario, Policy: policy, Seed: seed}, waiting: map[*model.Group]int{},
	}
	for i := range 8 {
		n := &model.Node{ID: fmt.Sprintf("n%d", i), Capacity: model.Resources{"cpu": 4000, "memory": 8000}}
		n.Compile(dims)
		cfg.Nodes = append(cfg.Nodes, n)
		t.free = append(t.free, 4000)
	}
	for i, priority := range []int32{20, 50, 75} {
		g := &model.Group{Name: "g", Count: 1, Resources: model.Resources{"cpu": int64(400 + 200*i), "memory": 700}, Checkpoint: int64(i) * 300e9}
		j := &model.Job{ID: []string{"etl", "api", "web"}[i], Namespace: "default", Priority: priority, Groups: []*model.Group{g}}
		j.Compile(dims)
		cfg.Jobs = append(cfg.Jobs, j)
	}
	t.c = metrics.New(cfg)
	for tick := range 720 {
		t.tick(cfg.Jobs, tick)
	}
	t.run.Metrics = t.c.Finish(7200e9)
	t.run.Series = t.c.Series()
	return t.run
}

func (t *toyCluster) tick(jobs []*model.Job, tick int) {
	at := int64(tick) * 10e9
	for i, a := range slices.Backward(t.live) {
		if t.ends[a.ID] <= at {
			t.c.Finished(at, a)
			t.free[int(a.NodeID[1]-'0')] += a.Group.Ask.Vec[model.CPU]
			t.live = slices.Delete(t.live, i, i+1)
		}
	}
	for i, j := range jobs {
		if t.rng.Float64() < []float64{0.5, 0.16, 0.06}[i]*(1+math.Sin(float64(tick)/60)) {
			t.enqueue(at, &model.Allocation{ID: fmt.Sprintf("%s.g[%d]", j.ID, tick), Job: j, Group: j.Groups[0], Index: tick})
		}
	}
	slices.SortStableFunc(t.queue, func(a, b *model.Allocation) int { return int(b.Job.Priority - a.Job.Priority) })
	for i := 0; i < len(t.queue); i++ {
		if a := t.queue[i]; t.place(at, a) {
			t.queue = slices.Delete(t.queue, i, i+1)
			i--
		}
	}
}

func (t *toyCluster) enqueue(at int64, a *model.Allocation) {
	t.queue = append(t.queue, a)
	t.waiting[a.Group]++
	t.c.Queued(at, a.Group, t.waiting[a.Group])
}

func (t *toyCluster) place(at int64, a *model.Allocation) bool {
	need := a.Group.Ask.Vec[model.CPU]
	node := slices.IndexFunc(t.free, func(free int64) bool { return free >= need })
	var victims []metrics.Victim
	var names []string
	var choice metrics.Choice
	if node < 0 {
		node = t.rng.IntN(len(t.free))
		candidates := t.candidates(node, a.Job.Priority)
		choice.Reset(need - t.free[node])
		for _, c := range candidates {
			choice.Add(c.Group.Ask.Vec[model.CPU])
		}
		free := t.free[node]
		for _, c := range candidates {
			if free >= need {
				break
			}
			free += c.Group.Ask.Vec[model.CPU]
			victims = append(victims, metrics.Victim{Alloc: c.ID, LostWork: c.Group.LostWork(at - t.starts[c.ID])})
			names = append(names, c.ID)
		}
		if free < need {
			return false
		}
	}
	a.NodeID = fmt.Sprintf("n%d", node)
	t.c.Placed(at, a, victims, &choice)
	t.waiting[a.Group]--
	t.c.Started(at, a)
	t.c.PolicyCalls(1)
	t.free[node] -= need
	t.ends[a.ID], t.starts[a.ID] = at+300e9+t.rng.Int64N(1800e9), at
	t.live = append(t.live, a)
	t.run.Decisions = append(t.run.Decisions, compare.Decision{
		At: at, Preemptor: a.ID, Job: a.Job.ID, Group: "g", Node: a.NodeID, Victims: slices.Sorted(slices.Values(names)),
	})
	for _, name := range names {
		at2 := slices.IndexFunc(t.live, func(l *model.Allocation) bool { return l.ID == name })
		v := t.live[at2]
		t.live = slices.Delete(t.live, at2, at2+1)
		t.free[node] += v.Group.Ask.Vec[model.CPU]
		again := *v
		again.Incarnation++
		again.ID = model.AllocName(v.Group, v.Index, again.Incarnation)
		t.enqueue(at, &again)
	}
	return true
}

func (t *toyCluster) candidates(node int, priority int32) []*model.Allocation {
	var out []*model.Allocation
	id := fmt.Sprintf("n%d", node)
	for _, l := range t.live {
		if l.NodeID == id && l.Job.Priority+10 <= priority {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b *model.Allocation) int {
		if t.greedy {
			return int(b.Group.Ask.Vec[0] - a.Group.Ask.Vec[0])
		}
		return int(a.Job.Priority - b.Job.Priority)
	})
	return out
}

func document(seeds uint64, policies ...string) *compare.Document {
	var runs []compare.Run
	for seed := uint64(1); seed <= seeds; seed++ {
		for _, p := range policies {
			runs = append(runs, play(p, seed, "busy-evening"))
		}
	}
	return compare.New(runs)
}

func page1(t *testing.T, d *compare.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWrite_Golden(t *testing.T) {
	t.Parallel()
	d := document(2, "default", "nomad")
	got := page1(t, d)
	if !bytes.Equal(got, page1(t, document(2, "default", "nomad"))) {
		t.Fatal("equal comparisons return different pages")
	}
	path := filepath.Join("testdata", "page.html")
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
		t.Errorf("%s differs: run with -rewrite and review it in a browser", path)
	}
}

func TestWrite_IsSelfContained(t *testing.T) {
	t.Parallel()
	text := string(page1(t, document(2, "default", "nomad")))
	for _, bad := range []string{"http:", "https:", "<script", "@import", "url(", "<link", "NaN", "+Inf", "ZgotmplZ", "%!"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if n, m := strings.Count(text, `role="img"`), strings.Count(text, "</title><desc>"); n == 0 || n != m {
		t.Errorf("%d figures, %d with a description", n, m)
	}
}

// A page of six policies is not wider than its reader's screen: every table scrolls by
// itself, figures scale, and each policy has its own line.
func TestWrite_FitsSixPolicies(t *testing.T) {
	t.Parallel()
	policies := []string{"default", "nomad", "aging", "fair-share", "least-waste", "kubernetes"}
	d := document(1, policies...)
	d.Bounds = []compare.Bounds{{Policy: "default", Decided: []compare.Regretted{{Job: "j"}}}}
	text := string(page1(t, d))
	if tables, scrolling := strings.Count(text, "<table"), len(regexp.MustCompile(`<div class="wide">\s*<table`).FindAllString(text, -1)); tables < 4 || tables != scrolling {
		t.Errorf("%d tables, %d of them scroll", tables, scrolling)
	}
	for _, style := range []string{".wide { overflow-x: auto; }", "svg { display: block; width: 100%"} {
		if !strings.Contains(text, style) {
			t.Errorf("the page lacks the style %q", style)
		}
	}
	for i, p := range policies {
		if !strings.Contains(text, fmt.Sprintf(`line s%d"`, i)) || !strings.Contains(text, `<th scope="col" class="num">`+p+`</th>`) {
			t.Errorf("policy %s has no line or no column of its own", p)
		}
	}
}

// Every figure is well-formed by itself, so that it can be extracted.
func TestWrite_FiguresAreWellFormed(t *testing.T) {
	t.Parallel()
	text := string(page1(t, document(1, "default", "nomad", "aging")))
	for at := 0; ; {
		start := strings.Index(text[at:], "<svg")
		if start < 0 {
			return
		}
		end := strings.Index(text[at+start:], "</svg>") + len("</svg>")
		figure := text[at+start : at+start+end]
		at += start + end
		decoder := xml.NewDecoder(strings.NewReader(figure))
		for {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in %.300s", err, figure)
			}
		}
	}
}

func TestWrite_NamesAreEscaped(t *testing.T) {
	t.Parallel()
	r := play("<b>&\"p", 1, "x</title><script>")
	if text := string(page1(t, compare.New([]compare.Run{r}))); strings.Contains(text, "<b>") || strings.Contains(text, "<script>") {
		t.Error("a name was not escaped")
	}
}

func TestWrite_RunsWithoutSeries(t *testing.T) {
	t.Parallel()
	empty := compare.Run{Scenario: "s", Policy: "p", Metrics: &metrics.Metrics{}}
	still := empty
	still.Series = metrics.New(metrics.Config{Dims: model.NewDimensions()}).Series()
	for _, runs := range [][]compare.Run{nil, {empty}, {still}} {
		page1(t, compare.New(runs))
	}
}

func TestLog2(t *testing.T) {
	t.Parallel()
	for _, x := range []float64{0.001, 0.5, 1, 3, 60, 86400, 1e9} {
		if d := log2(x) - math.Log2(x); math.Abs(d) > 1e-9 {
			t.Errorf("log2(%v) is off by %v", x, d)
		}
	}
}

func TestAxes_HaveAFewRoundTicks(t *testing.T) {
	t.Parallel()
	for _, high := range []float64{0.4, 1, 3, 7, 12, 99, 1234, 5.5e7} {
		if a := linear(high, compare.Number); len(a.ticks) < 3 || len(a.ticks) > 7 || a.high < high*0.999 {
			t.Errorf("linear(%v): %v", high, a.ticks)
		}
	}
	for _, high := range []float64{1, 45, 600, 7200, 86400, 30 * 86400} {
		if a := elapsed(high); len(a.ticks) < 3 || len(a.ticks) > 8 {
			t.Errorf("elapsed(%v): %v", high, a.ticks)
		}
	}
	if a := waits(10, 5000); a.low != 1 || a.high != 7200 {
		t.Errorf("waits: %v to %v", a.low, a.high)
	}
}
