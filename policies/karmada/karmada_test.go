package karmada_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/policies/karmada"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func configured(t testing.TB, config string) *policytest.Subject {
	t.Helper()
	return policytest.Of(policytest.Configured(t, karmada.New(), config))
}

func TestCases(t *testing.T) { policytest.Cases(t, configured(t, "{}"), "cases") }

// rounds returns the number of random instances per property.
func rounds() int { return soak.Count(2000, 60_000) }

// instance returns a preemptor of priority 10 and clusters with one or two resources.
// Amounts are small, so that ties and exact fits are frequent.
func instance(r *rand.Rand) *policytest.Case {
	c := &policytest.Case{
		Now: policytest.Now, Dims: []string{"units", "memory"}[:1+r.IntN(2)],
		Preemptor: policy.Preemptor{Namespace: "default", Job: "pending", JobType: policytest.JobTypeBinding, Priority: 10, Delta: 1},
	}
	for range c.Dims {
		c.Preemptor.Ask = append(c.Preemptor.Ask, float64(r.IntN(9)+1))
	}
	for i := range 1 + r.IntN(4) {
		o := policytest.Option{Name: fmt.Sprintf("m%d", i), Node: int32(i)}
		for range c.Dims {
			o.Free = append(o.Free, float64(r.IntN(6)-1))
		}
		o.Free[0] = min(o.Free[0], c.Preemptor.Ask[0]-1) // does not fit without evictions
		for k := range r.IntN(9) {
			row := policytest.Row{Name: fmt.Sprintf("b%d", k), Priority: int32(r.IntN(12)), Age: int64(r.IntN(3)) * 3600e9}
			for range c.Dims {
				row.Use = append(row.Use, float64(r.IntN(6)))
			}
			o.Rows = append(o.Rows, row)
		}
		c.Options = append(c.Options, o)
	}
	c.Sort()
	return c
}

func decide(t *testing.T, s *policytest.Subject, c *policytest.Case) *policytest.Decision {
	t.Helper()
	d, err := s.Decide(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// names returns the victims of an option, ascending, or nil if it is infeasible.
func names(c *policytest.Case, d *policytest.Decision, i int) []string {
	if d.Victims[i] == nil {
		return nil
	}
	list := []string{}
	for _, k := range d.Victims[i] {
		list = append(list, c.Options[i].Rows[k].Name)
	}
	slices.Sort(list)
	return list
}

func lower(c *policytest.Case, i int) (rows []int) {
	for k, row := range c.Options[i].Rows {
		if c.Preemptor.Priority-row.Priority >= c.Preemptor.Delta {
			rows = append(rows, k)
		}
	}
	return rows
}

// reprieve implements the algorithm of Kubernetes: it removes every lower priority and
// puts back as many rows as fit, the most important first.
func reprieve(c *policytest.Case, in *policy.Candidates, i int) []string {
	gone, rows := lower(c, i), c.Options[i].Rows
	if !policytest.Fits(in, i, gone) {
		return nil
	}
	slices.SortFunc(gone, func(a, b int) int {
		x, y := &rows[a], &rows[b]
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(y.Age, x.Age), cmp.Compare(x.Name, y.Name))
	})
	victims := []string{}
	for _, k := range slices.Clone(gone) {
		without := slices.DeleteFunc(slices.Clone(gone), func(x int) bool { return x == k })
		if policytest.Fits(in, i, without) {
			gone = without
		} else {
			victims = append(victims, rows[k].Name)
		}
	}
	slices.Sort(victims)
	return victims
}

func TestKarmada_MatchesReprieve(t *testing.T) {
	t.Parallel()
	r, s := rand.New(rand.NewPCG(7, 1)), configured(t, "{}")
	for range rounds() {
		c := instance(r)
		d, in := decide(t, s, c), c.Candidates()
		for i := range c.Options {
			if got, want := names(c, d, i), reprieve(c, in, i); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s loses %v, want %v of\n%+v", c.Options[i].Name, got, want, c)
			}
		}
	}
}

// The algorithm satisfies its properties on random input.
func TestKarmada_Properties(t *testing.T) {
	t.Parallel()
	r, s := rand.New(rand.NewPCG(7, 2)), configured(t, "{}")
	for range rounds() {
		c := instance(r)
		d, in := decide(t, s, c), c.Candidates()
		for i := range c.Options {
			checkVictims(t, c, in, d, i)
		}
		checkChoice(t, c, d, [3]int{0, 1, 2})
		checkInvariance(t, s, r, c, d)
	}
}

