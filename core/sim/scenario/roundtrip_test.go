package scenario

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
)

// TestEncode_RoundTrip encodes and decodes random files that use every field.
func TestEncode_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFile(t)
		if err := f.Validate(); err != nil {
			t.Fatalf("the generator returned an invalid file: %v", err)
		}
		for _, format := range []Format{JSON, YAML} {
			var b bytes.Buffer
			if err := Encode(&b, f, format); err != nil {
				t.Fatal(err)
			}
			again, err := Decode("f", bytes.NewReader(b.Bytes()))
			if err != nil {
				t.Fatalf("cannot decode the encoded file: %v\n%s", err, b.String())
			}
			if diff := cmp.Diff(f, again, sameFile); diff != "" {
				t.Fatalf("%s: round trip changed the file: %s\n%s", format, diff, b.String())
			}
		}
	})
}

// TestEncode_OneJobPerLine keeps large files readable by line-oriented tools.
func TestEncode_OneJobPerLine(t *testing.T) {
	t.Parallel()
	f := &File{Version: 1, Name: "x", Jobs: []Job{{ID: "a<b"}, {ID: "b"}}, Events: []Event{{Submit: "b"}}}
	var b bytes.Buffer
	if err := Encode(&b, f, JSON); err != nil {
		t.Fatal(err)
	}
	want := `{
"version": 1,
"name": "x",
"jobs": [
{"id":"a<b"},
{"id":"b"}
],
"events": [
{"at":"0s","submit":"b"}
]
}
`
	if b.String() != want {
		t.Errorf("got:\n%s", b.String())
	}
}

func drawFile(t *rapid.T) *File {
	f := &File{
		Version: 1, Name: name.Draw(t, "name"), Description: text.Draw(t, "description"), Seed: rapid.Uint64().Draw(t, "seed"),
		Scheduler: Scheduler{
			Algorithm: rapid.SampledFrom([]string{"", "binpack", "spread"}).Draw(t, "algorithm"),
			Policy:    text.Draw(t, "policy"),
		},
		Until: maybe(span).Draw(t, "until"),
	}
	if rapid.Bool().Draw(t, "preemption") {
		flag := maybe(rapid.SampledFrom([]PreemptionMode{{}, {On: true}, {Observe: true}}))
		f.Scheduler.Preemption = &Preemption{
			Service: flag.Draw(t, "service"), Batch: flag.Draw(t, "batch"), System: flag.Draw(t, "system"),
			SysBatch: flag.Draw(t, "sysbatch"), Binding: maybe(rapid.Bool()).Draw(t, "binding"),
		}
	}
	f.Scheduler.PriorityDelta = maybe(rapid.Int32Min(0)).Draw(t, "delta")
	for i := range rapid.IntRange(0, 2).Draw(t, "policies") {
		f.Policies = append(f.Policies, PolicyVariant{
			Name: fmt.Sprintf("p%d", i), Use: "u" + text.Draw(t, "use"), Config: drawConfig(t, 3),
			Grant: rapid.SampledFrom([][]string{nil, {"keepRedundant"}}).Draw(t, "grant"),
		})
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "namespaces") {
		f.Namespaces = append(f.Namespaces, Namespace{Name: fmt.Sprint(i), Weight: maybe(rapid.Float64Range(1e-9, 1e9)).Draw(t, "weight")})
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "classes") {
		f.Classes = append(f.Classes, PriorityClass{
			Name: fmt.Sprintf("c%d", i), Value: rapid.Int32Max(model.HighestUserPriority).Draw(t, "value"), GlobalDefault: rapid.Bool().Draw(t, "global"),
			PreemptionPolicy: never.Draw(t, "policy"), Description: text.Draw(t, "description"),
		})
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		f.Nodes = append(f.Nodes, drawNode(t, i))
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "jobs") {
		f.Jobs = append(f.Jobs, drawJob(t, i, len(f.Classes)))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "budgets") {
		f.Budgets = append(f.Budgets, drawBudget(t, i))
	}
	drawStory(t, f)
	return f
}

func drawBudget(t *rapid.T, i int) Budget {
	b := Budget{
		Name: fmt.Sprintf("b%d", i), Namespace: name.Draw(t, "namespace"),
		Labels:      rapid.MapOfN(word, text, 1, 2).Draw(t, "labels"),
		Enforcement: rapid.SampledFrom([]string{"", "bestEffort", "strict"}).Draw(t, "enforcement"),
	}
	bound := &Bound{Number: rapid.Int32Range(0, 100).Draw(t, "bound"), Percent: rapid.Bool().Draw(t, "percent")}
	if rapid.Bool().Draw(t, "min") {
		b.MinAvailable = bound
	} else {
		b.MaxUnavailable = bound
	}
	return b
}

