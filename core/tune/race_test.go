package tune_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/tune"
)

// grid returns a space of three ordered axes and one that is not. Its points are written
// as P?a=..., and the middle as P.
func grid() *tune.Space {
	s := &tune.Space{Start: tune.Point{10, 10, 10, 0}}
	for _, name := range []string{"a", "b", "c"} {
		axis := tune.Axis{Name: name, Ordered: true}
		for v := range 21 {
			axis.Values = append(axis.Values, fmt.Sprint(v))
		}
		s.Axes = append(s.Axes, axis)
	}
	s.Axes = append(s.Axes, tune.Axis{Name: "mode", Values: []string{"x", "y", "z"}})
	s.Render = func(p tune.Point) string {
		if slices.Equal(p, s.Start) {
			return "P"
		}
		return fmt.Sprintf("P?%d,%d,%d,%d", p[0], p[1], p[2], p[3])
	}
	return s
}

// point is the inverse of Render; other policies have the value of the start.
func point(policy string) (p tune.Point) {
	p = tune.Point{10, 10, 10, 0}
	_, _ = fmt.Sscanf(policy, "P?%d,%d,%d,%d", &p[0], &p[1], &p[2], &p[3])
	return p
}

// workload returns the noise of a play: a part that all policies share, and a part of its own.
func noise(play tune.Play, seed uint64, own float64) float64 {
	at := uint64(play.Workload)
	if play.HeldOut {
		at += 1000
	}
	shared := rand.New(rand.NewPCG(seed, at)).NormFloat64()
	h := seed
	for _, b := range []byte(play.Policy) {
		h = h*1099511628211 + uint64(b)
	}
	return shared + own*rand.New(rand.NewPCG(h, at)).NormFloat64()
}

func objective(t *testing.T, text string) *tune.Objective {
	t.Helper()
	o, err := tune.ParseObjective(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// playing returns a function that plays by f, and fails the test if a held-out workload is
// played twice by a policy, or before the end.
func playing(t *testing.T, f func(tune.Play) tune.Values) func(context.Context, []tune.Play) ([]tune.Values, error) {
	t.Helper()
	heldOut := false
	seen := map[tune.Play]bool{}
	return func(_ context.Context, plays []tune.Play) ([]tune.Values, error) {
		var list []tune.Values
		for _, p := range plays {
			if seen[p] {
				t.Errorf("%+v is played twice", p)
			}
			if seen[p] = true; heldOut && !p.HeldOut {
				t.Errorf("%+v is played after held-out workloads", p)
			}
			heldOut = heldOut || p.HeldOut
			list = append(list, f(p))
		}
		return list, nil
	}
}

// planted has its optimum at 14, 5, 10 and y, which is 0.5 better than the start.
func planted(seed uint64) func(tune.Play) tune.Values {
	return func(p tune.Play) tune.Values {
		at := point(p.Policy)
		loss := math.Pow(float64(at[0]-14)/10, 2) + math.Pow(float64(at[1]-5)/10, 2) + math.Pow(float64(at[2]-10)/10, 2)
		if at[3] != 1 {
			loss += 0.1
		}
		return tune.Values{"goodput": 10 - loss + noise(p, seed, 0.02), "victims": float64(at[0])}
	}
}

func TestSearch_FindsPlantedOptimum(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		s := &tune.Search{
			Space: grid(), Objective: objective(t, "goodput up"), Baselines: []string{"default"}, Workloads: 10, HeldOut: 10, Plays: 600, Seed: seed,
			Play: playing(t, planted(seed)),
		}
		result, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := point(result.Winner.Policy)
		if d := planted(seed)(tune.Play{Policy: "P?14,5,10,1"})["goodput"] - planted(seed)(tune.Play{Policy: result.Winner.Policy})["goodput"]; d > 0.15 {
			t.Errorf("seed %d: found %v, %v worse than the optimum", seed, got, d)
		}
		if !result.Claim.Holds() || !strings.HasPrefix(result.Claim.String(), "better than ") {
			t.Errorf("seed %d: %s: %+v", seed, result.Claim, result.Claim.Goals)
		}
		if result.Plays > 600 {
			t.Errorf("%d plays exceed the limit", result.Plays)
		}
	}
}

// Of 100 searches over candidates that do not differ, at least 95 must claim no difference.
func TestSearch_ClaimsNoDifferenceWithoutOne(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"goodput up", "goodput up, victims down", "goodput up, victims <= default"} {
		none := 0
		for seed := range uint64(100) {
			s := &tune.Search{
				Space: grid(), Objective: objective(t, text), Baselines: []string{"default", "least-waste"}, Workloads: 8, HeldOut: 12, Plays: 400, Seed: seed,
				Play: playing(t, func(p tune.Play) tune.Values {
					return tune.Values{"goodput": noise(p, seed, 1), "victims": noise(p, seed+1000, 1)}
				}),
			}
			result, err := s.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !result.Claim.Holds() && !result.Claim.Fails() {
				none++
				if !strings.HasPrefix(result.Claim.String(), "no better than ") {
					t.Error(result.Claim)
				}
			}
		}
		if t.Logf("%s: %d of 100 searches claim no difference", text, none); none < 95 {
			t.Errorf("%s: %d of 100 searches claim no difference, want at least 95", text, none)
		}
	}
}