// checkVictims checks that all victims have a strictly lower priority, that each is
// necessary, and that the highest is the one at which the ascending prefix suffices.
func checkVictims(t *testing.T, c *policytest.Case, in *policy.Candidates, d *policytest.Decision, i int) {
	t.Helper()
	rows, victims := c.Options[i].Rows, d.Victims[i]
	if victims == nil {
		return
	}
	highest := int32(-1)
	for at, k := range victims {
		highest = max(highest, rows[k].Priority)
		if rows[k].Priority >= c.Preemptor.Priority {
			t.Fatalf("%s of priority %d is evicted", rows[k].Name, rows[k].Priority)
		}
		if policytest.Fits(in, i, slices.Delete(slices.Clone(victims), at, at+1)) {
			t.Fatalf("%s is evicted unnecessarily from %+v", rows[k].Name, c.Options[i])
		}
	}
	var prefix []int
	for _, k := range lower(c, i) { // rows are sorted by priority
		prefix = append(prefix, k)
		if policytest.Fits(in, i, prefix) {
			if rows[k].Priority != highest {
				t.Fatalf("the highest victim has priority %d, want %d", highest, rows[k].Priority)
			}
			return
		}
	}
	t.Fatal("victims although the eviction of every lower priority does not suffice")
}

// checkChoice checks that the chosen option is the lowest by number, maximum and sum
// of priorities in the given order, then by name.
func checkChoice(t *testing.T, c *policytest.Case, d *policytest.Decision, order [3]int) {
	t.Helper()
	best := -1
	var least [3]int64
	for i, victims := range d.Victims {
		if victims == nil {
			continue
		}
		of := [3]int64{int64(len(victims)), -1, 0}
		for _, k := range victims {
			of[1] = max(of[1], int64(c.Options[i].Rows[k].Priority))
			of[2] += int64(c.Options[i].Rows[k].Priority) + 1<<31 // as in Kubernetes: an additional victim never lowers the sum
		}
		key := [3]int64{of[order[0]], of[order[1]], of[order[2]]}
		if best < 0 || slices.Compare(key[:], least[:]) < 0 {
			best, least = i, key
		}
	}
	if d.Chosen != best {
		t.Fatalf("chose option %d, want %d", d.Chosen, best)
	}
}

// If clusters are chosen by priority, the victims of each do not change, but another
// cluster is chosen: by the maximum priority, then the sum, then the number.
func TestKarmada_ClustersByPriority(t *testing.T) {
	t.Parallel()
	r, s := rand.New(rand.NewPCG(7, 5)), configured(t, `{"clusters": "priority"}`)
	for range rounds() {
		c := instance(r)
		d, in := decide(t, s, c), c.Candidates()
		for i := range c.Options {
			if got, want := names(c, d, i), reprieve(c, in, i); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s loses %v, want %v of\n%+v", c.Options[i].Name, got, want, c)
			}
		}
		checkChoice(t, c, d, [3]int{1, 2, 0})
	}
}

// checkInvariance checks that the order of rows, the unit of amounts and rows that do
// not have a lower priority do not change the decision.
func checkInvariance(t *testing.T, s *policytest.Subject, r *rand.Rand, c *policytest.Case, d *policytest.Decision) {
	t.Helper()
	for what, change := range map[string]func(*policytest.Case){
		"another order": func(c *policytest.Case) {
			for i := range c.Options {
				rows := c.Options[i].Rows
				r.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
			}
		},
		"another unit": func(c *policytest.Case) {
			scale := func(v []float64) {
				for d := range v {
					v[d] *= 1024
				}
			}
			c.Preemptor.Ask = slices.Clone(c.Preemptor.Ask)
			scale(c.Preemptor.Ask)
			for i := range c.Options {
				scale(c.Options[i].Free)
				for k := range c.Options[i].Rows {
					scale(c.Options[i].Rows[k].Use)
				}
			}
		},
		"additional rows of higher priority": func(c *policytest.Case) {
			for i := range c.Options {
				c.Options[i].Rows = append(c.Options[i].Rows, policytest.Row{
					Name: "equal", Priority: c.Preemptor.Priority, Use: slices.Repeat([]float64{9}, len(c.Dims)),
				})
			}
		},
	} {
		other := clone(c)
		change(other)
		other.Sort()
		again := decide(t, s, other)
		for i := range c.Options {
			if before, after := names(c, d, i), names(other, again, i); !reflect.DeepEqual(before, after) {
				t.Fatalf("with %s, %s loses %v, and %v without", what, c.Options[i].Name, after, before)
			}
		}
		if again.Chosen != d.Chosen {
			t.Fatalf("with %s, option %d is chosen, and %d without", what, again.Chosen, d.Chosen)
		}
	}
}

