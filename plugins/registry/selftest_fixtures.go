package registry

import (
	"math"
	"slices"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// The self-test uses two dimensions, a device request, and options with zero to three
// candidates. Every optional column is set; hosts omit the ones that a policy does not
// request.
var (
	testDims    = []string{"cpu", "memory"}
	testStrings = []string{"", "default", "default\x00a", "default\x00a\x00g", "tier", "batch", "n1", "n2", "n3", "n4", "default\x00pdb"}
)

// selfTestTime is the time of cases that do not vary it, in Unix nanoseconds.
const selfTestTime = 1_700_000_000_000_000_000

// selfTestCases returns the inputs of the self-test. Defects that only some inputs trigger,
// such as an endless loop after a certain date, must show here rather than in an evaluation,
// so the cases vary the size, the preemptor, and the time up to the year 2100.
func selfTestCases(info sdk.Info) []selfTestCase {
	var cases []selfTestCase
	add := func(p *sdk.Preemptor, now int64, rows ...int) {
		cases = append(cases, selfTestCase{testCandidates(p, now, rows...), testOptions(p, now, rows...)})
	}
	preemptors := testPreemptors(info)
	for _, rows := range [][]int{{0, 1, 2, 3}, {}, {40}, slices.Repeat([]int{3}, 24)} {
		for _, p := range preemptors {
			add(p, selfTestTime, rows...)
		}
	}
	for _, now := range testTimes() {
		add(preemptors[0], now, 0, 1, 2, 3)
	}
	return cases
}

// testPreemptors returns jobs of different types, priorities, sizes and histories.
func testPreemptors(info sdk.Info) []*sdk.Preemptor {
	return []*sdk.Preemptor{
		{
			Namespace: "default", Job: "asker", Group: "g", JobType: "service", Priority: 80, Delta: info.Delta,
			Ask: []float64{500, 1024}, Ports: 1, Devices: []sdk.DeviceAsk{{ID: "gpu", Count: 1}},
			Labels: map[string]string{"tier": "web"}, Annotations: map[string]float64{"cost": 2},
			Waiting: 60e9, Attempts: 1,
		},
		{
			Namespace: "default", Job: "asker", Group: "g", JobType: "batch", Priority: 100, Delta: info.Delta,
			Ask: []float64{1, 1}, Ports: 1, Devices: []sdk.DeviceAsk{{ID: "gpu", Count: 1}}, Waiting: 30 * 24 * 3600e9, Attempts: 1000,
		},
		{
			Namespace: "another", Job: "a", Group: "a", JobType: "system", Priority: 1, Delta: info.Delta,
			Ask: []float64{1e6, 1e9}, Ports: 1, Devices: []sdk.DeviceAsk{{ID: "gpu", Count: 1}}, Annotations: map[string]float64{"cost": -1e9},
		},
	}
}

// testTimes returns times from 2024 to 2100, at different days and hours.
func testTimes() []int64 {
	const step, steps = 373*24*3600e9 + 19*3600e9 + 61e9, 75
	var times []int64
	for n := range int64(steps) {
		times = append(times, selfTestTime+(n+1)*step)
	}
	return times
}

// testCandidates returns candidates with the given numbers of rows per option.
func testCandidates(p *sdk.Preemptor, now int64, rows ...int) *sdk.Candidates {
	c := &sdk.Candidates{Now: now, Preemptor: p, Dims: testDims, Strings: testStrings, FirstRow: []int32{0}, Shared: testShared()}
	total := 0
	for i, n := range rows {
		total += n
		c.FirstRow = append(c.FirstRow, int32(total))
		c.MustLeave = append(c.MustLeave, int32(min(n, 1)))
		c.Place = append(c.Place, int32(6+i%4))
	}
	options := len(rows)
	c.Need, c.Freed = testTable(2, options, 400), testTable(2, options, 0)
	c.DeviceNeed = testTable(1, options, 1)
	c.Capacity, c.Reserved = testTable(2, options, 4000), testTable(2, options, 100)
	c.Free, c.Own = testTable(2, options, 100), testTable(2, options, 0)
	c.Rows = testRows(total, now)
	for i := range rows {
		if c.FirstRow[i] < c.FirstRow[i+1] {
			c.Rows.MustLeave[c.FirstRow[i]] = sdk.MustLeavePort
		}
	}
	return c
}

// testOptions returns options with the given numbers of victims.
func testOptions(p *sdk.Preemptor, now int64, victims ...int) *sdk.Options {
	n := len(victims)
	o := &sdk.Options{
		Now: now, Preemptor: p, Dims: testDims, Strings: testStrings, Shared: testShared(),
		Need: testTable(2, n, 400), DeviceGroup: [][]int32{make([]int32, n)}, DeviceNeed: testTable(1, n, 1),
		FitBefore: make([]float64, n), FitAfter: make([]float64, n), Present: make([]uint8, n), FirstVictim: []int32{0},
	}
	for k := range o.Components {
		o.Components[k] = make([]float64, n)
	}
	total := 0
	for i, v := range victims {
		total += v
		o.FirstVictim = append(o.FirstVictim, int32(total))
		o.Node = append(o.Node, int32(i))
		o.Place = append(o.Place, int32(6+i%4))
		o.VictimCount = append(o.VictimCount, int32(v))
		o.HighestPriority = append(o.HighestPriority, int32(20*min(v, 1)))
		o.PrioritySum = append(o.PrioritySum, int64(20*v))
		o.LostWork = append(o.LostWork, int64(v)*30e9)
		o.Start = append(o.Start, now-int64(v)*3600e9)
		o.BudgetViolations = append(o.BudgetViolations, int32(max(0, v-1)))
		o.Stranded, o.Displacing = append(o.Stranded, int32(v/2)), append(o.Displacing, int32(v-v/2))
		o.DisplacedPriority, o.DisplacedLostWork = append(o.DisplacedPriority, int32(5*v)), append(o.DisplacedLostWork, int64(v)*15e9)
		o.ExpectedLostWork, o.CascadeDepth = append(o.ExpectedLostWork, int64(v)*45e9), append(o.CascadeDepth, int32(v))
		o.ExpectedDelay = append(o.ExpectedDelay, int64(v)*60e9)
		o.FitBefore[i], o.FitAfter[i], o.Present[i] = 0.75, 0.5, uint8(i)
	}
	o.Victims = testRows(total, now)
	return o
}

func testRows(n int, now int64) sdk.Rows {
	r := sdk.Rows{
		Use: testTable(2, n, 300), Devices: testTable(1, n, 1),
		Labels:      &sdk.LabelTable{First: []int32{0}},
		Annotations: &sdk.AnnotationTable{Names: []string{"cost"}, Values: [][]float64{nil}},
		Budgets:     &sdk.BudgetRefs{First: []int32{0}},
	}
	for i := range n {
		r.Priority = append(r.Priority, int32(10+i))
		r.Start = append(r.Start, now-int64(i+1)*3600e9)
		r.LostWork = append(r.LostWork, int64(i)*60e9)
		r.Namespace, r.Job, r.Group = append(r.Namespace, 1), append(r.Job, 2), append(r.Group, 3)
		r.Evictions, r.EvictionLimit = append(r.Evictions, int32(i)), append(r.EvictionLimit, 1)
		r.MustLeave = append(r.MustLeave, 0)
		r.Relocation = append(r.Relocation, uint8(i%3))
		r.DisplacedPriority, r.DisplacedLostWork = append(r.DisplacedPriority, int32(i)), append(r.DisplacedLostWork, int64(i)*1e9)
		r.Labels.Key, r.Labels.Value = append(r.Labels.Key, 4), append(r.Labels.Value, 5)
		r.Labels.First = append(r.Labels.First, int32(i+1))
		if i%2 == 1 {
			r.Budgets.At = append(r.Budgets.At, 0)
		}
		r.Budgets.First = append(r.Budgets.First, int32(len(r.Budgets.At)))
		cost := math.NaN()
		if i%2 == 1 {
			cost = float64(i)
		}
		r.Annotations.Values[0] = append(r.Annotations.Values[0], cost)
	}
	return r
}

func testShared() *sdk.Shared {
	return &sdk.Shared{
		Totals:     []float64{16000, 32768},
		Namespaces: sdk.NamespaceTable{Name: []int32{1}, Weight: []float64{1}, Use: [][]float64{{1800}, {1800}}},
		Budgets:    sdk.BudgetTable{Name: []int32{10}, Slack: []int32{1}, Strict: []uint8{0}},
	}
}

// testTable is a table of rows columns of n elements, which differ a little.
func testTable(rows, n int, value float64) [][]float64 {
	t := make([][]float64, rows)
	for d := range t {
		t[d] = make([]float64, n)
		for i := range t[d] {
			if value != 0 {
				t[d][i] = value + float64(d+i)
			}
		}
	}
	return t
}
