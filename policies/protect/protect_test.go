package protect_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/policies/protect"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/settings"
)

func configured(t testing.TB, config string) *protect.Policy {
	t.Helper()
	return policytest.Configured(t, protect.New(), config)
}

func TestProtect_Cases(t *testing.T) {
	t.Parallel()
	const ages = `
	preemptor 60 cpu=100
	node n1 cpu=0
	  new 20 cpu=100 age=1m
	  edge 20 cpu=100 age=10m
	  starting 20 cpu=100
	  old 30 cpu=100 age=2h
	  near 55 cpu=100 age=1m`
	const tenants = `
	preemptor 60 cpu=100
	node n1 cpu=0
	  a 20 cpu=100 age=30m namespace=prod label:tier=gold
	  b 20 cpu=100 age=30m namespace=prod label:tier=gold label:slow=yes
	  c 20 cpu=100 age=30m namespace=prod label:tier=tin
	  d 20 cpu=100 age=30m namespace=dev
	  e 20 cpu=100 age=1m namespace=dev`
	const groups = `
	preemptor 60 cpu=100
	node n1 cpu=0
	  a1 20 job=a cpu=100 age=3h
	  a2 20 job=a cpu=100 age=1h
	  a3 20 job=a cpu=100 age=2h
	  b1 30 job=b cpu=100 age=1h evictions=1/0
	  b2 30 job=b cpu=100 age=2h evictions=1/0
	  c1 40 job=c cpu=100 age=1h evictions=2/0`
	for _, tt := range []struct{ name, config, text, eligible, again string }{
		{"an allocation that has run long enough, to the nanosecond, or has not started", ``, ages, "[edge starting old]", "9m0s"},
		{"without a minimum every allocation", `{"minRuntime":0}`, ages, "[new edge starting old]", ""},
		{"the earliest end of a protection counts", `{"minRuntime":"3h"}`, ages, "[starting]", "1h0m0s"},
		{"an overriding gap ignores protection", `{"override":40}`, ages, "[new edge starting old]", ""},
		{"a smaller gap does not", `{"override":41}`, ages, "[edge starting old]", "9m0s"},
		{"a label goes before a namespace", `{"secondsByLabel":{"tier:gold":60},"secondsByNamespace":{"prod":7200}}`, tenants, "[a b d]", "9m0s"},
		{"of two labels the longer time counts", `{"secondsByLabel":"tier:gold=60, slow:yes=3600"}`, tenants, "[a c d]", "9m0s"},
		{"a namespace may be left unprotected", `{"secondsByNamespace":"dev=0,prod=2400.5"}`, tenants, "[d e]", "10m0.5s"},
		{"a group loses the youngest first, up to its limit", `{"maxEvictions":2}`, groups, "[a2 a3 b1]", "1m0s"},
		{"a pause of its own", `{"maxEvictions":2,"pause":"5m"}`, groups, "[a2 a3 b1]", "5m0s"},
		{"an overriding gap ignores the limit", `{"maxEvictions":2,"override":25}`, groups, "[a1 a2 a3 b1 b2]", "1m0s"},
		{"no recheck is needed if the plan has no victim yet", `{"maxEvictions":1}`, `
			preemptor 60 cpu=100
			node n1 cpu=0
			  a1 20 job=a cpu=100 age=3h
			  a2 20 job=a cpu=100 age=1h`, "[a2]", ""},
		{"a row that must be evicted is offered before the youngest", `{"maxEvictions":1}`, `
			preemptor 60 cpu=100 ports=1
			node n1 cpu=0
			  a1 20 job=a cpu=100 age=3h port
			  a2 20 job=a cpu=100 age=1h`, "[a1]", ""},
		{"an allocation protected by time does not count", `{"maxEvictions":1}`, `
			preemptor 60 cpu=100
			node n1 cpu=0
			  a1 20 job=a cpu=100 age=3h
			  a2 20 job=a cpu=100 age=4m`, "[a1]", "6m0s"},
		{"each option has the limit", `{"maxEvictions":1}`, `
			preemptor 60 cpu=100
			node n1 cpu=0
			  a1 20 job=a cpu=100 age=3h
			node n2 cpu=0
			  a2 20 job=a cpu=100 age=4h`, "[a1]", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := policytest.MustParse(t, tt.text)
			in := c.Candidates()
			gaps, at := policytest.Gaps(t, configured(t, tt.config), in)
			if got := fmt.Sprint(c.Names(0, policytest.Eligible(in, gaps, 0))); got != tt.eligible {
				t.Errorf("eligible %s, want %s", got, tt.eligible)
			}
			again := ""
			if at != 0 {
				again = time.Duration(at - in.Now).String()
			}
			if again != tt.again {
				t.Errorf("recheck after %q, want %q", again, tt.again)
			}
		})
	}
}

var configs = []string{
	`{}`, `{"minRuntime":"20m","override":30}`, `{"secondsByNamespace":{"a":60,"b":1500}}`,
	`{"secondsByLabel":{"tier:gold":60,"tier:tin":0}}`, `{"maxEvictions":2,"minRuntime":"1m"}`,
}

