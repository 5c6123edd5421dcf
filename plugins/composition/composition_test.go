package composition_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/composition"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/policies/protect"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// gate requires a gap, and another answer at a time.
type gate struct {
	gap     int32
	recheck int64
}

func (g *gate) Info() sdk.Info { return sdk.Info{Name: "gate", Delta: g.gap} }

func (g *gate) PriorityDelta(_ *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error {
	for row := range gap {
		if row%2 == 0 {
			gap[row] = g.gap
		}
	}
	recheck.At(g.recheck)
	return nil
}

// scorer scores each row by a function of it.
type scorer struct {
	info  sdk.Info
	score func(in *sdk.Candidates, row int) (tier int64, score float64)
}

func (s *scorer) Info() sdk.Info { return s.info }

func (s *scorer) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	for row := range out.Tier {
		out.Tier[row], out.Score[row] = s.score(in, row)
	}
	return nil
}

func native(name string, start func() sdk.Policy) composition.Part {
	return composition.Part{Name: name, Module: policy.Native("sha256:"+name, start)}
}

func scores(name string, score func(in *sdk.Candidates, row int) (int64, float64)) composition.Part {
	return native(name, func() sdk.Policy { return &scorer{sdk.Info{Name: name}, score} })
}

var (
	defaults   = native("default", func() sdk.Policy { return rules.New() })
	leastWaste = native("least-waste", func() sdk.Policy { return leastwaste.New() })
	protected  = native("protect", func() sdk.Policy { return protect.New() })
	byPriority = scores("by-priority", func(in *sdk.Candidates, row int) (int64, float64) { return int64(in.Rows.Priority[row]), 0 })
)

// start returns an instance of a composition with a configuration.
func start(t *testing.T, config string, uses composition.Uses, parts ...composition.Part) policy.Instance {
	t.Helper()
	m, err := composition.New("both", "sha256:both", parts, uses)
	if err != nil {
		t.Fatal(err)
	}
	c, err := settings.Read(m.Settings(), []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	in, err := m.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	return in
}

// candidates returns one option per list of priorities, which lacks as much as the number
// of rows that need states.
func candidates(need float64, options ...[]int32) *sdk.Candidates {
	c := &policytest.Case{Dims: []string{"cpu"}, Preemptor: sdk.Preemptor{Priority: 90, Delta: 10, Ask: []float64{need}}}
	for i, priorities := range options {
		o := policytest.Option{Node: int32(i), Free: []float64{0}}
		for _, p := range priorities {
			o.Rows = append(o.Rows, policytest.Row{Priority: p, Use: []float64{1}})
		}
		c.Options = append(c.Options, o)
	}
	return c.Candidates()
}

func TestPriorityDelta_RequiresEveryGate(t *testing.T) {
	t.Parallel()
	in := start(t, "", composition.Uses{Eligible: []string{"wide", "default", "wider"}},
		native("wide", func() sdk.Policy { return &gate{30, 500} }), defaults,
		native("wider", func() sdk.Policy { return &gate{sdk.NeverEligible, 300} }))
	c := candidates(1, []int32{1, 2, 3})
	gap, recheck := []int32{10, 10, 10}, sdk.Recheck{}
	if err := in.PriorityDelta(c, gap, &recheck); err != nil {
		t.Fatal(err)
	}
	if want := []int32{sdk.NeverEligible, 10, sdk.NeverEligible}; !slices.Equal(gap, want) || recheck.Time() != 300 {
		t.Errorf("gaps %v, again at %d; want %v at 300", gap, recheck.Time(), want)
	}
	if info := in.Info(); info.Delta != sdk.NeverEligible || in.Hooks() != policy.HookDelta {
		t.Errorf("base gap %d, hooks %b", info.Delta, in.Hooks())
	}
}

func TestScoreVictims_LaterPartsBreakTiesOfEarlierOnes(t *testing.T) {
	t.Parallel()
	thirds := scores("thirds", func(_ *sdk.Candidates, row int) (int64, float64) { return 0, float64(row / 3) })
	never := scores("never", func(_ *sdk.Candidates, row int) (int64, float64) {
		if row == 1 {
			return 0, math.Inf(1)
		}
		return -int64(row % 2), 0
	})
	in := start(t, "", composition.Uses{Order: []string{"thirds", "never"}}, thirds, never)
	c := candidates(1, []int32{1, 1, 1, 1, 1, 1})
	out := sdk.VictimScores{Tier: make([]int64, 6), Score: make([]float64, 6)}
	if err := in.ScoreVictims(c, &out); err != nil {
		t.Fatal(err)
	}
	// Rows 0 and 2 are equal for both parts; of rows 3 to 5, the odd ones precede.
	if want := []int64{0, 0, 0, 1, 2, 1}; !slices.Equal(out.Tier, want) {
		t.Errorf("tiers %v, want %v", out.Tier, want)
	}
	if want := []float64{0, math.Inf(1), 0, 0, 0, 0}; !slices.Equal(out.Score, want) {
		t.Errorf("scores %v, want %v", out.Score, want)
	}
}

// The lowest two priorities suffice, so that the part which selects sets of victims never
// chooses the highest. Rows are in the order of priorities.
func TestSelectVictims_NarrowsToLowestSufficientTiers(t *testing.T) {
	t.Parallel()
	highest := native("highest", func() sdk.Policy { return highestFirst{} })
	for _, first := range []composition.Part{defaults, byPriority} {
		in := start(t, "", composition.Uses{Order: []string{first.Name, "highest"}}, first, highest)
		c := candidates(3, []int32{30, 10, 20, 30, 20, 10}, []int32{5, 7}, []int32{5, 6, 7, 8})
		var out sdk.Selection
		out.Reset()
		if err := in.SelectVictims(c, &out); err != nil {
			t.Fatal(err)
		}
		got := [][]int32{slices.Clone(out.Rows(0)), slices.Clone(out.Rows(1)), slices.Clone(out.Rows(2))}
		// The second option does not fit whatever is evicted; of the third, three rows suffice.
		if diff := cmp.Diff([][]int32{{0, 1, 2, 3}, {6, 7}, {8, 9, 10}}, got); diff != "" {
			t.Errorf("after %s: %s", first.Name, diff)
		}
	}
}

// highestFirst lists all rows of an option by descending priority.
type highestFirst struct{}

func (highestFirst) Info() sdk.Info { return sdk.Info{Name: "highest"} }

func (highestFirst) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	for o := range in.Len() {
		var rows []int
		for row := in.FirstRow[o]; row < in.FirstRow[o+1]; row++ {
			rows = append(rows, int(row))
		}
		slices.SortStableFunc(rows, func(a, b int) int { return int(in.Rows.Priority[b] - in.Rows.Priority[a]) })
		for _, row := range rows {
			out.Pick(row)
		}
		out.Next()
	}
	return nil
}

func TestStart_DeclaresWhatHoldsForAllParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		uses                composition.Uses
		hooks               policy.Hooks
		ascending, monotone bool
	}{
		{composition.Uses{Order: []string{"default"}, Option: []string{"default"}}, policy.HookSelectVictims | policy.HookScoreOptions, true, true},
		{composition.Uses{Order: []string{"default", "least-waste"}}, policy.HookSelectVictims, true, false},
		{composition.Uses{Order: []string{"by-priority", "least-waste"}}, policy.HookSelectVictims, false, false},
		{composition.Uses{Order: []string{"default", "by-priority"}}, policy.HookScoreVictims, false, false},
		{composition.Uses{Eligible: []string{"protect"}, Option: []string{"least-waste"}}, policy.HookDelta | policy.HookScoreOptions, false, true},
	} {
		in := start(t, "", c.uses, defaults, leastWaste, protected, byPriority)
		info := in.Info()
		if in.Hooks() != c.hooks || info.Ascending != c.ascending || info.Monotone != c.monotone || info.Delta != 10 {
			t.Errorf("%v: hooks %b, %+v", c.uses, in.Hooks(), info)
		}
	}
}

// The host fills the columns of a hook for the parts that answer it, and no others.
func TestStart_ReadsColumnsByHook(t *testing.T) {
	t.Parallel()
	m, err := composition.New("both", "sha256:both", []composition.Part{defaults, leastWaste, protected},
		composition.Uses{Eligible: []string{"protect"}, Order: []string{"default", "least-waste"}, Option: []string{"default"}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := policy.NewVersion(policy.Source{Name: "both", Module: m})
	if err != nil {
		t.Fatal(err)
	}
	gate, chooser := protect.New().Info().Columns, rules.New().Info().Columns
	for hook, want := range map[policy.Hooks]sdk.Columns{policy.HookDelta: gate, policy.HookScoreOptions: chooser} {
		if got := v.Columns(hook); got != want {
			t.Errorf("hook %b reads columns %b, want %b", hook, got, want)
		}
	}
	if got := v.Columns(policy.HookSelectVictims); got&chooser != chooser || got.Has(sdk.StartColumn) || !got.Has(sdk.LostWorkColumn) {
		t.Errorf("order reads columns %b", got)
	}
	if v.Info().Columns&gate != gate {
		t.Errorf("the columns of all hooks are %b", v.Info().Columns)
	}
}

func TestNew_ListsEveryProblem(t *testing.T) {
	t.Parallel()
	adaptive := native("adaptive", func() sdk.Policy {
		return &scorer{sdk.Info{Name: "adaptive", Adaptive: true}, func(*sdk.Candidates, int) (int64, float64) { return 0, 0 }}
	})
	for _, c := range []struct {
		uses composition.Uses
		want []string
	}{
		{composition.Uses{Eligible: []string{"one"}, Order: []string{"two", "default"}}, []string{`eligible: unknown part "one"`, `order: unknown part "two"`}},
		{composition.Uses{}, []string{"no part is used"}},
		{
			composition.Uses{
				Eligible: []string{"least-waste"}, Order: []string{"least-waste", "adaptive", "protect", "default"},
				Option: []string{"protect", "default"}, Bindings: []string{"protect"},
			},
			[]string{
				"bindings: part protect has no hook preemptBindings",
				"eligible: part least-waste has no hook priorityDelta",
				"option: part protect has no hook scoreOptions", "option: 2 parts, but one alone can decide",
				"order: part least-waste selects sets of victims", "order: part adaptive scores candidates after each pick",
				"order: part protect has no hook scoreVictims or selectVictims",
			},
		},
	} {
		_, err := composition.New("bad", "sha256:bad", []composition.Part{defaults, leastWaste, protected, adaptive}, c.uses)
		if err == nil {
			t.Fatalf("%v is accepted", c.uses)
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(c.want) {
			t.Fatalf("%q: want %q", lines, c.want)
		}
		for i := range lines {
			if !strings.Contains(lines[i], c.want[i]) {
				t.Errorf("%q: want %q", lines[i], c.want[i])
			}
		}
	}
	changed := protected
	changed.Config = []byte(`{"minRuntime":"soon","speed":1}`)
	_, err := composition.New("bad", "sha256:bad", []composition.Part{changed}, composition.Uses{Eligible: []string{"protect"}, Order: []string{"none"}, Option: []string{"protect"}})
	for _, want := range []string{
		"part protect: minRuntime: invalid value", "speed: unknown setting", `order: unknown part "none"`, "option: part protect has no hook scoreOptions",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
}

func TestSettings_AreForwardedToParts(t *testing.T) {
	t.Parallel()
	changed := protected
	changed.Config = []byte(`{"minRuntime":"2m","secondsByNamespace":{"b":30,"a":20}}`)
	m, err := composition.New("both", "sha256:both", []composition.Part{changed, leastWaste}, composition.Uses{Eligible: []string{"protect"}, Order: []string{"least-waste"}})
	if err != nil {
		t.Fatal(err)
	}
	defaultOf := map[string]string{}
	for _, s := range m.Settings() {
		defaultOf[s.Name] = s.Default
	}
	for name, want := range map[string]string{"protectMinRuntime": "2m0s", "protectSecondsByNamespace": "a=20,b=30", "leastWasteBands": "10"} {
		if defaultOf[name] != want {
			t.Errorf("default of %s is %q, want %q", name, defaultOf[name], want)
		}
	}
	// A row that has run for one minute is protected for two minutes, unless the setting differs.
	for config, want := range map[string]int32{``: sdk.NeverEligible, `{"protectMinRuntime":"30s"}`: 10} {
		in := start(t, config, composition.Uses{Eligible: []string{"protect"}}, changed)
		c := candidates(1, []int32{1})
		c.Now = 1e18
		c.Rows.Start = []int64{c.Now - 60e9}
		c.Rows.Namespace, c.Strings = []int32{0}, []string{"other"}
		gap := []int32{10}
		if err := in.PriorityDelta(c, gap, new(sdk.Recheck)); err != nil || gap[0] != want {
			t.Errorf("%s: gap %d, %v; want %d", config, gap[0], err, want)
		}
	}
}

// failing fails in its hook.
type failing struct{ err error }

func (failing) Info() sdk.Info { return sdk.Info{Name: "failing"} }

func (f failing) ScoreVictims(_ *sdk.Candidates, out *sdk.VictimScores) error {
	out.Score[0] = math.NaN()
	return f.err
}

func TestCall_FaultNamesThePart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err   error
		fault policy.Fault
		want  string
	}{
		{errors.New("no"), policy.FaultGuest, "policy both: ScoreVictims: part failing: no"},
		{&policy.Error{Fault: policy.FaultLimit, Err: errors.New("out of fuel")}, policy.FaultLimit, "policy both: ScoreVictims: part failing: out of fuel"},
		{nil, policy.FaultAnswer, "policy both: ScoreVictims: part failing: invalid score NaN in row 0"},
	} {
		m, err := composition.New("both", "sha256:both", []composition.Part{
			native("failing", func() sdk.Policy { return failing{c.err} }), byPriority,
		}, composition.Uses{Order: []string{"failing", "by-priority"}})
		if err != nil {
			t.Fatal(err)
		}
		v, err := policy.NewVersion(policy.Source{Name: "both", Module: m})
		if err != nil {
			t.Fatal(err)
		}
		v.AddRef()
		in, err := v.Acquire()
		if err != nil {
			t.Fatal(err)
		}
		out := sdk.VictimScores{Tier: make([]int64, 1), Score: make([]float64, 1)}
		err = v.RecordCall("ScoreVictims", in.ScoreVictims(candidates(1, []int32{1}), &out))
		fault, ok := errors.AsType[*policy.Error](err)
		if !ok || fault.Fault != c.fault || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s with fault %v", err, c.want, c.fault)
		}
		if v.PartOf(policy.HookScoreVictims) != "failing, then by-priority" || v.PartOf(policy.HookScoreOptions) != "" {
			t.Errorf("parts %q and %q", v.PartOf(policy.HookScoreVictims), v.PartOf(policy.HookScoreOptions))
		}
		v.Release(in)
		v.ReleaseRef()
	}
}

func TestArchive_DigestCoversEveryPart(t *testing.T) {
	t.Parallel()
	archive := func(change func(*composition.Archive)) []byte {
		a := &composition.Archive{
			Name: "both",
			Parts: []composition.Code{
				{Name: "protect", Kind: composition.Builtin, Builtin: "protect", Digest: "sha256:1"},
				{Name: "mine", Kind: bundle.Wasm, Code: []byte("\x00asm....")},
			},
			Uses: composition.Uses{Eligible: []string{"protect"}, Order: []string{"mine"}},
		}
		change(a)
		a.Parts[1].Digest = bundle.Digest(a.Parts[1].Code)
		text, err := a.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := composition.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, again); diff != "" {
			t.Fatal(diff)
		}
		return text
	}
	seen := map[string]int{}
	for i, change := range []func(*composition.Archive){
		func(*composition.Archive) {},
		func(a *composition.Archive) { a.Parts[0].Digest = "sha256:2" },
		func(a *composition.Archive) { a.Parts[1].Code = []byte("\x00asm...!") },
		func(a *composition.Archive) { a.Parts[0].Config = []byte(`{"minRuntime":"1m"}`) },
		func(a *composition.Archive) { a.Parts[1].Limits.Fuel = 7 },
		func(a *composition.Archive) { a.Uses.Option = []string{"mine"} },
	} {
		digest := bundle.Digest(archive(change))
		if other, ok := seen[digest]; ok {
			t.Errorf("changes %d and %d have the same digest", other, i)
		}
		seen[digest] = i
	}
	same := func(*composition.Archive) {}
	text := archive(same)
	if again := archive(same); string(again) != string(text) {
		t.Error("equal archives differ")
	}
	for i := 0; i < len(text); i += 37 { // any changed byte is detected
		damaged := slices.Clone(text)
		damaged[i] ^= 1
		if a, err := composition.Decode(damaged); err == nil && cmp.Equal(a, must(composition.Decode(text))) {
			t.Fatalf("byte %d was changed, and the content is the same", i)
		}
	}
	for _, bad := range [][]byte{nil, []byte("composition.json"), text[:len(text)-512], append(slices.Clone(text), 0)} {
		if _, err := composition.Decode(bad); err == nil {
			t.Errorf("%d bytes are accepted", len(bad))
		}
	}
}

