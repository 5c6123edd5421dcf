package rules_test

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

// referenceVictims returns the picks of the default policy on an option. It is a slow
// reference implementation of the documented rules and shares no code with the
// package.
func referenceVictims(c *policytest.Case, o *policytest.Option) []int {
	need := append([]float64{}, c.Preemptor.Ask...) // the request; free capacity is not subtracted
	picked := map[int]bool{}
	var picks []int
	for !referenceFits(c, o, picked) {
		// The lowest remaining priority.
		lowest, left := int32(math.MaxInt32), false
		for k, r := range o.Rows {
			if !picked[k] {
				lowest, left = min(lowest, r.Priority), true
			}
		}
		if !left {
			break
		}
		// The smallest distance within that priority; if equal, the first row.
		best, bestDistance := -1, 0.0
		for k, r := range o.Rows {
			if picked[k] || r.Priority != lowest {
				continue
			}
			if d := referenceDistance(need, r.Use); best < 0 || d < bestDistance {
				best, bestDistance = k, d
			}
		}
		picked[best] = true
		picks = append(picks, best)
		for d := range need {
			need[d] -= o.Rows[best].Use[d]
		}
	}
	return picks
}

func referenceDistance(need, use []float64) float64 {
	sum := 0.0
	for d := range need {
		if need[d] > 0 {
			relative := (need[d] - use[d]) / need[d]
			sum += float64(relative * relative)
		}
	}
	return math.Sqrt(sum)
}

func referenceFits(c *policytest.Case, o *policytest.Option, gone map[int]bool) bool {
	for d, ask := range c.Preemptor.Ask {
		room := o.Free[d]
		for k := range gone {
			room += o.Rows[k].Use[d]
		}
		if room < ask {
			return false
		}
	}
	for q, ask := range c.Preemptor.Devices {
		instances := o.DeviceFree[q]
		for k := range gone {
			instances += o.Rows[k].Devices[q]
		}
		if instances < float64(ask.Count) {
			return false
		}
	}
	for k, r := range o.Rows {
		if r.MustLeave != 0 && !gone[k] {
			return false
		}
	}
	return true
}
