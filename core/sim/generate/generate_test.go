package generate

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// TestGenerate runs the transcripts: `generate` shows the scenario of a spec, `report`
// only the report, and `preset` the report and a digest of the scenario, which must be
// the same on every machine.
func TestGenerate(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/generate", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s, err := Parse("spec.yaml", []byte(d.Input))
			if d.Cmd == "preset" {
				s, err = Open(d.CmdArgs[0].Key)
			}
			if err != nil {
				return fmt.Sprintf("error:\n%v\n", err)
			}
			f, r, err := Generate(s)
			if err != nil {
				return fmt.Sprintf("error: %v\n", err)
			}
			switch d.Cmd {
			case "report":
				return r.String()
			case "preset":
				return fmt.Sprintf("%s\n%s%x\n", f.Description, r, sha256.Sum256(encode(t, f)))
			}
			return r.String() + string(encode(t, f))
		})
	})
}

func encode(t interface{ Fatal(...any) }, f *scenario.File) []byte {
	var b bytes.Buffer
	if err := scenario.Encode(&b, f, scenario.JSON); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestParse_RejectsUnreadableSpecs checks that each error has a line and a remedy.
func TestParse_RejectsUnreadableSpecs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "f:1: the file is empty: expected a spec; start with",
		"# nothing\n":                "f:1: the file is empty",
		"name: x\n\x7fELF\x00":       "f:2: expected text, found the byte 0x7f; save it as UTF-8 text",
		"\xff\xfe":                   "f:1: expected text, found the byte 0xff",
		"name: x\n---\nname: y\n":    "f:2: more than one document; remove the rest",
		"a: [1\n":                    "f:1: did not find expected ',' or ']'; check indentation",
		strings.Repeat(" ", 1<<20+1): "f:1: more than 1048576 bytes",
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.20q: %v; want %q", text, err, want)
		}
	}
}

func TestPresets_ListNamesAndDescriptions(t *testing.T) {
	t.Parallel()
	list := Presets()
	if len(list) < 3 {
		t.Errorf("presets: %v", list)
	}
	for _, p := range list {
		s, err := Open(p.Name)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != p.Name || p.Description == "" {
			t.Errorf("preset %s has name %q and description %q", p.Name, s.Name, p.Description)
		}
	}
}

func TestOpen_FilePresetOrError(t *testing.T) {
	t.Parallel()
	if _, err := Open("nowhere"); err == nil || !strings.Contains(err.Error(), "contended, gangs, inversion, pinned, racks, storm") {
		t.Errorf("got %v", err)
	}
	if _, err := Open("./nowhere.yaml"); err == nil || strings.Contains(err.Error(), "preset") {
		t.Errorf("got %v", err)
	}
	name := filepath.Join(t.TempDir(), "spec.yaml")
	if err := os.WriteFile(name, []byte("name: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(name); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v", err)
	}
}

func TestParse_JSON(t *testing.T) {
	t.Parallel()
	s, err := Parse("spec.json", []byte(`{"name": "x", "horizon": 60, "nodes": [{"id": "n", "capacity": {"cpu": "2"}}],
		"classes": [{"name": "c", "jobs": 1, "resources": {"cpu": 100}}]}`))
	if err != nil || s.Horizon != 60e9 {
		t.Errorf("Parse = %v, %v, want a horizon of 60s", s, err)
	}
}

