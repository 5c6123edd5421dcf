package policytest

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// RandomCandidates returns candidates in which every column is set to random values.
// It serves tests of encodings, and of policies that read columns that Case does not
// hold. The values need not be consistent with each other.
func RandomCandidates(r *rand.Rand, options, rows int) *policy.Candidates {
	f := filler{Rand: r}
	in := &policy.Candidates{Now: f.time(), Preemptor: f.preemptor(), Strings: f.strings()}
	for d := range f.IntN(6) {
		in.Dims = append(in.Dims, "dim-"+strconv.Itoa(d))
	}
	dims, n := len(in.Dims), f.IntN(options+1)
	in.FirstRow, in.Preemptor.Ask = f.first(n, rows), f.floats(dims)
	in.Need, in.Freed, in.DeviceNeed = f.table(dims, n), f.table(dims, n), f.table(len(in.Preemptor.Devices), n)
	in.Capacity, in.Reserved, in.Free, in.Own = f.table(dims, n), f.table(dims, n), f.table(dims, n), f.table(dims, n)
	in.MustLeave, in.Place = f.ints(n, 9), f.ints(n, len(in.Strings))
	in.Rows = f.rows(dims, len(in.Preemptor.Devices), int(in.FirstRow[n]), in.Strings)
	in.Shared = f.shared(dims, in.Strings)
	f.budgets(in)
	f.relocation(in)
	return in
}

// relocation sets where rows could run instead, with a separate random source as budgets.
func (f filler) relocation(in *policy.Candidates) {
	f.Rand = rand.New(rand.NewPCG(uint64(in.Now), 3))
	r, n := &in.Rows, in.Rows.Len()
	r.Relocation, r.DisplacedPriority, r.DisplacedLostWork = make([]uint8, n), f.ints(n, 100), f.longs(n, 1<<50)
	for i := range r.Relocation {
		r.Relocation[i] = uint8(f.IntN(policy.RelocationNone + 1))
	}
}

// budgets adds a table of budgets and assigns rows to them. It uses a separate random
// source, so that the other columns stay as golden frames hold them.
func (f filler) budgets(in *policy.Candidates) {
	f.Rand = rand.New(rand.NewPCG(uint64(in.Now), 1))
	n, rows := f.IntN(5), in.Rows.Len()
	t := &in.Shared.Budgets
	t.Name, t.Slack, t.Strict = f.ints(n, len(in.Strings)), f.ints(n, 4), make([]uint8, n)
	for i := range t.Strict {
		t.Strict[i] = uint8(f.IntN(2))
	}
	refs := &policy.BudgetRefs{First: make([]int32, rows+1)}
	if n > 0 {
		refs.First = f.first(rows, 3)
		refs.At = f.ints(int(refs.First[rows]), n)
	}
	in.Rows.Budgets = refs
}

// RandomOptions is RandomCandidates for ScoreOptions.
func RandomOptions(r *rand.Rand, options, rows int) *policy.Options {
	f := filler{Rand: r}
	c := RandomCandidates(r, options, rows)
	n, requests := c.Len(), len(c.Preemptor.Devices)
	in := &policy.Options{
		Now: c.Now, Preemptor: c.Preemptor, Dims: c.Dims, Strings: c.Strings, Place: c.Place,
		Need: c.Need, DeviceNeed: c.DeviceNeed, FirstVictim: c.FirstRow, Victims: c.Rows, Shared: c.Shared,
		Node: f.ints(n, 100), HighestPriority: f.ints(n, 100), VictimCount: f.ints(n, 4),
		PrioritySum: f.longs(n, 1<<40), LostWork: f.longs(n, 1<<50),
		FitBefore: f.unit(n), FitAfter: f.unit(n), Present: make([]uint8, n),
	}
	apart := filler{rand.New(rand.NewPCG(uint64(c.Now), 2))} // as in budgets
	in.BudgetViolations, in.Start = apart.ints(n, 3), apart.longs(n, 1<<60)
	in.Stranded, in.Displacing = apart.ints(n, 3), apart.ints(n, 3)
	in.DisplacedPriority, in.DisplacedLostWork = apart.ints(n, 100), apart.longs(n, 1<<50)
	in.ExpectedLostWork, in.CascadeDepth, in.ExpectedDelay = apart.longs(n, 1<<50), apart.ints(n, 9), apart.longs(n, 1<<50)
	for range requests {
		in.DeviceGroup = append(in.DeviceGroup, f.ints(n, 50))
	}
	for k := range in.Components {
		in.Components[k] = f.unit(n)
	}
	for i := range in.Present {
		in.Present[i] = uint8(f.IntN(8))
	}
	return in
}

