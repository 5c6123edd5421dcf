package policytest

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// A layout converts the rows of a case to columns.
type layout struct {
	c       *Case
	strings []string
	ids     map[string]int32
	notes   []map[string]float64
}

func newLayout(c *Case) *layout { return &layout{c: c, ids: map[string]int32{}} }

// id returns the index of a string in the string table, adding it if needed.
func (l *layout) id(s string) int32 {
	id, ok := l.ids[s]
	if !ok {
		id = int32(len(l.strings))
		l.ids[s], l.strings = id, append(l.strings, s)
	}
	return id
}

func (l *layout) rows() policy.Rows {
	return policy.Rows{
		Use: columns(len(l.c.Dims)), Devices: columns(len(l.c.Preemptor.Devices)),
		Labels: &policy.LabelTable{First: []int32{0}}, Budgets: &policy.BudgetRefs{First: []int32{0}},
	}
}

func (l *layout) append(to *policy.Rows, r *Row) {
	to.Priority = append(to.Priority, r.Priority)
	to.Evictions = append(to.Evictions, r.Evictions)
	to.EvictionLimit = append(to.EvictionLimit, r.EvictionLimit)
	to.MustLeave = append(to.MustLeave, r.MustLeave)
	to.Start = append(to.Start, l.c.Now-r.Age)
	to.LostWork = append(to.LostWork, r.LostWork)
	for d := range to.Use {
		to.Use[d] = append(to.Use[d], r.Use[d])
	}
	for k := range to.Devices {
		to.Devices[k] = append(to.Devices[k], r.Devices[k])
	}
	namespace, job := r.namespace(), cmp.Or(r.Job, r.Name)
	to.Namespace = append(to.Namespace, l.id(namespace))
	to.Job = append(to.Job, l.id(namespace+"\x00"+job))
	to.Group = append(to.Group, l.id(namespace+"\x00"+job+"\x00"+cmp.Or(r.Group, "g")))
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		to.Labels.Key = append(to.Labels.Key, l.id(key))
		to.Labels.Value = append(to.Labels.Value, l.id(r.Labels[key]))
	}
	to.Labels.First = append(to.Labels.First, int32(len(to.Labels.Key)))
	l.appendBudgets(to.Budgets, r)
	priority, lost := r.Relocation.cost()
	to.Relocation = append(to.Relocation, r.Relocation.Where)
	to.DisplacedPriority, to.DisplacedLostWork = append(to.DisplacedPriority, priority), append(to.DisplacedLostWork, lost)
	l.notes = append(l.notes, r.Annotations)
}

func (r *Row) namespace() string { return cmp.Or(r.Namespace, "default") }

// annotations returns the annotation columns of all rows appended so far.
func (l *layout) annotations() *policy.AnnotationTable {
	names := map[string]bool{}
	for _, notes := range l.notes {
		for name := range notes {
			names[name] = true
		}
	}
	t := &policy.AnnotationTable{Names: slices.Sorted(maps.Keys(names))}
	for _, name := range t.Names {
		column := make([]float64, len(l.notes))
		for i, notes := range l.notes {
			if v, ok := notes[name]; ok {
				column[i] = v
			} else {
				column[i] = math.NaN()
			}
		}
		t.Values = append(t.Values, column)
	}
	return t
}

// shared returns the totals, and a row for every namespace in ascending order.
func (l *layout) shared() *policy.Shared {
	c := l.c
	s := &policy.Shared{Totals: slices.Clone(c.Totals), Budgets: l.budgetTable()}
	s.Namespaces.Use = columns(len(c.Dims))
	use := map[string][]float64{cmp.Or(c.Preemptor.Namespace, "default"): make([]float64, len(c.Dims))}
	sum := make([]float64, len(c.Dims))
	c.eachNode(func(o *Option) {
		add(sum, o.Free)
		for i := range o.Rows {
			r := &o.Rows[i]
			if use[r.namespace()] == nil {
				use[r.namespace()] = make([]float64, len(c.Dims))
			}
			add(use[r.namespace()], r.Use)
			add(sum, r.Use)
		}
	})
	if c.Totals == nil {
		s.Totals = sum
	}
	weight := map[string]float64{}
	for _, n := range c.Namespaces {
		weight[n.Name] = n.Weight
		if n.Use != nil {
			use[n.Name] = n.Use
		}
	}
	for _, name := range slices.Sorted(maps.Keys(use)) {
		s.Namespaces.Name = append(s.Namespaces.Name, l.id(name))
		s.Namespaces.Weight = append(s.Namespaces.Weight, cmp.Or(weight[name], 1))
		for d := range c.Dims {
			s.Namespaces.Use[d] = append(s.Namespaces.Use[d], use[name][d])
		}
	}
	return s
}

// eachNode calls visit with one option of every node.
func (c *Case) eachNode(visit func(*Option)) {
	seen := map[int32]bool{}
	for i := range c.Options {
		if node := c.Options[i].Node; !seen[node] {
			seen[node] = true
			visit(&c.Options[i])
		}
	}
}

func add(to, v []float64) {
	for d := range to {
		to[d] += v[d]
	}
}