// TestStreams_AreIndependent adds a class in front of another. The jobs of the other
// class must not change.
func TestStreams_AreIndependent(t *testing.T) {
	t.Parallel()
	const head = "name: x\nhorizon: 1h\nnodes: [{id: n, capacity: {cpu: 1000}}]\nclasses:\n"
	const extra = "  - {name: b, jobs: 3, resources: {cpu: {uniform: [1, 9]}}}\n"
	const tail = "  - {name: a, jobs: 5, arrival: {process: poisson}, resources: {cpu: {uniform: [1, 900]}}}\n"
	jobs := func(text string) string {
		s, err := Parse("spec", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		f, _, err := Generate(s)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for i := range f.Jobs {
			if strings.HasPrefix(f.Jobs[i].ID, "a-") {
				fmt.Fprintln(&b, f.Jobs[i].ID, f.Jobs[i].Groups[0].Resources)
			}
		}
		return b.String()
	}
	if one, two := jobs(head+tail), jobs(head+extra+tail); one != two || one == "" {
		t.Errorf("alone:\n%swith another class:\n%s", one, two)
	}
}

func TestDist_HasExpectedMoments(t *testing.T) {
	t.Parallel()
	const n = 200_000
	r := stream(1, "test")
	mean := func(next func() float64) (m, dev float64) {
		sum, squares := 0.0, 0.0
		for range n {
			x := next()
			sum, squares = sum+x, squares+x*x
		}
		m = sum / n
		return m, math.Sqrt(squares/n - m*m)
	}
	for name, c := range map[string]struct {
		next    func() float64
		mean    float64
		deviate float64
	}{
		"unit":        {r.unit, 0.5, math.Sqrt(1.0 / 12)},
		"normal":      {r.normal, 0, 1},
		"exponential": {r.exponential, 1, 1},
		"below":       {func() float64 { return float64(r.below(7)) }, 3, 2},
		// E = α/(α-1)·L·(1-(L/H)^(α-1))/(1-(L/H)^α), with α 2, L 100, H 10,000.
		"pareto": {
			func() float64 {
				return float64((&drawer{kind: "pareto", shape: 2, lo: 100, hi: 10_000, step: 1}).next(r))
			},
			200 * (1 - 0.01) / (1 - 0.0001), 0,
		},
		// E = m·exp(σ²/2), when the bounds hardly matter.
		"lognormal": {
			func() float64 {
				return float64((&drawer{kind: "lognormal", median: 1000, shape: 0.5, lo: 1, hi: 1 << 40, step: 1}).next(r))
			},
			1000 * math.Exp(0.125), 0,
		},
	} {
		m, dev := mean(c.next)
		if math.Abs(m-c.mean) > 0.02*math.Max(c.mean, 0.5) || c.deviate != 0 && math.Abs(dev-c.deviate) > 0.02*c.deviate {
			t.Errorf("%s: mean %.4f, deviation %.4f; want %.4f, %.4f", name, m, dev, c.mean, c.deviate)
		}
	}
}

// TestRNG_IsPinned compares the first draws, which must be equal on every machine.
func TestRNG_IsPinned(t *testing.T) {
	t.Parallel()
	r := stream(7, "class/sweep")
	var b strings.Builder
	for range 3 {
		fmt.Fprintf(&b, "%d %x %x %x\n", r.below(1000), r.unit(), r.normal(), r.exponential())
	}
	const want = "395 0x1.1677b5af7527cp-02 0x1.2e03fff038ff4p-01 0x1.7c3ea0c5d58d3p-04\n" +
		"648 0x1.55f8d7895e33bp-01 -0x1.bfbc89c942153p+00 0x1.d7db93dcba4bap-01\n" +
		"345 0x1.c5e2a2b6bb1f4p-02 0x1.45fec35636772p-03 0x1.57d969629b1b8p-05\n"
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

func TestPick_ReturnsRequestedNumber(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 50).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		picked := stream(rapid.Uint64().Draw(t, "seed"), "").pick(n, k)
		if len(picked) != k {
			t.Fatalf("picked %v of %d, want %d", picked, n, k)
		}
		for i := range picked {
			if picked[i] < 0 || picked[i] >= n || i > 0 && picked[i] <= picked[i-1] {
				t.Fatalf("picked %v of %d", picked, n)
			}
		}
	})
}