// The claim is about the best baseline. A tuned policy that is better than the others only is no
// better.
func TestSearch_ClaimsAgainstTheBestBaseline(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		strong float64 // by which the baseline strong exceeds the start; the planted optimum does by 0.5
		holds  bool
	}{{0.2, true}, {0.9, false}} {
		s := &tune.Search{
			Space: grid(), Objective: objective(t, "goodput up"), Baselines: []string{"default", "strong"}, Workloads: 10, HeldOut: 10, Plays: 600, Seed: 5,
			Play: playing(t, func(p tune.Play) tune.Values {
				values := planted(5)(p)
				if p.Policy == "strong" {
					values["goodput"] += tc.strong
				}
				return values
			}),
		}
		result, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := result.Claim
		if c.Against != "strong" || c.Holds() != tc.holds || strings.HasPrefix(c.String(), "better than strong") != tc.holds {
			t.Errorf("strong by %v: %s", tc.strong, c)
		}
	}
}

// A metric with noise that every play shares has no spread in pairs. Equal policies differ by 0.
func TestSearch_EqualPoliciesAreEqual(t *testing.T) {
	t.Parallel()
	s := &tune.Search{
		Space: grid(), Objective: objective(t, "goodput up"), Baselines: []string{"default"}, Workloads: 6, HeldOut: 8, Plays: 200,
		Play: playing(t, func(p tune.Play) tune.Values { return tune.Values{"goodput": noise(p, 1, 0)} }),
	}
	result, err := s.Run(t.Context())
	if err != nil || result.Claim.Holds() || result.Winner.Policy != "P" {
		t.Errorf("%v: %s, winner %s", err, result.Claim, result.Winner.Policy)
	}
}

func TestSearch_RespectsConstraints(t *testing.T) {
	t.Parallel()
	s := &tune.Search{
		Space: grid(), Objective: objective(t, "goodput up, victims <= 12"), Workloads: 8, HeldOut: 8, Plays: 400,
		Play: playing(t, planted(3)),
	}
	result, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if at := point(result.Winner.Policy); at[0] > 12 {
		t.Errorf("%v violates the constraint", at)
	}
	if !result.Claim.Holds() {
		t.Error(result.Claim)
	}
	if len(result.Front) == 0 || !slices.ContainsFunc(result.Front, func(c *tune.Candidate) bool { return point(c.Policy)[0] < 10 }) {
		t.Error("the front has no candidate with fewer victims")
	}
}

// The start violates the constraint as all others do, and so remains the best: the reason is
// the constraint.
func TestSearch_ReportsAConstraintThatNoCandidateMeets(t *testing.T) {
	t.Parallel()
	s := &tune.Search{
		Space: grid(), Objective: objective(t, "goodput up, victims <= -1, victims >= 0"), Baselines: []string{"default"}, Workloads: 6, HeldOut: 8, Plays: 200,
		Play: playing(t, planted(3)),
	}
	result, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := `constraint "victims <= -1" is violated by 18 (no candidate met it in the race)`; result.Claim.Holds() || !strings.Contains(result.Claim.String(), want) {
		t.Errorf("got %q, want it to contain %q", result.Claim, want)
	}
}