func clone(c *policytest.Case) *policytest.Case {
	own := *c
	own.Options = slices.Clone(c.Options)
	for i := range own.Options {
		o := &own.Options[i]
		o.Free, o.Rows = slices.Clone(o.Free), slices.Clone(o.Rows)
		for k := range o.Rows {
			o.Rows[k].Use = slices.Clone(o.Rows[k].Use)
		}
	}
	return &own
}

// The variant finds as few victims as an exhaustive search, and of the smallest sets
// the first in the order of importance.
func TestKarmada_FewestMatchesExhaustiveSearch(t *testing.T) {
	t.Parallel()
	r, s := rand.New(rand.NewPCG(7, 3)), configured(t, `{"victims": "fewest"}`)
	for range rounds() {
		c := instance(r)
		d, in := decide(t, s, c), c.Candidates()
		for i := range c.Options {
			least := -1
			rows := lower(c, i)
			for set := range 1 << len(rows) {
				var gone []int
				for b, k := range rows {
					if set>>b&1 == 1 {
						gone = append(gone, k)
					}
				}
				if policytest.Fits(in, i, gone) && (least < 0 || len(gone) < least) {
					least = len(gone)
				}
			}
			if got := len(d.Victims[i]); (d.Victims[i] == nil) != (least < 0) || least >= 0 && got != least {
				t.Fatalf("%s loses %v, want %d victims of %+v", c.Options[i].Name, names(c, d, i), least, c.Options[i])
			}
		}
	}
}

func TestKarmada_FewestPrefersOneHigherVictim(t *testing.T) {
	t.Parallel()
	c := policytest.MustParse(t, `
preemptor 10 delta=1 type=binding units=5
node m1 units=0
  a 3 units=3
  b 3 units=3
  c 5 units=5
`)
	if got := names(c, decide(t, configured(t, "{}"), c), 0); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("lowest = %v, want a and b", got)
	}
	if got := names(c, decide(t, configured(t, `{"victims": "fewest"}`), c), 0); !slices.Equal(got, []string{"c"}) {
		t.Errorf("fewest = %v, want c", got)
	}
}

// For a thousand candidates with several resources the search is cut off, but still
// returns victims.
func TestKarmada_FewestFallsBackWhenCutOff(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 4))
	c := instance(r)
	for len(c.Dims) < 2 {
		c = instance(r)
	}
	c.Preemptor.Ask = []float64{500, 500}
	o := policytest.Option{Name: "m", Free: []float64{0, 0}}
	for k := range 1000 {
		o.Rows = append(o.Rows, policytest.Row{Name: fmt.Sprint("b", k), Priority: 1, Use: []float64{float64(r.IntN(90)), float64(90 - r.IntN(90))}})
	}
	c.Options = []policytest.Option{o}
	if d := decide(t, configured(t, `{"victims": "fewest"}`), c); d.Chosen != 0 || !policytest.Fits(c.Candidates(), 0, d.Victims[0]) {
		t.Errorf("infeasible: %v", d.Victims)
	}
}

func TestKarmada_ClusterOrderSetting(t *testing.T) {
	t.Parallel()
	c := policytest.MustParse(t, `
preemptor 10 delta=1 type=binding units=5
node few units=0
  a 9 units=5
node low units=0
  a 1 units=3
  b 1 units=3
`)
	if d := decide(t, configured(t, "{}"), c); d.Chosen != 0 {
		t.Errorf("by number: chose option %d", d.Chosen)
	}
	if d := decide(t, configured(t, `{"clusters": "priority"}`), c); d.Chosen != 1 {
		t.Errorf("by priority: chose option %d", d.Chosen)
	}
}