// A filler generates columns.
type filler struct{ *rand.Rand }

// time returns a Unix time in nanoseconds between 2020 and 2030.
func (f filler) time() int64 { return 1_600_000_000_000_000_000 + f.Int64N(1<<58) }

func (f filler) ints(n, below int) []int32 {
	column := make([]int32, n)
	for i := range column {
		column[i] = int32(f.IntN(below))
	}
	return column
}

func (f filler) longs(n int, below int64) []int64 {
	column := make([]int64, n)
	for i := range column {
		column[i] = f.Int64N(below)
	}
	return column
}

// unit returns n numbers in [0, 1).
func (f filler) unit(n int) []float64 {
	column := make([]float64, n)
	for i := range column {
		column[i] = f.Float64()
	}
	return column
}

// floats returns n amounts, some of them negative.
func (f filler) floats(n int) []float64 {
	column := f.unit(n)
	for i := range column {
		column[i] = math.Round(3000*column[i]) - 500
	}
	return column
}

func (f filler) table(columns, n int) [][]float64 {
	t := make([][]float64, columns)
	for k := range t {
		t[k] = f.floats(n)
	}
	return t
}

// first returns the index of the first row of each of n options.
func (f filler) first(n, rows int) []int32 {
	column := make([]int32, n+1)
	for i := range n {
		column[i+1] = column[i] + int32(f.IntN(rows+1))
	}
	return column
}

// strings returns a string table that starts with the empty string and contains
// characters of several lengths in UTF-8.
func (f filler) strings() []string {
	table := []string{""}
	for k := range 1 + f.IntN(8) {
		table = append(table, [...]string{"team-", "größe-", "日本-", "🦀"}[f.IntN(4)]+strconv.Itoa(k))
	}
	return table
}

func (f filler) preemptor() *policy.Preemptor {
	p := &policy.Preemptor{
		Namespace: "shop", Job: "jöb", Group: "組", JobType: "service",
		Priority: int32(f.IntN(100)), Delta: int32(f.IntN(20)), Ports: f.IntN(4),
		Waiting: f.Int64N(1 << 50), Attempts: int32(f.IntN(30)),
	}
	for k := range f.IntN(4) {
		p.Devices = append(p.Devices, policy.DeviceAsk{ID: "nvidia/gpu/" + strconv.Itoa(k), Count: int32(1 + f.IntN(8))})
	}
	for k := range f.IntN(3) {
		if p.Labels == nil {
			p.Labels, p.Annotations = map[string]string{}, map[string]float64{}
		}
		p.Labels["tier-"+strconv.Itoa(k)] = "wert-" + strconv.Itoa(f.IntN(9))
		p.Annotations["cost-"+strconv.Itoa(k)] = f.Float64()
	}
	return p
}

func (f filler) rows(dims, requests, n int, table []string) policy.Rows {
	texts := len(table)
	r := policy.Rows{
		Priority: f.ints(n, 100), Use: f.table(dims, n), Start: make([]int64, n), LostWork: f.longs(n, 1<<50),
		Namespace: f.ints(n, texts), Job: f.ints(n, texts), Group: f.ints(n, texts),
		Evictions: f.ints(n, 5), EvictionLimit: f.ints(n, 4), MustLeave: make([]uint8, n), Devices: f.table(requests, n),
		Labels:      &policy.LabelTable{First: f.first(n, 3)},
		Annotations: &policy.AnnotationTable{Names: []string{"cost", "größe"}, Values: f.table(2, n)},
	}
	for i := range n {
		r.Start[i], r.MustLeave[i] = f.time(), uint8(f.IntN(4))
		if f.IntN(3) == 0 {
			r.Annotations.Values[0][i] = math.NaN()
		}
	}
	pairs := int(r.Labels.First[n])
	r.Labels.Key, r.Labels.Value = f.ints(pairs, texts), f.ints(pairs, texts)
	return r
}

func (f filler) shared(dims int, table []string) *policy.Shared {
	n := f.IntN(5)
	return &policy.Shared{
		Totals:     f.floats(dims),
		Namespaces: policy.NamespaceTable{Name: f.ints(n, len(table)), Weight: f.unit(n), Use: f.table(dims, n)},
	}
}