// Held-out workloads without a value of the metric of a constraint cannot show a violation.
func TestSearch_RequiresEnoughPairsOfConstraints(t *testing.T) {
	t.Parallel()
	play := planted(3)
	s := &tune.Search{
		Space: grid(), Objective: objective(t, "goodput up, victims <= 12"), Workloads: 8, HeldOut: 8, Plays: 400,
		Play: playing(t, func(p tune.Play) tune.Values {
			v := play(p)
			if p.HeldOut && p.Workload > 0 {
				delete(v, "victims")
			}
			return v
		}),
	}
	result, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := `better in goodput up, but too few pairs to judge the constraint "victims <= 12"`; result.Claim.Holds() || !strings.Contains(result.Claim.String(), want) {
		t.Errorf("got %q, want it to contain %q", result.Claim, want)
	}
}

func TestSearch_SameSeedGivesSameResult(t *testing.T) {
	t.Parallel()
	var texts [2]string
	for i := range texts {
		s := &tune.Search{
			Space: grid(), Objective: objective(t, "goodput up, victims down"), Baselines: []string{"default"}, Workloads: 8, HeldOut: 9, Plays: 400, Seed: 7,
			Play: playing(t, planted(7)),
		}
		result, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	if d := cmp.Diff(texts[0], texts[1]); d != "" {
		t.Error(d)
	}
}

func TestSearch_ListsEveryProblem(t *testing.T) {
	t.Parallel()
	space := grid()
	for i := range space.Axes {
		space.Axes[i].Values = space.Axes[i].Values[:1]
	}
	s := &tune.Search{Space: space, Objective: objective(t, "goodput up"), Workloads: 1, HeldOut: 2, Plays: 3}
	_, err := s.Run(t.Context())
	for _, want := range []string{"1 workloads are too few", "2 held-out workloads are too few", "nothing to search", "3 plays are too few"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	absent := &tune.Search{
		Space: grid(), Objective: objective(t, "queueDelay.90.p99 down, goodput up"), Workloads: 6, HeldOut: 8, Plays: 400,
		Play: playing(t, func(tune.Play) tune.Values { return tune.Values{"queueDelay.80.p99": 1} }),
	}
	_, err = absent.Run(t.Context())
	for _, want := range []string{"metric queueDelay.90.p99 is absent: use one of queueDelay.80.p99", "metric goodput is absent: no workload has a value"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	failed := errors.New("interrupted")
	absent.Play = func(context.Context, []tune.Play) ([]tune.Values, error) { return nil, failed }
	if _, err := absent.Run(t.Context()); !errors.Is(err, failed) {
		t.Error(err)
	}
}

func TestParseObjective_ReadsTermsAndListsEveryProblem(t *testing.T) {
	t.Parallel()
	o := objective(t, "goodput up,  queueDelay.80.p99 <= default, victims <= 100, jain >= least-waste?bands=20")
	if got := o.String(); got != "goodput up, queueDelay.80.p99 <= default, victims <= 100, jain >= least-waste?bands=20" {
		t.Error(got)
	}
	if d := cmp.Diff([]string{"default", "least-waste?bands=20"}, o.Policies()); d != "" {
		t.Error(d)
	}
	_, err := tune.ParseObjective("goodput upward, speed up, victims, victims <= , jain up, jain up, goodput up now, victims <= nan, victims >= -1e999, queueDelay down, wastedWork <= default")
	for _, want := range []string{"unknown operator upward", "unknown metric speed", `invalid term "victims": expected`, "expected one policy or number after <=", "jain is already a goal", `unexpected "now" after up`, "nan is not a finite number", "-1e999 is not a finite number", `"queueDelay down": metric queueDelay has several values: write queueDelay.BAND.PART`, "write wastedWork.RESOURCE"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if _, err := tune.ParseObjective("victims <= default"); err == nil || !strings.Contains(err.Error(), "a goal is required") {
		t.Error(err)
	}
}