func must(a *composition.Archive, err error) *composition.Archive {
	if err != nil {
		panic(err)
	}
	return a
}

// sandboxed is a module with a sandbox, or with none.
type sandboxed struct {
	policy.Module

	sandbox string
}

func (s sandboxed) Isolation() string { return s.sandbox }

// One part without a sandbox gives a composition no less access than it has alone, whatever
// the others have.
func TestIsolation_ListsPartsWithoutSandbox(t *testing.T) {
	part := func(name, sandbox string) composition.Part {
		return composition.Part{Name: name, Module: sandboxed{policy.Native("sha256:"+name, func() sdk.Policy { return &gate{gap: 1} }), sandbox}}
	}
	linked := native("linked", func() sdk.Policy { return &gate{gap: 1} })
	for want, parts := range map[string][]composition.Part{
		"":                  {linked},
		"WebAssembly":       {linked, part("a", "WebAssembly"), part("b", "WebAssembly")},
		"WebAssembly, none": {part("a", "WebAssembly"), part("b", policy.NoIsolation)},
		"none":              {part("a", policy.NoIsolation), linked},
	} {
		var uses composition.Uses
		for _, p := range parts {
			uses.Eligible = append(uses.Eligible, p.Name)
		}
		m, err := composition.New("all", "sha256:all", parts, uses)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Isolation(); got != want {
			t.Errorf("isolation %q, want %q", got, want)
		}
	}
}
