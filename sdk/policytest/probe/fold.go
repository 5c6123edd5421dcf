package probe

import (
	"maps"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// A sum is a running hash of all values added to it.
type sum uint64

const (
	basis = 0xcbf29ce484222325
	prime = 0x100000001b3
)

func (h *sum) add(x uint64) { *h = (*h ^ sum(x)) * prime }

// part returns a number derived from the sum for row or option k.
func (h sum) part(k int) uint64 {
	h.add(uint64(k))
	return uint64(h ^ h>>29)
}

func (h *sum) int(x int32)     { h.add(uint64(int64(x))) }
func (h *sum) float(x float64) { h.add(math.Float64bits(x)) }

func (h *sum) text(s string) {
	h.add(uint64(len(s)))
	for i := range len(s) {
		h.add(uint64(s[i]))
	}
}

func (h *sum) ints(c []int32) {
	h.add(uint64(len(c)))
	for _, x := range c {
		h.int(x)
	}
}

func (h *sum) longs(c []int64) {
	h.add(uint64(len(c)))
	for _, x := range c {
		h.add(uint64(x))
	}
}

func (h *sum) floats(c []float64) {
	h.add(uint64(len(c)))
	for _, x := range c {
		h.float(x)
	}
}

func (h *sum) bytes(c []uint8) {
	h.add(uint64(len(c)))
	for _, x := range c {
		h.add(uint64(x))
	}
}

func (h *sum) table(t [][]float64) {
	h.add(uint64(len(t)))
	for _, c := range t {
		h.floats(c)
	}
}

func (h *sum) texts(list []string) {
	h.add(uint64(len(list)))
	for _, s := range list {
		h.text(s)
	}
}

// named adds a column of strings.
func (h *sum) named(strings []string, ids []int32) {
	h.add(uint64(len(ids)))
	for _, id := range ids {
		h.text(strings[id])
	}
}

func (p *Policy) candidates(in *policy.Candidates) sum {
	h := sum(basis ^ p.seed)
	h.add(uint64(in.Now))
	h.preemptor(in.Preemptor)
	h.texts(in.Dims)
	h.ints(in.FirstRow)
	h.table(in.Need)
	h.table(in.Freed)
	h.table(in.DeviceNeed)
	h.ints(in.MustLeave)
	h.named(in.Strings, in.Place)
	h.table(in.Capacity)
	h.table(in.Reserved)
	h.table(in.Free)
	h.table(in.Own)
	h.rows(&in.Rows, in.Strings)
	h.shared(in.Shared, in.Strings)
	return h
}

func (p *Policy) options(in *policy.Options) sum {
	h := sum(basis ^ p.seed)
	h.add(uint64(in.Now))
	h.preemptor(in.Preemptor)
	h.texts(in.Dims)
	h.ints(in.Node)
	h.ints(in.HighestPriority)
	h.ints(in.VictimCount)
	h.longs(in.PrioritySum)
	h.longs(in.LostWork)
	h.named(in.Strings, in.Place)
	later(h.longs, in.Start)
	later(h.ints, in.BudgetViolations)
	later(h.ints, in.Stranded)
	later(h.ints, in.Displacing)
	later(h.ints, in.DisplacedPriority)
	later(h.longs, in.DisplacedLostWork)
	later(h.longs, in.ExpectedLostWork)
	later(h.ints, in.CascadeDepth)
	later(h.longs, in.ExpectedDelay)
	h.table(in.Need)
	h.table(in.DeviceNeed)
	h.add(uint64(len(in.DeviceGroup)))
	for _, group := range in.DeviceGroup {
		h.ints(group)
	}
	h.floats(in.FitBefore)
	h.floats(in.FitAfter)
	if in.Components[0] == nil {
		h.add(0)
	} else {
		h.table(in.Components[:])
	}
	h.bytes(in.Present)
	h.ints(in.FirstVictim)
	h.rows(&in.Victims, in.Strings)
	h.shared(in.Shared, in.Strings)
	return h
}

func (h *sum) preemptor(p *policy.Preemptor) {
	for _, text := range []string{p.Namespace, p.Job, p.Group, p.JobType} {
		h.text(text)
	}
	h.int(p.Priority)
	h.int(p.Delta)
	h.int(int32(p.Ports))
	h.int(p.Attempts)
	h.add(uint64(p.Waiting))
	h.floats(p.Ask)
	h.add(uint64(len(p.Devices)))
	for _, d := range p.Devices {
		h.text(d.ID)
		h.int(d.Count)
	}
	h.add(uint64(len(p.Labels)))
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		h.text(key)
		h.text(p.Labels[key])
	}
	h.add(uint64(len(p.Annotations)))
	for _, name := range slices.Sorted(maps.Keys(p.Annotations)) {
		h.text(name)
		h.float(p.Annotations[name])
	}
}

func (h *sum) rows(r *policy.Rows, strings []string) {
	h.ints(r.Priority)
	h.table(r.Use)
	h.longs(r.Start)
	h.longs(r.LostWork)
	h.named(strings, r.Namespace)
	h.named(strings, r.Job)
	h.named(strings, r.Group)
	h.ints(r.Evictions)
	h.ints(r.EvictionLimit)
	h.bytes(r.MustLeave)
	h.table(r.Devices)
	labels, notes := policy.LabelTable{}, policy.AnnotationTable{}
	if r.Labels != nil {
		labels = *r.Labels
	}
	if r.Annotations != nil {
		notes = *r.Annotations
	}
	h.ints(labels.First)
	h.named(strings, labels.Key)
	h.named(strings, labels.Value)
	h.texts(notes.Names)
	h.table(notes.Values)
	if r.Budgets != nil {
		later(h.ints, r.Budgets.First)
		later(h.ints, r.Budgets.At)
	}
	later(h.bytes, r.Relocation)
	later(h.ints, r.DisplacedPriority)
	later(h.longs, r.DisplacedLostWork)
}

func (h *sum) shared(s *policy.Shared, strings []string) {
	if s == nil {
		s = &policy.Shared{}
	}
	h.floats(s.Totals)
	h.named(strings, s.Namespaces.Name)
	h.floats(s.Namespaces.Weight)
	h.table(s.Namespaces.Use)
	if b := &s.Budgets; len(b.Name) > 0 {
		h.named(strings, b.Name)
		h.ints(b.Slack)
		h.bytes(b.Strict)
	}
}

// later adds a column that versions of the ABI after the first define. An empty
// column adds nothing, so that answers to frames of the first version do not change.
func later[T any](fold func([]T), column []T) {
	if len(column) > 0 {
		fold(column)
	}
}
