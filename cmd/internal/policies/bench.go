package policies

import (
	"fmt"
	"runtime"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// A Measurement is the cost of one hook on one construction.
type Measurement struct {
	Hook, Construction  string
	Options, Candidates int // per call
	Calls               int // measured calls
	PerCall             time.Duration
	Bytes, Allocs       uint64 // of the host, per call
	Fuel                uint64 // per call; 0 if the host does not count fuel
}

// PerCandidate is the time for each candidate, in nanoseconds.
func (m *Measurement) PerCandidate() float64 {
	return float64(m.PerCall.Nanoseconds()) / float64(max(m.Candidates, 1))
}

// construction is a benchmark input whose calls all take the same time.
type construction struct {
	name string
	c    *policytest.Case
}

// constructions returns the inputs of benchmarks: one full node, and full clusters.
func constructions() []construction {
	var list []construction
	for _, n := range []int{10, 50, 200} {
		list = append(list, construction{fmt.Sprintf("candidates=%d", n), policytest.ConstructionA(n, false)})
	}
	for _, n := range []int{100, 400} { // a call has at most 4,096 rows
		list = append(list, construction{fmt.Sprintf("nodes=%d", n), policytest.ConstructionB(n, true)})
	}
	return list
}

// BenchCallbacks receive the results and the progress of Bench.
type BenchCallbacks struct {
	Measured func(Measurement)
	// Progress receives the share that is done, between 0 and 1, several times during each
	// measurement and never while a call is measured.
	Progress func(share float64)
}

// Bench measures every hook of a policy on every construction, count times for about
// the duration each.
func Bench(p *Policy, clock clock.Clock, each time.Duration, count int, to BenchCallbacks) error {
	p.AddRef()
	defer p.ReleaseRef()
	in, err := p.Acquire()
	if err != nil {
		return err
	}
	defer p.Release(in)
	all := constructions()
	for i, c := range all {
		calls := benchCalls(p, in, c.c)
		for j, h := range calls {
			for k := range count {
				progress := func(share float64) {
					inside := (float64(j) + (float64(k)+share)/float64(count)) / float64(len(calls))
					to.Progress((float64(i) + inside) / float64(len(all)))
				}
				m, err := h.measure(p, in, clock, each, progress)
				if err != nil {
					return err
				}
				m.Hook, m.Construction = h.hook, c.name
				to.Measured(m)
			}
		}
	}
	return nil
}

// benchCall is a call of a hook that can be repeated.
type benchCall struct {
	hook                string
	options, candidates int
	ask                 func() error
}

// benchCalls returns the calls of the hooks of a policy on a construction.
func benchCalls(p *Policy, in policy.Instance, c *policytest.Case) []benchCall {
	rows := c.Candidates()
	n := rows.Rows.Len()
	var list []benchCall
	add := func(bit policy.Hooks, hook string, ask func() error) {
		if p.Hooks().Has(bit) {
			list = append(list, benchCall{hook, rows.Len(), n, ask})
		}
	}
	gaps := make([]int32, n)
	add(policy.HookDelta, "PriorityDelta", func() error {
		for i := range gaps {
			gaps[i] = rows.Preemptor.Delta
		}
		return in.PriorityDelta(rows, gaps, new(sdk.Recheck))
	})
	scores := &sdk.VictimScores{Tier: make([]int64, n), Score: make([]float64, n)}
	add(policy.HookScoreVictims, "ScoreVictims", func() error {
		clear(scores.Tier)
		clear(scores.Score)
		return in.ScoreVictims(rows, scores)
	})
	var picks sdk.Selection
	add(policy.HookSelectVictims, "SelectVictims", func() error {
		picks.Reset()
		return in.SelectVictims(rows, &picks)
	})
	options, victims := addVictims(c)
	if p.Hooks().Has(policy.HookScoreOptions) {
		answer := policytest.NewScores(options.Len())
		list = append(list, benchCall{"ScoreOptions", options.Len(), victims, func() error {
			for _, tier := range answer.Tiers {
				clear(tier)
			}
			clear(answer.Score)
			return in.ScoreOptions(options, answer)
		}})
	}
	return list
}

// addVictims marks two allocations of each option as victims.
func addVictims(c *policytest.Case) (*sdk.Options, int) {
	victims := make([][]int, len(c.Options))
	for i := range victims {
		victims[i] = []int{i % (len(c.Options[i].Rows) - 1), len(c.Options[i].Rows) - 1}
	}
	return c.OptionsOf(victims), 2 * len(victims)
}

// measure repeats the call until the elapsed time is long enough for a measurement.
func (q *benchCall) measure(p *Policy, in policy.Instance, clock clock.Clock, each time.Duration, progress func(share float64)) (Measurement, error) {
	m := Measurement{Options: q.options, Candidates: q.candidates}
	if err := p.RecordCall(q.hook, q.ask()); err != nil { // warm-up
		return m, err
	}
	m.Fuel = in.Fuel()
	var before, after runtime.MemStats
	for calls := 1; ; {
		if calls > 1 {
			progress(0.5) // the last repetition takes about as long as all others
		}
		runtime.ReadMemStats(&before)
		from := clock.Now()
		for range calls {
			if err := q.ask(); err != nil {
				return m, p.RecordCall(q.hook, err)
			}
		}
		took := clock.Now().Sub(from)
		runtime.ReadMemStats(&after)
		if took >= each || calls >= 1e9 {
			m.Calls, m.PerCall = calls, took/time.Duration(calls)
			m.Bytes = (after.TotalAlloc - before.TotalAlloc) / uint64(calls)
			m.Allocs = (after.Mallocs - before.Mallocs) / uint64(calls)
			progress(1)
			return m, nil
		}
		// As in package testing: predict slightly more than needed, and grow at most
		// a hundredfold.
		perCall := max(took/time.Duration(calls), 1)
		calls = min(int(each*6/5/perCall)+1, 100*calls)
	}
}
