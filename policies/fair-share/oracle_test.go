package fairshare_test

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/policytest"
)

// oracleVictims returns the victims of fair-share on an option, implemented directly
// from its description: slow, and independent of the code under test.
func oracleVictims(c *policytest.Case, o *policytest.Option, onlyAbove bool) []int {
	picked := map[int]bool{}
	var picks []int
	take := func(row int) { picked[row], picks = true, append(picks, row) }
	for row, r := range o.Rows {
		if r.MustLeave != 0 && oracleMay(c, o, picked, r.Namespace, onlyAbove) && !oracleFits(c, o, picked) {
			take(row)
		}
	}
	for !oracleFits(c, o, picked) {
		best := -1
		for row := range o.Rows {
			if picked[row] || !oracleMay(c, o, picked, o.Rows[row].Namespace, onlyAbove) {
				continue
			}
			if best < 0 || oracleBefore(c, o, picked, row, best) {
				best = row
			}
		}
		if best < 0 {
			break
		}
		take(best)
	}
	if picks == nil {
		return []int{}
	}
	return picks
}

func oracleBefore(c *policytest.Case, o *policytest.Option, picked map[int]bool, a, b int) bool {
	x, y := o.Rows[a], o.Rows[b]
	if s, t := oracleShare(c, o, picked, x.Namespace), oracleShare(c, o, picked, y.Namespace); s != t {
		return s > t
	}
	if x.Priority != y.Priority {
		return x.Priority < y.Priority
	}
	return oracleDistance(c, o, picked, x.Use) < oracleDistance(c, o, picked, y.Use)
}

// oracleShare returns dominant share over weight, with the preemptor and without the
// picked rows.
func oracleShare(c *policytest.Case, o *policytest.Option, picked map[int]bool, namespace string) float64 {
	share, weight := 0.0, 1.0
	for _, n := range c.Namespaces {
		if n.Name != namespace {
			continue
		}
		weight = n.Weight
		for d := range c.Dims {
			freed := 0.0
			for row := range picked {
				if o.Rows[row].Namespace == namespace {
					freed += o.Rows[row].Use[d]
				}
			}
			use := n.Use[d] - freed
			if namespace == c.Preemptor.Namespace {
				use += c.Preemptor.Ask[d]
			}
			if c.Totals[d] > 0 {
				share = max(share, use/c.Totals[d])
			}
		}
	}
	return share / weight
}

func oracleMay(c *policytest.Case, o *policytest.Option, picked map[int]bool, namespace string, onlyAbove bool) bool {
	weights := 0.0
	for _, n := range c.Namespaces {
		weights += n.Weight
	}
	return !onlyAbove || namespace == c.Preemptor.Namespace || oracleShare(c, o, picked, namespace) > 1/weights
}

func oracleDistance(c *policytest.Case, o *policytest.Option, picked map[int]bool, use []float64) float64 {
	sum := 0.0
	for d, need := range c.Preemptor.Ask {
		for row := range picked {
			need -= o.Rows[row].Use[d]
		}
		if need > 0 {
			relative := (need - use[d]) / need
			sum += float64(relative * relative)
		}
	}
	return math.Sqrt(sum)
}

func oracleFits(c *policytest.Case, o *policytest.Option, gone map[int]bool) bool {
	for d, ask := range c.Preemptor.Ask {
		room := o.Free[d]
		for row := range gone {
			room += o.Rows[row].Use[d]
		}
		if room < ask {
			return false
		}
	}
	for q, ask := range c.Preemptor.Devices {
		instances := o.DeviceFree[q]
		for row := range gone {
			instances += o.Rows[row].Devices[q]
		}
		if instances < float64(ask.Count) {
			return false
		}
	}
	for row, r := range o.Rows {
		if r.MustLeave != 0 && !gone[row] {
			return false
		}
	}
	return true
}