// situation returns a random case in which time and tenants matter.
func situation(r *rand.Rand) *policytest.Case {
	c := policytest.Random(r, policytest.Shape{Options: 3, Rows: 10, MustLeave: true, Small: true})
	c.Now = policytest.Now
	c.Preemptor.Priority = int32(20 + r.IntN(40))
	for i := range c.Options {
		for k := range c.Options[i].Rows {
			row := &c.Options[i].Rows[k]
			row.Age = 1 + r.Int64N(int64(30*time.Minute))
			row.Namespace = []string{"a", "b", "c"}[r.IntN(3)]
			row.Job, row.Evictions = "j"+row.Namespace, int32(len(row.Namespace))
			row.Labels = map[string]string{"tier": []string{"gold", "tin", "none"}[r.IntN(3)]}
		}
	}
	return c
}

func eligible(t *testing.T, p *protect.Policy, in *policy.Candidates) (rows [][]int, again int64) {
	gaps, at := policytest.Gaps(t, p, in)
	for i := range in.Len() {
		rows = append(rows, policytest.Eligible(in, gaps, i))
	}
	return rows, at
}

func later(in *policy.Candidates, d int64) *policy.Candidates {
	next := *in
	next.Now += d
	return &next
}

func TestProtect_RequestsRecheckWhenAProtectionEnds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	asked := 0
	for k := range policytest.Count(t) / 10 {
		in, p := situation(r).Candidates(), configured(t, configs[k%4])
		before, at := eligible(t, p, in)
		if at == 0 {
			if after, _ := eligible(t, p, later(in, int64(1000*time.Hour))); fmt.Sprint(before) != fmt.Sprint(after) {
				t.Fatalf("case %d: %v becomes %v without a recheck", k, before, after)
			}
			continue
		}
		asked++
		if just, again := eligible(t, p, later(in, at-in.Now-1)); fmt.Sprint(before) != fmt.Sprint(just) || again != at {
			t.Fatalf("case %d: a nanosecond before, %v is %v, with recheck at %d instead of %d", k, before, just, again, at)
		}
		if after, _ := eligible(t, p, later(in, at-in.Now)); fmt.Sprint(before) == fmt.Sprint(after) {
			t.Fatalf("case %d: recheck without effect: %v", k, after)
		}
	}
	if asked == 0 {
		t.Error("the property was not exercised")
	}
}

// The policy withholds candidates and never adds any; more runtime or a larger gap protects less.
func TestProtect_WithholdsAlone(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for k := range policytest.Count(t) / 10 {
		in, p := situation(r).Candidates(), configured(t, configs[k%len(configs)])
		base := make([]int32, in.Rows.Len())
		for row := range base {
			base[row] = in.Preemptor.Delta
		}
		now, _ := eligible(t, p, in)
		after, _ := eligible(t, p, later(in, r.Int64N(int64(time.Hour))))
		for i := range now {
			all := policytest.Eligible(in, base, i)
			for _, row := range now[i] {
				if !slices.Contains(all, row) || k%5 < 4 && !slices.Contains(after[i], row) {
					t.Fatalf("case %d, option %d: %v of %v, later %v", k, i, now[i], all, after[i])
				}
			}
		}
	}
}

func TestProtect_NoOptionOffersMoreOfAGroupThanItsLimit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for k := range policytest.Count(t) / 10 {
		c := situation(r)
		in := c.Candidates()
		rows, _ := eligible(t, configured(t, `{"maxEvictions":2,"minRuntime":0}`), in)
		for i := range rows {
			offered := map[int32]int32{}
			for _, row := range rows[i] {
				at := in.FirstRow[i] + int32(row)
				if offered[in.Rows.Group[at]]++; offered[in.Rows.Group[at]]+in.Rows.Evictions[at] > 2 {
					t.Fatalf("case %d, option %d: offers %v", k, i, c.Names(i, rows[i]))
				}
			}
		}
	}
}

func TestProtect_RequestsColumnsThatItReads(t *testing.T) {
	t.Parallel()
	base := policy.StartColumn | policy.TimeColumns
	for config, want := range map[string]policy.Columns{
		`{}`:                             base,
		`{"secondsByNamespace":{"a":1}}`: base | policy.JobColumns,
		`{"secondsByLabel":{"a:b":1}}`:   base | policy.LabelColumns,
		`{"maxEvictions":1}`:             base | policy.JobColumns | policy.EvictionColumns | policy.MustLeaveColumn,
	} {
		if got := configured(t, config).Info().Columns; got != want {
			t.Errorf("%s: columns %b, want %b", config, got, want)
		}
	}
}

func TestProtect_SettingsAreInOrderAndBounded(t *testing.T) {
	t.Parallel()
	list := protect.New().Settings()
	if err := settings.Check(list); err != nil {
		t.Error(err)
	}
	c, err := settings.Read(list, []byte(`{"secondsByLabel":{"gold":60}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := protect.New().Configure(c); err == nil || !strings.Contains(err.Error(), "KEY:VALUE") {
		t.Errorf("a label without a value: %v", err)
	}
}

func TestProtect_AllocatesNothingOnceWarm(t *testing.T) {
	in := situation(rand.New(rand.NewPCG(7, 8))).Candidates()
	p := configured(t, `{"maxEvictions":1,"minRuntime":"1m","secondsByNamespace":{"a":1},"secondsByLabel":{"tier:gold":2}}`)
	gaps := make([]int32, in.Rows.Len())
	var recheck policy.Recheck
	if n := testing.AllocsPerRun(100, func() {
		clear(gaps)
		_ = p.PriorityDelta(in, gaps, &recheck)
	}); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}