var (
	name   = rapid.StringMatching(`[a-z0-9.-]{1,8}`)
	text   = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "null", "~", "true", "no", "1", "1.10", "0x1f", "- a", "a: b", "#c", "<<", "2001-01-01", "\u0085", "\ufeffx", " x ", "a\r\nb\n", "💥", "\u2028", "&a", "*a", "!x", "%", "@", "`", "'", "\"", "|", ">", "?", "{}", "[]", "\x7f\x00\t"}))
	word   = rapid.StringN(1, 12, 30)
	span   = rapid.Map(rapid.Int64Range(0, int64(maxDuration)), func(n int64) Duration { return Duration(n) })
	never  = rapid.SampledFrom([]string{"", "Never", "PreemptLowerPriority"})
	amount = rapid.Int64Range(0, 1<<48)
)

// maybe draws a pointer to a value, or nil.
func maybe[T any](of *rapid.Generator[T]) *rapid.Generator[*T] { return rapid.Ptr(of, true) }

func texts() *rapid.Generator[map[string]string] { return rapid.MapOfN(word, text, 0, 3) }

func ports() *rapid.Generator[[]uint16] {
	return rapid.SliceOfNDistinct(rapid.Uint16Min(1), 0, 3, rapid.ID[uint16])
}

var resources = rapid.SampledFrom([]string{"cpu", "memory", "disk", "network", "nvidia.com/gpu", "a\"]b", "[", "é"})

// drawConfig draws the configuration of a policy. Whole numbers are int64, the type
// that Decode returns.
func drawConfig(t *rapid.T, depth int) map[string]any {
	m := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "entries") {
		m[text.Draw(t, "key")] = drawValue(t, depth)
	}
	return m
}

func drawValue(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Int64().Draw(t, "int")
	case 3:
		return float64(rapid.Int32().Draw(t, "half")) + 0.5
	case 4:
		if depth > 0 {
			return drawConfig(t, depth-1)
		}
	case 5:
		list := []any{}
		for range rapid.IntRange(0, depth).Draw(t, "length") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	}
	return text.Draw(t, "text")
}

func drawNode(t *rapid.T, i int) Node {
	n := Node{
		ID: fmt.Sprintf("n%d", i), Count: maybe(rapid.IntRange(0, 5)).Draw(t, "count"),
		Datacenter: name.Draw(t, "dc"), Class: name.Draw(t, "class"), Ready: maybe(rapid.Bool()).Draw(t, "ready"),
		Ports: ports().Draw(t, "ports"), Attributes: texts().Draw(t, "attributes"),
		Capacity: rapid.MapOfN(resources, amount, 0, 4).Draw(t, "capacity"), Reserved: Quantities{},
	}
	for resource, has := range n.Capacity {
		n.Reserved[resource] = has / 2
	}
	for j := range rapid.IntRange(0, 2).Draw(t, "taints") {
		effect := rapid.SampledFrom([]string{"NoSchedule", "PreferNoSchedule"}).Draw(t, "effect")
		n.Taints = append(n.Taints, Taint{Key: fmt.Sprintf("t%d", j), Value: text.Draw(t, "value"), Effect: effect})
	}
	for j := range rapid.IntRange(0, 2).Draw(t, "devices") {
		n.Devices = append(n.Devices, Device{
			ID: fmt.Sprintf("v/t/%d", j), Count: rapid.Int32Min(0).Draw(t, "count"), Attributes: texts().Draw(t, "attributes"),
		})
	}
	return n
}

func drawJob(t *rapid.T, i, classes int) Job {
	j := Job{
		ID: fmt.Sprintf("j%d", i), Namespace: name.Draw(t, "namespace"),
		Type:             rapid.SampledFrom([]string{"", "service", "batch", "system", "sysbatch"}).Draw(t, "type"),
		PreemptionPolicy: never.Draw(t, "policy"), Preemptible: maybe(rapid.Bool()).Draw(t, "preemptible"),
		AllAtOnce: rapid.Bool().Draw(t, "gang"), Datacenters: rapid.SliceOfN(name, 0, 2).Draw(t, "dcs"), Policy: text.Draw(t, "p"),
	}
	j.DisruptionMode = rapid.SampledFrom([]string{"", "single", "all"}).Draw(t, "mode")
	if rapid.Bool().Draw(t, "tolerant") {
		j.Toleration = &PreemptionToleration{
			MinPreemptorPriority: maybe(rapid.Int32()).Draw(t, "preemptor"), MinRuntime: span.Draw(t, "runtime"),
		}
	}
	if classes > 0 && rapid.Bool().Draw(t, "by class") {
		j.PriorityClass = "c0"
	} else {
		j.Priority = maybe(rapid.Int32()).Draw(t, "priority")
	}
	for k := range rapid.IntRange(1, 2).Draw(t, "groups") {
		j.Groups = append(j.Groups, drawGroup(t, k))
	}
	return j
}

