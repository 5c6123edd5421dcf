package policytest

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// Count returns the number of random cases of a test: more if CEDE_SOAK is set.
func Count(testing.TB) int {
	return soak.Count(10_000, 1_000_000)
}

// A Shape bounds random cases.
type Shape struct {
	Options, Rows int  // at most
	Devices       bool // device requests, with several groups per node
	MustLeave     bool // required ports and separation
	Small         bool // small amounts and few priorities, which cause many ties
	NoTies        bool // large nonzero amounts, which cause hardly any ties
	Work          bool // lost work, and cost annotations
	Tenants       bool // namespaces of different weights that also use nodes not shown
	Budgets       bool // disruption budgets, some of them nearly exhausted
	Relocation    bool // rows that fit elsewhere only by evicting, or nowhere
	LookAhead     bool // options were played
}

// Random returns a random case within the bounds of the shape.
func Random(r *rand.Rand, s Shape) *Case {
	c := &Case{Dims: []string{"cpu", "memory", "disk", "network", "licence"}[:1+r.IntN(5)]}
	r.Shuffle(len(c.Dims), func(i, j int) { c.Dims[i], c.Dims[j] = c.Dims[j], c.Dims[i] })
	c.Preemptor = policy.Preemptor{Priority: 100, Delta: 10, JobType: "service", Namespace: "default", Ask: make([]float64, len(c.Dims))}
	for d := range c.Dims {
		if r.IntN(6) > 0 {
			c.Preemptor.Ask[d] = 3 * amountOf(r, s)
		}
	}
	if s.Devices {
		for k := range r.IntN(3) {
			c.Preemptor.Devices = append(c.Preemptor.Devices, policy.DeviceAsk{ID: "d" + strconv.Itoa(k), Count: int32(1 + r.IntN(5))})
		}
	}
	for range 1 + r.IntN(s.Options) {
		c.Options = append(c.Options, c.option(r, s))
	}
	if s.Work {
		c.addWork(r, s)
	}
	if s.Tenants {
		c.tenants(r, s)
	}
	if s.Budgets {
		c.budgets(r)
	}
	if s.Relocation {
		c.relocate(r)
	}
	if s.LookAhead {
		c.lookAhead(r)
	}
	c.Sort()
	return c
}

// addWork sets the lost work of every row, and the cost of evicting some of them.
func (c *Case) addWork(r *rand.Rand, s Shape) {
	c.Now = Now
	for range c.Dims {
		c.Totals = append(c.Totals, float64(int64(1)<<(20+r.IntN(4))))
	}
	for i := range c.Options {
		for k := range c.Options[i].Rows {
			row := &c.Options[i].Rows[k]
			row.LostWork = int64(amountOf(r, s)) * 1e9
			row.Age = row.LostWork + int64(r.IntN(3))*3600e9
			if r.IntN(6) == 0 {
				row.Annotations = map[string]float64{"cost": float64(r.IntN(5)-1) / 2}
			}
		}
	}
}

// relocate sets where each row could run if it were evicted.
func (c *Case) relocate(r *rand.Rand) {
	for i := range c.Options {
		for k := range c.Options[i].Rows {
			to := Relocation{Where: uint8(r.IntN(policy.RelocationNone + 1))}
			if to.Where == policy.RelocationEvicts {
				to.Priority, to.LostWork = int32(r.IntN(10)), int64(r.IntN(4))*60e9
			}
			c.Options[i].Rows[k].Relocation = to
		}
	}
}

// lookAhead sets the outlook of each option.
func (c *Case) lookAhead(r *rand.Rand) {
	for i := range c.Options {
		c.Options[i].Follows = Outlook{LostWork: int64(r.IntN(5)) * 60e9, Depth: int32(1 + r.IntN(3)), Delay: int64(r.IntN(10)) * 60e9}
	}
}

// tenants divides the rows among three namespaces, which also use nodes that the case
// does not show.
func (c *Case) tenants(r *rand.Rand, s Shape) {
	names := []string{"a", "b", "c"}
	c.Preemptor.Namespace = names[r.IntN(len(names))]
	use := map[string][]float64{}
	for _, name := range names {
		use[name] = make([]float64, len(c.Dims))
		for d := range c.Dims {
			use[name][d] = 10 * amountOf(r, s)
		}
		c.Namespaces = append(c.Namespaces, Namespace{Name: name, Weight: []float64{0.5, 1, 1, 3}[r.IntN(4)], Use: use[name]})
	}
	for i := range c.Options {
		for k := range c.Options[i].Rows {
			row := &c.Options[i].Rows[k]
			row.Namespace = names[r.IntN(len(names))]
			add(use[row.Namespace], row.Use)
		}
	}
	if c.Totals == nil {
		for range c.Dims {
			c.Totals = append(c.Totals, 60*amountOf(r, s))
		}
	}
}

func amountOf(r *rand.Rand, s Shape) float64 {
	if s.Small {
		return float64(r.IntN(6))
	}
	return float64(r.IntN(1 << 20))
}

// useOf returns an amount, or 0 in one of five calls.
func useOf(r *rand.Rand, s Shape) float64 {
	if !s.NoTies && r.IntN(5) == 0 {
		return 0
	}
	return amountOf(r, s)
}

// option returns a new node, or another choice of device groups on the last node: the
// same rows with other devices in use and free.
func (c *Case) option(r *rand.Rand, s Shape) Option {
	o := Option{Node: int32(len(c.Options)), Name: "n" + strconv.Itoa(len(c.Options)), FitBefore: r.Float64(), FitAfter: r.Float64(), Present: uint8(r.IntN(8))}
	for k := range o.Components {
		o.Components[k] = 2*r.Float64() - 1
	}
	if again := len(c.Options) > 0 && len(c.Preemptor.Devices) > 0 && r.IntN(2) == 0; again {
		last := c.Options[len(c.Options)-1]
		o.Node, o.Name, o.Free = last.Node, last.Name, last.Free
		o.Rows = append(o.Rows, last.Rows...)
	} else {
		for range c.Dims {
			o.Free = append(o.Free, float64(int(2*r.Float64()*amountOf(r, s))))
		}
		priorities := 40
		if s.Small {
			priorities = 4
		}
		for k := range r.IntN(s.Rows + 1) {
			row := Row{Name: "a" + strconv.Itoa(k), Priority: int32(10 + r.IntN(priorities)), Evictions: int32(r.IntN(4)), EvictionLimit: int32(r.IntN(3))}
			for range c.Dims {
				row.Use = append(row.Use, useOf(r, s))
			}
			if s.MustLeave && r.IntN(8) == 0 {
				row.MustLeave = uint8(1 + r.IntN(8)/6)
			}
			o.Rows = append(o.Rows, row)
		}
	}
	for range c.Preemptor.Devices {
		o.DeviceFree = append(o.DeviceFree, float64(r.IntN(3)))
		o.DeviceGroup = append(o.DeviceGroup, int32(len(c.Options)))
	}
	several := r.IntN(4) == 0 // a row may serve several requests
	for k := range o.Rows {
		o.Rows[k].Devices = make([]float64, len(c.Preemptor.Devices))
		serves := r.IntN(4)
		for q := range o.Rows[k].Devices {
			if several || q == serves%len(o.Rows[k].Devices) {
				o.Rows[k].Devices[q] = float64(max(0, r.IntN(6)-2))
			}
		}
	}
	return o
}
