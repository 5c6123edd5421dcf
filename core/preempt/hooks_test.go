package preempt_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Test policies are composed of these parts: struct{ info; scores } is a policy with one
// hook.
type (
	info    struct{ is sdk.Info }
	deltas  func(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error
	scores  func(in *sdk.Candidates, out *sdk.VictimScores) error
	selects func(in *sdk.Candidates, out *sdk.Selection) error
	rates   func(in *sdk.Options, out *sdk.OptionScores) error
)

func (i info) Info() sdk.Info {
	i.is.Name = "stub"
	return i.is
}

func (f deltas) PriorityDelta(in *sdk.Candidates, gap []int32, r *sdk.Recheck) error {
	return f(in, gap, r)
}
func (f scores) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error { return f(in, out) }
func (f selects) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error  { return f(in, out) }
func (f rates) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error     { return f(in, out) }

// stub returns a version of a policy. All instances share p.
func stub(p sdk.Policy, grants ...string) *policy.Version {
	v, err := policy.NewVersion(policy.Source{
		Name: "stub", Grants: grants,
		Module: policy.Native("test", func() sdk.Policy { return p }),
	})
	must(err)
	return v
}

// miniCluster is a few nodes of 10 cpu and 10 memory with their allocations in words:
// "n1: a(p20,4) b(p30,6,6)" lists priority, cpu and memory.
type miniCluster struct {
	store *state.Store
	snap  *state.Snapshot
	job   *model.Job
}

func newMiniCluster(job *model.Job, lines ...string) *miniCluster {
	return newMiniClusterWith(job, nil, lines...)
}

func newMiniClusterWith(job *model.Job, change func(id string, g *model.Group), lines ...string) *miniCluster {
	y := &miniCluster{store: state.New(), job: job}
	txn := y.store.Begin(1)
	for _, line := range lines {
		node, rest, _ := strings.Cut(line, ":")
		must(txn.NodeWriter().Upsert(coretest.Node(node, 10, 10, 0)))
		for word := range strings.FieldsSeq(rest) {
			id, numbers, _ := strings.Cut(strings.TrimSuffix(word, ")"), "(p")
			var p int32
			var cpu, mem int64
			if n, _ := fmt.Sscanf(numbers, "%d,%d,%d", &p, &cpu, &mem); n == 0 { // memory is optional
				panic(word)
			}
			j := coretest.Job("job-"+id).Priority(p).Ask(cpu, mem, 0).Obj()
			if change != nil {
				change(id, j.Groups[0])
			}
			must(txn.JobWriter().Upsert(j))
			txn.AllocWriter().Upsert(coretest.Running(id, j, 0, 0, node))
		}
	}
	must(txn.JobWriter().Upsert(job))
	y.snap = txn.Commit()
	return y
}

// request returns a search on every node for the job's first group.
func (y *miniCluster) request(v *policy.Version) preempt.Request {
	return preempt.Request{
		Group: y.job.Groups[0], Now: 1000, Algorithm: model.Binpack, Policy: v,
		Default: coretest.Policies().Default(), Nodes: y.snap.NodeOrder(), Evictions: &protect.EvictionCounts{},
	}
}

// run searches with a policy and returns the victims on every node.
func (y *miniCluster) run(t *testing.T, v *policy.Version) ([]string, error) {
	t.Helper()
	return y.runRequest(t, y.request(v))
}

func (y *miniCluster) runRequest(t *testing.T, r preempt.Request) ([]string, error) {
	t.Helper()
	f := &preempt.Finder{}
	err := f.Start(y.snap, r)
	defer f.Release()
	if err != nil {
		return nil, err
	}
	var list []string
	err = f.EachNode(func(c preempt.Choice) {
		p := optionOf(y.snap, c)
		list = append(list, p.node+": "+strings.Join(p.victims, " "))
	})
	return list, err
}

func preemptorJob(cpu int64) *model.Job {
	return coretest.Job("preemptor").Priority(50).Ask(cpu, 0, 0).Obj()
}

func TestFinder_CallsHooksAndEnforcesRules(t *testing.T) {
	t.Parallel()
	use := sdk.UseColumns
	inOrder := selects(func(in *sdk.Candidates, out *sdk.Selection) error {
		for i := range in.Len() {
			for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
				out.Pick(int(row))
			}
			out.Next()
		}
		return nil
	})
	backwards := selects(func(in *sdk.Candidates, out *sdk.Selection) error {
		for i := range in.Len() {
			for row := in.FirstRow[i+1] - 1; row >= in.FirstRow[i]; row-- {
				out.Pick(int(row))
			}
			out.Next()
		}
		return nil
	})
	for _, c := range []struct {
		name   string
		policy sdk.Policy
		grants []string
		asks   int64
		nodes  []string
		want   []string
	}{
		{
			"the policy sets the base gap",
			struct {
				info
				scores
			}{info{sdk.Info{Delta: 21}}, func(*sdk.Candidates, *sdk.VictimScores) error { return nil }},
			nil, 4,
			[]string{"n1: a(p29,10)", "n2: a2(p30,10)"},
			[]string{"n1: a"},
		},
		{
			"PriorityDelta sets a gap for each row",
			struct {
				info
				deltas
			}{info{}, func(in *sdk.Candidates, gap []int32, _ *sdk.Recheck) error {
				for row, p := range in.Rows.Priority {
					if gap[row] != in.Preemptor.Delta {
						return errors.New("a gap did not start at the base gap")
					}
					if gap[row] = 1; p == 20 {
						gap[row] = 31
					}
				}
				return nil
			}},
			nil, 4,
			[]string{"n1: a(p20,5) b(p49,5)", "n2: c(p20,10)", "n3: d(p50,10)", "n4: e(p51,10)"},
			[]string{"n1: b"},
		},
		{
			"a gap of zero or less does not lift the rule of strictly lower priority",
			struct {
				info
				deltas
			}{info{}, func(_ *sdk.Candidates, gap []int32, _ *sdk.Recheck) error {
				for i := range gap {
					gap[i] = math.MinInt32
				}
				return nil
			}},
			nil, 4,
			[]string{"n1: a(p50,10)", "n2: b(p49,10)"},
			[]string{"n2: b"},
		},
		{
			"victims are ordered by tier, score and row",
			struct {
				info
				scores
			}{info{sdk.Info{Columns: use}}, func(in *sdk.Candidates, out *sdk.VictimScores) error {
				for row := range in.Rows.Priority {
					out.Score[row] = -in.Rows.Use[0][row] // the largest first
					if in.Rows.Priority[row] == 10 {
						out.Tier[row] = 1
					}
				}
				return nil
			}},
			nil, 4,
			[]string{"n1: a(p10,5) b(p20,1) c(p30,4)", "n2: d(p10,2) e(p20,4) f(p20,4)", "n3: g(p10,10)"},
			[]string{"n1: c", "n2: e", "n3: g"},
		},
		{
			"a score of +Inf excludes a candidate",
			struct {
				info
				scores
			}{info{}, func(in *sdk.Candidates, out *sdk.VictimScores) error {
				for row, p := range in.Rows.Priority {
					if p == 10 {
						out.Score[row] = math.Inf(1)
					}
				}
				return nil
			}},
			nil, 4,
			[]string{"n1: a(p10,5) b(p20,5)", "n2: c(p10,10)"},
			[]string{"n1: b"},
		},
		{
			"victims are reprieved in reverse order of picking",
			struct {
				info
				selects
			}{info{}, inOrder},
			nil, 6,
			[]string{"n1: a(p10,2) b(p20,3) c(p30,5)", "n2: d(p10,1) e(p20,3) f(p30,6)"},
			[]string{"n1: a c", "n2: f"},
		},
		{
			"the policy's order is kept",
			struct {
				info
				selects
			}{info{}, backwards},
			nil, 2,
			[]string{"n1: a(p10,5) b(p20,5)"},
			[]string{"n1: b"},
		},
		{
			"keepRedundant without the grant reprieves",
			struct {
				info
				selects
			}{info{sdk.Info{KeepRedundant: true}}, inOrder},
			nil, 6,
			[]string{"n1: a(p10,2) b(p20,3) c(p30,5)"},
			[]string{"n1: a c"},
		},
		{
			"keepRedundant with the grant keeps every victim",
			struct {
				info
				selects
			}{info{sdk.Info{KeepRedundant: true}}, inOrder},
			[]string{policy.GrantKeepRedundant},
			2,
			[]string{"n1: a(p10,2) b(p20,3) c(p30,5)"},
			[]string{"n1: a b c"},
		},
		{
			"the grant alone changes nothing",
			struct {
				info
				selects
			}{info{}, inOrder},
			[]string{policy.GrantKeepRedundant},
			6,
			[]string{"n1: a(p10,2) b(p20,3) c(p30,5)"},
			[]string{"n1: a c"},
		},
		{
			"a list that frees too little drops the option without a fault",
			struct {
				info
				selects
			}{info{}, func(in *sdk.Candidates, out *sdk.Selection) error {
				for i := range in.Len() {
					out.Pick(int(in.FirstRow[i]))
					out.Next()
				}
				return nil
			}},
			nil, 5,
			[]string{"n1: a(p10,2) b(p20,8)", "n2: c(p10,5) d(p20,5)"},
			[]string{"n2: c"},
		},
		{
			"an adaptive policy is called again after each pick",
			struct {
				info
				scores
			}{info{sdk.Info{Adaptive: true, Columns: use}}, func(in *sdk.Candidates, out *sdk.VictimScores) error {
				// The row nearest to the remaining need: for 7 it is 5, then 2.
				for i := range in.Len() {
					for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
						out.Score[row] = math.Abs(in.Need[0][i] - in.Rows.Use[0][row])
					}
					if need, freed := in.Need[0][i], in.Freed[0][i]; need+freed != 7 {
						return fmt.Errorf("need is %v after %v were freed", need, freed)
					}
				}
				return nil
			}},
			nil, 7,
			[]string{"n1: a(p10,3) b(p20,2) c(p30,5)"},
			[]string{"n1: b c"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newMiniCluster(preemptorJob(c.asks), c.nodes...)
			got, err := y.run(t, stub(c.policy, c.grants...))
			for i := range got { // another test checks the picking order
				node, victims, _ := strings.Cut(got[i], ": ")
				got[i] = node + ": " + strings.Join(slices.Sorted(slices.Values(strings.Fields(victims))), " ")
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestFinder_ReturnsVictimsInPickingOrder(t *testing.T) {
	t.Parallel()
	y := newMiniCluster(preemptorJob(10), "n1: a(p10,3) b(p20,3) c(p30,4)")
	got, err := y.run(t, stub(struct {
		info
		scores
	}{info{}, func(_ *sdk.Candidates, out *sdk.VictimScores) error {
		copy(out.Score, []float64{2, 3, 1})
		return nil
	}}))
	if want := []string{"n1: c a b"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestFinder_RanksOptionsByTierScoreAndPosition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		rates rates
		want  string
	}{
		{"without scores the first", func(*sdk.Options, *sdk.OptionScores) error { return nil }, "n1"},
		{"the higher score", func(_ *sdk.Options, out *sdk.OptionScores) error {
			copy(out.Score, []float64{-1, 2, 2})
			return nil
		}, "n2"},
		{"a lower tier before any score", func(_ *sdk.Options, out *sdk.OptionScores) error {
			copy(out.Score, []float64{9, 9, 0})
			copy(out.Tiers[0], []int64{1, 1, math.MinInt64})
			return nil
		}, "n3"},
		{"tiers in order", func(_ *sdk.Options, out *sdk.OptionScores) error {
			copy(out.Tiers[0], []int64{7, 7, 8})
			copy(out.Tiers[1], []int64{1, 1, 0})
			copy(out.Tiers[3], []int64{1, 0, 0})
			return nil
		}, "n2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newMiniCluster(preemptorJob(4), "n1: a(p10,10)", "n2: b(p10,10)", "n3: c(p10,10)")
			f := startSearch(t, y.snap, y.request(stub(struct {
				info
				rates
			}{info{}, c.rates})))
			defer f.Release()
			if got := bestOf(t, y.snap, f); got == nil || got.node != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

// An answer that breaks a rule is a fault that names the policy and the hook. Nothing is
// chosen.
func TestFinder_RejectsInvalidAnswers(t *testing.T) {
	t.Parallel()
	boom := errors.New("guest message")
	selecting := func(f selects) sdk.Policy {
		return struct {
			info
			selects
		}{info{sdk.Info{KeepRedundant: true}}, f}
	}
	scoring := func(x float64) sdk.Policy {
		return struct {
			info
			scores
		}{info{}, func(_ *sdk.Candidates, out *sdk.VictimScores) error { out.Score[1] = x; return nil }}
	}
	rating := func(x float64) sdk.Policy {
		return struct {
			info
			rates
		}{info{}, func(_ *sdk.Options, out *sdk.OptionScores) error { out.Score[1] = x; return nil }}
	}
	picks := func(rows ...int) selects {
		return func(in *sdk.Candidates, out *sdk.Selection) error {
			for i := range in.Len() {
				for _, row := range rows {
					out.Pick(row)
				}
				out.Next()
				rows = []int{int(in.FirstRow[min(i+1, in.Len()-1)])}
			}
			return nil
		}
	}
	for _, c := range []struct {
		name   string
		policy sdk.Policy
		hook   string
		fault  policy.Fault
	}{
		{"a row of another option", selecting(picks(2)), "SelectVictims", policy.FaultAnswer},
		{"a row that does not exist", selecting(picks(99)), "SelectVictims", policy.FaultAnswer},
		{"a negative row", selecting(picks(-1)), "SelectVictims", policy.FaultAnswer},
		{"a row twice", selecting(picks(0, 0)), "SelectVictims", policy.FaultAnswer},
		{"too few options", selecting(func(in *sdk.Candidates, out *sdk.Selection) error { out.Next(); return nil }), "SelectVictims", policy.FaultAnswer},
		{"too many options", selecting(func(in *sdk.Candidates, out *sdk.Selection) error {
			for range in.Len() + 1 {
				out.Next()
			}
			return nil
		}), "SelectVictims", policy.FaultAnswer},
		{"an error", selecting(func(*sdk.Candidates, *sdk.Selection) error { return boom }), "SelectVictims", policy.FaultGuest},
		{"a panic", selecting(func(*sdk.Candidates, *sdk.Selection) error { panic(boom) }), "SelectVictims", policy.FaultGuest},
		{"a victim's NaN", scoring(math.NaN()), "ScoreVictims", policy.FaultAnswer},
		{"a victim's -Inf", scoring(math.Inf(-1)), "ScoreVictims", policy.FaultAnswer},
		{"an option's NaN", rating(math.NaN()), "ScoreOptions", policy.FaultAnswer},
		{"an option's +Inf", rating(math.Inf(1)), "ScoreOptions", policy.FaultAnswer},
		{"an option's -Inf", rating(math.Inf(-1)), "ScoreOptions", policy.FaultAnswer},
		{"a panic over options", struct {
			info
			rates
		}{info{}, func(*sdk.Options, *sdk.OptionScores) error { panic(boom) }}, "ScoreOptions", policy.FaultGuest},
		{"a panic over gaps", struct {
			info
			deltas
		}{info{}, func(*sdk.Candidates, []int32, *sdk.Recheck) error { panic(boom) }}, "PriorityDelta", policy.FaultGuest},
		{"an error in a later round", struct {
			info
			scores
		}{info{sdk.Info{Adaptive: true}}, func(in *sdk.Candidates, out *sdk.VictimScores) error {
			if in.Freed[0][0] > 0 {
				return boom
			}
			return nil
		}}, "ScoreVictims", policy.FaultGuest},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newMiniCluster(preemptorJob(6), "n1: a(p10,5) b(p20,5)", "n2: c(p10,10)")
			v := stub(c.policy, policy.Grants...)
			got, err := y.run(t, v)
			var fault *policy.Error
			if !errors.As(err, &fault) {
				t.Fatalf("got %v, %v; want a fault", got, err)
			}
			if fault.Policy != "stub" || fault.Version != v.ID || fault.Hook != c.hook || fault.Fault != c.fault {
				t.Errorf("%+v", fault)
			}
			if c.fault == policy.FaultGuest && !strings.Contains(err.Error(), "guest message") {
				t.Errorf("error %v lacks the message of the policy", err)
			}
			if _, faults := v.Stats(); faults != 1 {
				t.Errorf("counted %d faults, want 1", faults)
			}
			if len(got) > 0 {
				t.Errorf("chose %v in spite of the fault", got)
			}
		})
	}
}

// Outcomes distinguish options that the policy declined from infeasible ones.
func TestFinder_ReportsOutcomes(t *testing.T) {
	t.Parallel()
	y := newMiniCluster(preemptorJob(6),
		"n1: a(p10,3) b(p20,7)", // the policy's only victim frees too little
		"n2: c(p10,3) d(p50,7)", // insufficient even with every candidate evicted
		"n3: e(p41,10)",         // no candidate
		"n4: f(p10,10)")
	f := startSearch(t, y.snap, y.request(stub(struct {
		info
		selects
	}{info{sdk.Info{Delta: 10}}, func(in *sdk.Candidates, out *sdk.Selection) error {
		for i := range in.Len() {
			out.Pick(int(in.FirstRow[i]))
			out.Next()
		}
		return nil
	}})))
	defer f.Release()
	got, _ := f.Outcomes()
	want := []preempt.Outcome{preempt.Declined, preempt.Insufficient, preempt.NoCandidates, preempt.Possible}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Policies are never shown allocations of the own job or of non-preemptible jobs.
func TestFinder_ShowsOnlyCandidates(t *testing.T) {
	t.Parallel()
	shown := 0
	y := newMiniClusterWith(preemptorJob(4), nil, "n1: a(p10,3) b(p20,3) c(p30,3)")
	own := coretest.Job("preemptor").Priority(5).Ask(1, 0, 0).Obj() // an older version of the job
	stays := coretest.Job("stays").Priority(5).Ask(0, 1, 0).Change(func(j *model.Job) { j.NonPreemptible = true }).Obj()
	txn := y.store.Begin(2)
	must(txn.JobWriter().Upsert(own))
	must(txn.JobWriter().Upsert(stays))
	txn.AllocWriter().Upsert(coretest.Running("own", own, 0, 1, "n1"), coretest.Running("stays", stays, 0, 0, "n1"))
	must(txn.JobWriter().Upsert(preemptorJob(4)))
	y.snap = txn.Commit()
	y.job = y.snap.Job(y.job.Key())
	_, err := y.run(t, stub(struct {
		info
		scores
	}{info{}, func(in *sdk.Candidates, _ *sdk.VictimScores) error {
		shown = in.Rows.Len()
		return nil
	}}))
	if err != nil || shown != 3 {
		t.Errorf("policy was shown %d rows, want 3 (error %v)", shown, err)
	}
}

// The earliest recheck time of all hooks and calls counts.
func TestFinder_ReportsEarliestRecheck(t *testing.T) {
	t.Parallel()
	y := newMiniCluster(preemptorJob(4), "n1: a(p10,10)")
	v := stub(struct {
		info
		deltas
		scores
		rates
	}{
		info{},
		func(_ *sdk.Candidates, _ []int32, r *sdk.Recheck) error { r.At(3e9); return nil },
		func(_ *sdk.Candidates, out *sdk.VictimScores) error { out.Recheck.At(2e9); return nil },
		func(_ *sdk.Options, out *sdk.OptionScores) error { out.Recheck.At(25e8); return nil },
	})
	f := startSearch(t, y.snap, y.request(v))
	defer f.Release()
	if f.RecheckAt() != 2e9 {
		t.Errorf("recheck at %d before scoring options, want 2e9", f.RecheckAt())
	}
	bestOf(t, y.snap, f)
	if f.RecheckAt() != 2e9 {
		t.Errorf("recheck at %d, want 2e9", f.RecheckAt())
	}
}

// A policy that always requests the next nanosecond must not keep the scheduler busy.
func TestFinder_DelaysRecheckThatIsTooSoon(t *testing.T) {
	y := newMiniCluster(preemptorJob(4), "n1: a(p10,10)")
	for _, tt := range []struct{ name, hook string }{{"delta", "delta"}, {"scores", "scores"}, {"options", "options"}} {
		t.Run(tt.name, func(t *testing.T) {
			request := func(hook string, now int64, r *sdk.Recheck) {
				if hook == tt.hook {
					r.At(now + 1)
				}
			}
			v := stub(struct {
				info
				deltas
				scores
				rates
			}{
				info{},
				func(in *sdk.Candidates, _ []int32, r *sdk.Recheck) error { request("delta", in.Now, r); return nil },
				func(in *sdk.Candidates, out *sdk.VictimScores) error {
					request("scores", in.Now, &out.Recheck)
					return nil
				},
				func(in *sdk.Options, out *sdk.OptionScores) error {
					request("options", in.Now, &out.Recheck)
					return nil
				},
			})
			req := y.request(v)
			f := startSearch(t, y.snap, req)
			defer f.Release()
			bestOf(t, y.snap, f)
			if got := f.RecheckAt(); got < req.Now+protect.MinRecheck {
				t.Errorf("recheck %d ns after the call, want at least %d", got-req.Now, protect.MinRecheck)
			}
		})
	}
}

// A policy that declares Ascending is shown fewer candidates and gets the same victims.
func TestFinder_AscendingKeepsVictims(t *testing.T) {
	t.Parallel()
	nodes := []string{"n1: a(p10,2) b(p10,2) c(p20,3) d(p30,3)", "n2: e(p10,1) f(p20,9)"}
	var shown [2]int
	var got [2][]string
	for i, ascending := range []bool{false, true} {
		y := newMiniCluster(preemptorJob(3), nodes...)
		var err error
		got[i], err = y.run(t, stub(struct {
			info
			selects
		}{info{sdk.Info{Ascending: ascending}}, func(in *sdk.Candidates, out *sdk.Selection) error {
			shown[i] += in.Rows.Len()
			for i := range in.Len() {
				for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
					out.Pick(int(row))
				}
				out.Next()
			}
			return nil
		}}))
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got[0], got[1]) || shown != [2]int{6, 4} {
		t.Errorf("victims %v with %v rows shown, want the same victims with 6 and 4", got, shown)
	}
}