func drawGroup(t *rapid.T, k int) Group {
	g := Group{
		Name: fmt.Sprintf("g%d", k), Count: maybe(rapid.IntRange(0, 1)).Draw(t, "count"),
		Resources: rapid.MapOfN(resources, amount, 0, 4).Draw(t, "resources"),
		Ports:     ports().Draw(t, "ports"), Labels: texts().Draw(t, "labels"),
		MaxParallelEvictions: maybe(rapid.IntRange(0, 9)).Draw(t, "evictions"),
		KillTimeout:          span.Draw(t, "kill"), Duration: span.Draw(t, "duration"), Checkpoint: span.Draw(t, "checkpoint"),
		Annotations: rapid.MapOfN(text, rapid.Float64(), 0, 2).Draw(t, "annotations"),
	}
	if rapid.Bool().Draw(t, "patient") {
		g.Disconnect = &Disconnect{LostAfter: maybe(rapid.Map(span, func(d Duration) Duration { return max(d, 1) })).Draw(t, "lost after"), Replace: maybe(rapid.Bool()).Draw(t, "replace")}
	}
	g.Tolerations = rapid.SampledFrom([][]Toleration{
		nil, {{Operator: "Exists"}}, {{Key: "a", Value: "b"}, {Key: "c", Operator: "Equal"}, {Key: "d", Operator: "Exists"}},
	}).Draw(t, "tolerations")
	for range rapid.IntRange(0, 3).Draw(t, "constraints") {
		g.Constraints = append(g.Constraints, drawConstraint(t))
		weight := rapid.IntRange(-100, 100).Draw(t, "weight")
		g.Affinities = append(g.Affinities, Affinity{Constraint: Constraint{Attribute: word.Draw(t, "a"), Operator: "is_set"}, Weight: weight})
		g.Devices = append(g.Devices, DeviceRequest{
			ID: "t", Count: maybe(rapid.Int32Min(1)).Draw(t, "count"), Constraints: []Constraint{{Attribute: "a", Operator: "=", Value: "b"}},
		})
		g.Spread = append(g.Spread, Spread{
			Attribute: word.Draw(t, "a"), Weight: maybe(rapid.IntRange(1, 100)).Draw(t, "weight"),
			Targets: rapid.MapOfN(text, rapid.IntRange(0, 50), 0, 2).Draw(t, "targets"), MaxSkew: maybe(rapid.IntMin(1)).Draw(t, "skew"),
		})
		term := LabelTerm{Labels: rapid.MapOfN(word, text, 1, 2).Draw(t, "labels"), TopologyKey: word.Draw(t, "key")}
		g.Colocate, g.Separate = append(g.Colocate, term), append(g.Separate, term)
	}
	return g
}

func drawConstraint(t *rapid.T) Constraint {
	c := Constraint{Attribute: word.Draw(t, "attribute"), Value: word.Draw(t, "value")}
	switch c.Operator = rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">=", "in", "notin", "regexp", "version", "is_not_set", "distinct_hosts", "distinct_property"}).Draw(t, "operator"); c.Operator {
	case "in", "notin":
		if rapid.Bool().Draw(t, "list") {
			c.Value, c.Values = "", rapid.SliceOfN(word, 1, 3).Draw(t, "values")
		}
	case "regexp":
		c.Value = "^a+$"
	case "version":
		c.Value = ">= 1.2, < 2"
	case "is_not_set":
		c.Value = ""
	case "distinct_hosts":
		c.Attribute, c.Value = "", rapid.SampledFrom([]string{"", "true"}).Draw(t, "value")
	case "distinct_property":
		c.Value = "3"
	}
	return c
}