// drawSpec returns a random spec.
func drawSpec(t *rapid.T) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("name: x\nseed: %d\nhorizon: 1h\nnodes:\n", rapid.Uint64().Draw(t, "seed"))
	p("  - {id: n, count: %d, jitter: %d, capacity: {cpu: %d, memory: 8Gi}, attributes: {zone: [a, b]}, devices: [{id: v/gpu/m, count: 2}]}\n",
		rapid.IntRange(1, 5).Draw(t, "nodes"), rapid.IntRange(0, 90).Draw(t, "jitter"), rapid.IntRange(1000, 9000).Draw(t, "cpu"))
	p("bands:\n  - {name: b, priority: %d, load: %g}\nclasses:\n", rapid.Int32().Draw(t, "priority"), rapid.Float64Range(0.01, 2).Draw(t, "load"))
	amounts := rapid.SampledFrom([]string{
		"100", "{uniform: [1, 700]}", "{choice: [10, 20], weights: [0, 1]}",
		"{lognormal: {median: 100, sigma: 2}, min: 50, max: 400}", "{pareto: {alpha: 0.7}, min: 20, max: 4000, step: 10}",
	})
	times := rapid.SampledFrom([]string{
		"10m", "600", "{uniform: [1m, 1h]}", "{lognormal: {median: 5m, sigma: 1}, max: 2h}",
		"{pareto: {alpha: 3}, min: 90s, max: 1h}",
	})
	arrivals := rapid.SampledFrom([]string{"{}", "{process: poisson}", "{at: [1m, 2m]}", "{process: poisson, from: 10m, until: 20m}"})
	fixed := rapid.SampledFrom([]string{"{process: every, every: 7m}", "{process: at, at: [5s, 0s]}", "{process: poisson, perHour: 30}"})
	for i := range rapid.IntRange(1, 3).Draw(t, "classes") {
		p("  - {name: l%d, band: b, arrival: %s, resources: {cpu: %s}, duration: %s, gang: %v, spread: {attribute: zone}}\n", i,
			arrivals.Draw(t, "arrival"), amounts.Draw(t, "amount"), times.Draw(t, "duration"), rapid.Bool().Draw(t, "gang"))
		p("  - {name: f%d, priority: 3, arrival: %s, tasks: {uniform: [1, 3]}, groups: %d, resources: {memory: %s}, devices: {id: gpu}, pin: {attribute: zone, share: 50}}\n",
			i, fixed.Draw(t, "arrival"), rapid.IntRange(1, 3).Draw(t, "groups"), amounts.Draw(t, "amount"))
	}
	p("failures: [{at: 3m, nodes: %d%%, where: {zone: a}, back: 1m}]\n", rapid.IntRange(0, 100).Draw(t, "fail"))
	return b.String()
}

func TestGenerate_IsValidOrderedAndDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := drawSpec(t)
		s, err := Parse("spec.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%s\nerror: %v", text, err)
		}
		f, r, err := Generate(s)
		if err != nil {
			t.Fatalf("%s\nerror: %v", text, err)
		}
		if err := f.Validate(); err != nil {
			t.Fatal(err)
		}
		for i, e := range f.Events {
			if i > 0 && e.At < f.Events[i-1].At || e.Submit != "" && e.At >= scenario.Duration(s.Horizon) {
				t.Fatalf("event %d at %v", i, e.At)
			}
		}
		jobs := 0
		for _, c := range r.Classes {
			jobs += c.Jobs
		}
		if jobs != len(f.Jobs) {
			t.Fatalf("reported %d jobs of %d", jobs, len(f.Jobs))
		}
		again, _, err := Generate(s)
		if err != nil || !bytes.Equal(encode(t, f), encode(t, again)) {
			t.Fatalf("two runs of one spec differ (%v)", err)
		}
	})
}

