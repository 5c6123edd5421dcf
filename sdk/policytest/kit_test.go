package policytest_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

func TestFormat_RoundTrips(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for k := range 500 {
		c := policytest.Random(r, policytest.Shape{Options: 4, Rows: 6, Devices: k%2 == 0, MustLeave: k%3 == 0, Work: k%4 < 2, Tenants: k%5 < 2})
		c.Now = policytest.Now // Parse sets this time in every case
		text := policytest.Format(c)
		again, err := policytest.Parse(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff(text, policytest.Format(again)); diff != "" {
			t.Fatal(diff)
		}
		a, b := c.Candidates(), again.Candidates()
		if diff := cmp.Diff(a.Rows, b.Rows, cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("%s\n%s", diff, text)
		}
		if diff := cmp.Diff(a.Need, b.Need); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestProperties_HoldForDefault(t *testing.T) {
	t.Parallel()
	fresh := func() (*policytest.Subject, error) { return policytest.Of(rules.New()), nil }
	cases := 0
	findings, err := policytest.CheckProperties(fresh, policytest.CheckOptions{Runs: 400, Seed: 1, Progress: func(done, total int) {
		if total != 7*400 || done >= total || done < cases {
			t.Errorf("progress %d of %d after %d", done, total, cases)
		}
		cases = done
	}})
	if cases != 7*400-1 {
		t.Errorf("progress ends at %d", cases)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Errorf("%s: %v\n%s", f.Property.Name, f.Err, policytest.Format(f.Case))
	}
}

// broken is the default policy with one defect.
type broken struct {
	*rules.Default
	adjust func(in *policy.Candidates, s *policy.Selection)
}

func (b broken) SelectVictims(in *policy.Candidates, out *policy.Selection) error {
	if err := b.Default.SelectVictims(in, out); err != nil {
		return err
	}
	b.adjust(in, out)
	return nil
}

// again copies the picks of a selection for which pick returns true.
func again(in *policy.Candidates, out *policy.Selection, pick func(i int, row int32) bool) {
	var lists [][]int32
	for i := range in.Len() {
		lists = append(lists, append([]int32(nil), out.Rows(i)...))
	}
	out.Reset()
	for i, list := range lists {
		for _, row := range list {
			if pick(i, row) {
				out.Pick(int(row))
			}
		}
		out.Next()
	}
}

func TestProperties_FindAndShrinkCounterexamples(t *testing.T) {
	t.Parallel()
	calls := 0
	for name, adjust := range map[string]func(in *policy.Candidates, s *policy.Selection){
		"answers": func(in *policy.Candidates, s *policy.Selection) {
			again(in, s, func(i int, row int32) bool {
				s.Pick(int(row))
				return true
			})
		},
		"enough": func(in *policy.Candidates, s *policy.Selection) {
			again(in, s, func(i int, row int32) bool { return row != in.FirstRow[i] })
		},
		"deterministic": func(in *policy.Candidates, s *policy.Selection) {
			calls++
			again(in, s, func(int, int32) bool { return calls%7 != 0 })
		},
		"independent": func(in *policy.Candidates, s *policy.Selection) {
			again(in, s, func(i int, row int32) bool { return in.Len() < 2 || row != in.FirstRow[i] })
		},
		"units": func(in *policy.Candidates, s *policy.Selection) {
			again(in, s, func(i int, row int32) bool { return in.Rows.Use[0][row] > 2 || row != in.FirstRow[i] })
		},
	} {
		fresh := func() (*policytest.Subject, error) {
			return policytest.Of(broken{rules.New(), adjust}), nil
		}
		findings, err := policytest.CheckProperties(fresh, policytest.CheckOptions{Runs: 300, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range findings {
			if f.Property.Name != name {
				continue
			}
			found = true
			rows := 0
			for _, o := range f.Case.Options {
				rows += len(o.Rows)
			}
			if rows > 4 || len(f.Case.Options) > 2 {
				t.Errorf("%s: not shrunk:\n%s", name, policytest.Format(f.Case))
			}
		}
		if !found {
			t.Errorf("%s: no finding; findings are %v", name, findings)
		}
	}
}

// A scorer is a policy that scores victims with a function.
type scorer func(in *policy.Candidates, row int) float64

func (scorer) Info() policy.Info {
	return policy.Info{Name: "scorer", Delta: 10, Columns: policy.UseColumns}
}

func (f scorer) ScoreVictims(in *policy.Candidates, out *policy.VictimScores) error {
	for row := range out.Score {
		out.Score[row] = f(in, row)
	}
	return nil
}

func TestSubject_DecidesLikeHost(t *testing.T) {
	t.Parallel()
	const world = `
preemptor 50 cpu=10
node n1 cpu=0
  a 10 cpu=4
  b 20 cpu=7
  c 45 cpu=9
node n2 cpu=10
node n3 cpu=0
  d 10 cpu=5
`
	most := scorer(func(in *policy.Candidates, row int) float64 { return -in.Rows.Use[0][row] })
	never := scorer(func(in *policy.Candidates, row int) float64 { return math.Inf(1) })
	for name, tt := range map[string]struct {
		p    policy.Policy
		want string
	}{
		"default": {rules.New(), "n1: a b|n2: no victims|n3: does not fit|choose n2"},
		"most":    {most, "n1: b a|n2: no victims|n3: does not fit|choose n2"}, // c is too near in priority
		"never":   {never, "n1: does not fit|n2: no victims|n3: does not fit|choose n2"},
	} {
		c := policytest.MustParse(t, world)
		d, err := policytest.Of(tt.p).Decide(c)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := strings.Join(d.Lines(c), "|"); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	nan := scorer(func(*policy.Candidates, int) float64 { return math.NaN() })
	_, err := policytest.Of(nan).Decide(policytest.MustParse(t, world))
	if wrong, ok := errors.AsType[*policytest.AnswerError](err); !ok || wrong.Hook != "ScoreVictims" {
		t.Error(err)
	}
}

func TestGolden_ReportsDifferencesAndUpdates(t *testing.T) {
	t.Parallel()
	const text = "# why\npreemptor 50 cpu=10\nnode n1 cpu=0\n  a 10 cpu=4\n  b 20 cpu=7\n"
	s := policytest.Of(rules.New())
	g, err := policytest.ParseGolden(text + "---\nn1:  a  b\nchoose n1\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff, err := g.Check(s); err != nil || diff != nil {
		t.Error(diff, err)
	}
	g, err = policytest.ParseGolden(text + "---\nn1: b\n")
	if err != nil {
		t.Fatal(err)
	}
	diff, err := g.Check(s)
	if err != nil || strings.Join(diff, "|") != `want "n1: b", got "n1: a b"|want "nothing", got "choose n1"` {
		t.Error(diff, err)
	}
	if got, err := g.Update(s); err != nil || got != text+"---\nn1: a b\nchoose n1\n" {
		t.Errorf("%v\n%s", err, got)
	}
	for _, bad := range []string{"", "nod n1", "preemptor x"} {
		if _, err := policytest.ParseGolden(bad); err == nil {
			t.Errorf("ParseGolden(%q) succeeded", bad)
		}
	}
}

func TestCheckProperties_RejectsUnknownSkip(t *testing.T) {
	t.Parallel()
	_, err := policytest.CheckProperties(nil, policytest.CheckOptions{Skip: []string{"unit", "order"}})
	if err == nil || !strings.Contains(err.Error(), `unknown property "unit"`) || strings.Contains(err.Error(), `"order"`) {
		t.Error(err)
	}
}