// drawStory adds running allocations, events and expectations. Running allocations
// request nothing, so that they always fit.
func drawStory(t *rapid.T, f *File) {
	f.Nodes = append(f.Nodes, Node{ID: "home"})
	f.Jobs = append(f.Jobs, Job{ID: "tiny", Groups: []Group{{Name: "g"}}})
	ids := []string{}
	for i := range rapid.IntRange(0, 3).Draw(t, "running") {
		ids = append(ids, fmt.Sprintf("a%d", i))
		f.Running = append(f.Running, Running{ID: ids[i], Job: "tiny", Group: "g", Node: "home", StartedAt: -span.Draw(t, "age")})
	}
	var at Duration
	for range rapid.IntRange(0, 3).Draw(t, "events") {
		at += span.Draw(t, "at") / 8
		f.Events = append(f.Events, rapid.SampledFrom([]Event{
			{At: at, Submit: "tiny"}, {At: at, Stop: "j0"}, {At: at, NodeDown: "home"}, {At: at, NodeUp: "home"}, {At: at, Drain: "home"},
		}).Draw(t, "event"))
	}
	if !rapid.Bool().Draw(t, "expect") {
		return
	}
	some := maybe(rapid.Just(append([]string{"tiny.g[3]#1"}, ids...)))
	none := maybe(rapid.Just([]string{}))
	f.Expect = &Expect{
		Running:  some.Draw(t, "running"),
		Bindings: maybe(rapid.Just([]ExpectBinding{})).Draw(t, "bindings"),
	}
	if rapid.Bool().Draw(t, "placements") {
		f.Expect.Placements = &[]ExpectPlacement{{
			At: maybe(span).Draw(t, "at"), Job: new("tiny"), Group: new("g"), Node: new("home"), Preempted: none.Draw(t, "preempted"),
		}, {
			Alloc: new("tiny.g[0]"), Preempted: some.Draw(t, "preempted"),
			PreemptedElsewhere: rapid.SampledFrom([]map[string][]string{nil, {}, {"home": ids}}).Draw(t, "elsewhere"),
		}}
	}
	if rapid.Bool().Draw(t, "unplaced") {
		f.Expect.Unplaced = &[]ExpectUnplaced{{Job: new("tiny"), Group: new("g"), Count: maybe(rapid.IntMin(1)).Draw(t, "count")}}
	}
}

// TestDecode_SameMessagesInBothFormats decodes the same invalid file as JSON and as YAML
// and requires equal messages.
func TestDecode_SameMessagesInBothFormats(t *testing.T) {
	t.Parallel()
	const asJSON = `{"version": 1, "name": "x", "colour": 1,
"nodes": [{"id": "n1", "capacity": {"cpu": "x", "memory": -1}, "ports": ["a"]}, 7],
"jobs": [{"id": "a", "priority": 1.5, "groups": {}}],
"events": [{"at": "soon", "submit": "b"}]}`
	_, err := Decode("f", strings.NewReader(asJSON))
	// A comment selects the YAML parser.
	_, err2 := Decode("f", strings.NewReader("{ # YAML\n"+asJSON[1:]))
	shifted := strings.NewReplacer("f:2:", "f:1:", "f:3:", "f:2:", "f:4:", "f:3:", "f:5:", "f:4:").Replace(err2.Error())
	if diff := cmp.Diff(err.Error(), shifted); diff != "" {
		t.Error(diff)
	}
}

// Large files are encoded in parts, which must not show.
func TestEncode_PartsOfLargeFilesDoNotShow(t *testing.T) {
	t.Parallel()
	f := &File{Version: 1, Name: "x"}
	for i := range 2*yamlChunk + 1 {
		f.Jobs = append(f.Jobs, Job{ID: fmt.Sprintf("job-%d", i), Groups: []Group{{Name: "main", Labels: map[string]string{"a": strings.Repeat("long ", i%40)}}}})
		f.Events = append(f.Events, Event{Submit: f.Jobs[i].ID})
	}
	var got, want bytes.Buffer
	calls, last := 0, 0
	err := EncodeObserved(&got, f, YAML, func(done, total int) {
		calls++
		if done < last || done > total || total != 2*len(f.Jobs) {
			t.Errorf("%d of %d after %d", done, total, last)
		}
		last = done
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range encodedFields(f) {
		if err := encodeYAMLPart(&want, field, false, &yamlCheck{most: maxYAMLValues}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("differs: %s", cmp.Diff(want.String(), got.String()))
	}
	if calls < 6 || last != 2*len(f.Jobs) {
		t.Errorf("%d calls, the last one at %d", calls, last)
	}
}

// A file that Decode would reject is not written as YAML.
func TestEncode_RefusesWhatIsTooLargeForYAML(t *testing.T) {
	f := &File{Version: 1, Name: "large"}
	for i := range 1000 {
		f.Nodes = append(f.Nodes, Node{ID: fmt.Sprint("n", i), Capacity: Quantities{"cpu": 1000}})
	}
	for _, tt := range []struct {
		most    int
		refused bool
	}{{1000, true}, {100_000, false}} {
		var out bytes.Buffer
		err := encodeYAML(&out, encodedFields(f), tt.most, func(int) {})
		if refused := err != nil && strings.Contains(err.Error(), "too large for YAML; write it as JSON"); refused != tt.refused {
			t.Errorf("at most %d values: %v", tt.most, err)
		}
		if tt.refused && out.Len() > 100_000 {
			t.Errorf("%d bytes were written", out.Len())
		}
	}
}