// TestGenerate_OffersTheLoadOfTheBand checks the target load, which is met to within one
// job.
func TestGenerate_OffersTheLoadOfTheBand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		preset  string
		classes []string
		want    int
	}{
		{"contended", []string{"sweep", "train"}, 80},
		{"contended", []string{"report"}, 35},
		{"contended", []string{"web", "urgent"}, 30},
		{"inversion", []string{"flood"}, 85},
		{"storm", []string{"batch"}, 45},
	} {
		s, err := Open(c.preset)
		if err != nil {
			t.Fatal(err)
		}
		_, r, err := Generate(s)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, k := range r.Classes {
			for _, name := range c.classes {
				if k.Name == name {
					sum += k.Load["cpu"]
				}
			}
		}
		if sum < c.want-2 || sum > c.want+2 {
			t.Errorf("%s: %v offer %d %%, want %d", c.preset, c.classes, sum, c.want)
		}
		if r.Unfit != 0 {
			t.Errorf("%s: %d tasks fit no node", c.preset, r.Unfit)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, p := range Presets() {
		data, _ := preset(p.Name)
		f.Add(data)
	}
	f.Add([]byte("name: x\nhorizon: 1h\nnodes: [{id: n, capacity: {cpu: 2}}]\nclasses: [{name: c, jobs: 3, duration: {pareto: {alpha: 1}, min: 1, max: 5}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("spec.yaml", data)
		if err != nil {
			return
		}
		if jobs := len(s.Classes); jobs > 3 || newPlan(s).nodes > 1000 {
			return // slow, without additional coverage
		}
		for i := range s.Bands {
			s.Bands[i].Load = min(s.Bands[i].Load, 0.01)
		}
		file, _, err := Generate(s)
		if err == nil {
			encode(t, file)
		}
	})
}

func TestGenerate_ReportsProgress(t *testing.T) {
	t.Parallel()
	for _, p := range Presets() {
		data, _ := preset(p.Name)
		spec, err := Parse(p.Name, data)
		if err != nil {
			t.Fatal(err)
		}
		last := Progress{}
		f, _, err := GenerateObserved(spec, func(now Progress) {
			if now.Jobs != last.Jobs+1 || now.Share < last.Share || now.Share > 1 {
				t.Errorf("%s: %+v after %+v", p.Name, now, last)
			}
			last = now
		})
		if err != nil {
			t.Fatal(err)
		}
		if last.Jobs != len(f.Jobs) || last.Share < 0.9 {
			t.Errorf("%s: ends at %+v of %d jobs", p.Name, last, len(f.Jobs))
		}
	}
}

// Every job of a class with colocate has a term that matches its own instances only.
func TestGenerate_ColocateBindsEachJobToOneDomain(t *testing.T) {
	t.Parallel()
	spec, err := Parse("x.yaml", []byte(`
name: x
horizon: 1h
nodes: [{id: n, count: 4, capacity: {cpu: 4000}, attributes: {rack: [a, b]}}]
classes:
  - {name: train, jobs: 2, tasks: 2, gang: true, colocate: rack, labels: {app: train}, resources: {cpu: 1000}}
  - {name: other, jobs: 1, resources: {cpu: 1000}}
`))
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Jobs {
		j := &f.Jobs[i]
		g := &j.Groups[0]
		if j.ID == "other-0" {
			if len(g.Colocate) > 0 {
				t.Errorf("%s: %+v", j.ID, g.Colocate)
			}
			continue
		}
		want := scenario.LabelTerm{Labels: map[string]string{"job": j.ID}, TopologyKey: "rack"}
		if len(g.Colocate) != 1 || !reflect.DeepEqual(g.Colocate[0], want) || g.Labels["job"] != j.ID || g.Labels["app"] != "train" {
			t.Errorf("%s: labels %v, colocate %+v", j.ID, g.Labels, g.Colocate)
		}
	}
	if _, err := Parse("x.yaml", []byte("name: x\nhorizon: 1h\nnodes: [{id: n, capacity: {cpu: 1}}]\nclasses: [{name: c, jobs: 1, colocate: rack, resources: {cpu: 1}}]\n")); err == nil || !strings.Contains(err.Error(), `no node has the attribute "rack"`) {
		t.Errorf("unknown attribute: %v", err)
	}
}
