package calibrate

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
)

const text = `version: 1
name: s
nodes: [{id: n, capacity: {cpu: 4000}}]
jobs:
- {id: a, type: batch, groups: [{name: g, count: 3, resources: {cpu: 1000}, duration: 100s, killTimeout: 5s}]}
- {id: b, type: service, groups: [{name: g, count: 1, resources: {cpu: 1000}}]}
events:
- {at: 10s, submit: a}
running:
- {id: old, job: b, group: g, node: n}
`

func file(t *testing.T) *scenario.File {
	t.Helper()
	f, err := scenario.Decode("s.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func read(t *testing.T, rows string) (*Lives, error) {
	t.Helper()
	return Read(build.Source{FS: fstest.MapFS{"t.csv": {Data: []byte("at_s,kind,alloc\n" + rows)}}}, "t.csv", file(t))
}

func TestCompare_ReportsErrorsOfPairs(t *testing.T) {
	t.Parallel()
	recorded, err := read(t, "12,started,a.g[0]\n112,finished,a.g[0]\n12,started,a.g[1]\n92,finished,a.g[1]\n20,started,a.g[2]\n50,evicted,a.g[2]\n58,gone,a.g[2]\n")
	if err != nil {
		t.Fatal(err)
	}
	replayed := NewLives()
	for _, ev := range []timeline.Event{
		{At: 10e9, Kind: timeline.Started, Alloc: "a.g[0]"},
		{At: 110e9, Kind: timeline.Finished, Alloc: "a.g[0]"},
		{At: 10e9, Kind: timeline.Started, Alloc: "a.g[1]"},
		{At: 110e9, Kind: timeline.Finished, Alloc: "a.g[1]"},
		{At: 10e9, Kind: timeline.Started, Alloc: "a.g[2]"},
		{At: 50e9, Kind: timeline.Evicted, Alloc: "a.g[2]"},
		{At: 55e9, Kind: timeline.Gone, Alloc: "a.g[2]"},
		{At: 60e9, Kind: timeline.Started, Alloc: "a.g[2]#1"},
	} {
		replayed.Observe(ev)
	}
	r := Compare(file(t), recorded, replayed)
	if r.Recorded != 3 || r.Replayed != 4 || r.Both != 3 {
		t.Errorf("%+v", r)
	}
	for i, want := range []struct {
		pairs                     int
		p50, most, bias, relative float64
	}{
		{2, 0, 20, 10, 20.0 / 180},       // durations 100 and 80; replayed 100 and 100
		{1, 3, 3, -3, 3.0 / 8},           // kill times 8 and 5
		{3, 2, 10, -14.0 / 3, 14.0 / 14}, // delays 2, 2, 10 and 0, 0, 0
	} {
		m := r.Measures[i]
		if m.Pairs != want.pairs || *m.Error.P50 != want.p50 || *m.Error.Max != want.most || math.Abs(*m.Bias-want.bias) > 1e-12 || math.Abs(*m.Relative-want.relative) > 1e-12 {
			text, _ := json.Marshal(m)
			t.Errorf("%s, want %+v", text, want)
		}
	}
}

// With the recorded medians the replay of equal instances is exact.
func TestSet_TakesMedians(t *testing.T) {
	t.Parallel()
	recorded, err := read(t, "0,started,a.g[0]\n10,finished,a.g[0]\n0,started,a.g[1]\n30,finished,a.g[1]\n0,started,a.g[2]\n25,finished,a.g[2]\n1,stopped,old\n2.5,gone,old\n")
	if err != nil {
		t.Fatal(err)
	}
	f := file(t)
	with, changed := Set(f, recorded)
	if g := with.Jobs[0].Groups[0]; g.Duration != scenario.Duration(25*time.Second) || g.KillTimeout != scenario.Duration(5*time.Second) {
		t.Errorf("%+v", g)
	}
	if g := with.Jobs[1].Groups[0]; g.KillTimeout != scenario.Duration(1500*time.Millisecond) {
		t.Errorf("%+v", g)
	}
	if len(changed) != 2 || changed[0].Of != 3 || f.Jobs[0].Groups[0].Duration != scenario.Duration(100*time.Second) {
		t.Errorf("%+v, and the original %+v", changed, f.Jobs[0].Groups[0])
	}
}

func TestRead_RejectsInvalidRows(t *testing.T) {
	t.Parallel()
	_, err := read(t, "1,started,a.g[3]\n1,started,c.g[0]\n1,started,a.g[0]#x\nNaN,started,a.g[0]\n1,begun,a.g[0]\n1,started,\n1,started,old\n1,placed,a.g[2]#1\n1,step,\n")
	if err == nil {
		t.Fatal("unexpected success")
	}
	for _, want := range []string{`t.csv:2: unknown instance "a.g[3]"`, `t.csv:3: unknown instance "c.g[0]"`, "t.csv:4: unknown", "t.csv:5: at_s", "t.csv:6: kind", "t.csv:7: alloc"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nis missing %s", err, want)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 6 {
		t.Errorf("%d errors, want 6:\n%v", n, err)
	}
	src := build.Source{FS: fstest.MapFS{"t.csv": {Data: []byte("seed,at_s,kind,alloc\n1,1,started,a.g[0]\n2,1,started,a.g[0]\n3,1,started,b\n")}}}
	const want = "t.csv:3: the row is of another run than the first one; select the rows of one run"
	if _, err := Read(src, "t.csv", file(t)); err == nil || err.Error() != want {
		t.Errorf("%v, want only %s", err, want)
	}
}

func TestRead_RejectsTimelinesWithoutMeaning(t *testing.T) {
	t.Parallel()
	for rows, want := range map[string]string{
		"":                                "t.csv: the timeline has no events of instances",
		"1,step,\n":                       "t.csv: the timeline has no events of instances",
		"5,started,old\n1,finished,old\n": `t.csv:3: instance "old" finishes at 1 s, before its start at 5 s`,
		"1,finished,old\n5,started,old\n": `t.csv:3: instance "old" finishes at 1 s, before its start at 5 s`,
	} {
		if _, err := read(t, rows); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", rows, err, want)
		}
	}
}
