package policytest

import (
	"cmp"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// A Case is a preemptor and the options it has.
type Case struct {
	Now       int64
	Dims      []string
	Preemptor policy.Preemptor
	Options   []Option

	// Totals is the capacity of the cluster, by dimension. If it is nil, the
	// capacity is that of the nodes of the case.
	Totals []float64
	// Namespaces holds the namespaces whose weight or usage differs from the
	// default.
	Namespaces []Namespace
	// Budgets holds the disruption budgets that rows refer to. None is strict:
	// the host enforces strict budgets itself.
	Budgets []Budget
}

// A Budget is a disruption budget.
type Budget struct {
	Name  string
	Slack int32 // rows it covers that can be evicted before it is exceeded
}

// A Namespace is a tenant.
type Namespace struct {
	Name   string
	Weight float64
	Use    []float64 // by dimension; nil: the sum over its rows
}

// An Option is a node with a choice of device groups.
type Option struct {
	Name        string
	Node        int32     // options with equal values are on the same node
	Free        []float64 // by dimension
	DeviceFree  []float64 // by request, of the chosen group
	DeviceGroup []int32   // by request
	Rows        []Row     // in tie order; Candidates sorts them by priority

	FitBefore, FitAfter float64
	Components          [policy.NumComponents]float64
	Present             uint8

	Follows Outlook
}

// An Outlook holds the columns of look-ahead. The zero value stands for an option that was
// not played.
type Outlook struct {
	LostWork, Delay int64 // nanoseconds
	Depth           int32
}

// A Row is an allocation that may be evicted.
type Row struct {
	Name                     string
	Priority                 int32
	Use                      []float64 // by dimension
	Devices                  []float64 // by request
	MustLeave                uint8
	Evictions, EvictionLimit int32

	Namespace, Job, Group string // "" is default, the row's name, and g
	Age, LostWork         int64  // nanoseconds
	Labels                map[string]string
	Annotations           map[string]float64
	Budgets               []string // names; only of started allocations
	Relocation            Relocation
}

// A Relocation states where a row could run if it were evicted. The zero value is free
// capacity on another node.
type Relocation struct {
	Where    uint8 // policy.Relocation*
	Priority int32 // highest priority that it would evict, with RelocationEvicts
	LostWork int64 // nanoseconds that it would lose, with RelocationEvicts
}

// cost returns the values of the columns DisplacedPriority and DisplacedLostWork.
func (r *Relocation) cost() (priority int32, lostWork int64) {
	if r.Where == policy.RelocationEvicts {
		return r.Priority, r.LostWork
	}
	return math.MinInt32, 0
}

// Sort orders the rows of each option as policies receive them: by priority
// ascending, and stable within a priority.
func (c *Case) Sort() {
	for i := range c.Options {
		slices.SortStableFunc(c.Options[i].Rows, func(a, b Row) int { return cmp.Compare(a.Priority, b.Priority) })
	}
}

// Candidates sorts the rows and returns the input of PriorityDelta, ScoreVictims,
// SelectVictims and PreemptBindings for the case. A node runs the rows of its option
// and nothing else.
func (c *Case) Candidates() *policy.Candidates {
	c.Sort()
	l := newLayout(c)
	in := &policy.Candidates{
		Now:        c.Now,
		Preemptor:  &c.Preemptor,
		Dims:       c.Dims,
		FirstRow:   []int32{0},
		Need:       columns(len(c.Dims)),
		Freed:      columns(len(c.Dims)),
		Free:       columns(len(c.Dims)),
		Capacity:   columns(len(c.Dims)),
		Reserved:   columns(len(c.Dims)),
		Own:        columns(len(c.Dims)),
		DeviceNeed: columns(len(c.Preemptor.Devices)),
		Rows:       l.rows(),
		Shared:     l.shared(),
	}
	for i := range c.Options {
		o := &c.Options[i]
		must := int32(0)
		for r := range o.Rows {
			l.append(&in.Rows, &o.Rows[r])
			if o.Rows[r].MustLeave != 0 {
				must++
			}
		}
		in.FirstRow = append(in.FirstRow, int32(in.Rows.Len()))
		in.MustLeave = append(in.MustLeave, must)
		in.Place = append(in.Place, l.id(o.Name))
		for d, capacity := range o.capacity() {
			in.Capacity[d] = append(in.Capacity[d], capacity)
			in.Reserved[d], in.Own[d] = append(in.Reserved[d], 0), append(in.Own[d], 0)
			in.Need[d] = append(in.Need[d], c.Preemptor.Ask[d]-o.Free[d])
			in.Freed[d] = append(in.Freed[d], 0)
			in.Free[d] = append(in.Free[d], o.Free[d])
		}
		for r := range c.Preemptor.Devices {
			in.DeviceNeed[r] = append(in.DeviceNeed[r], c.deviceNeed(o, r))
		}
	}
	in.Strings = l.strings
	in.Rows.Annotations = l.annotations()
	return in
}

// OptionsOf returns the input of ScoreOptions for the case if victims[i] are evicted
// for option i. Victims are indexes into the sorted rows of the option, in the order
// of picking. All options are included.
func (c *Case) OptionsOf(victims [][]int) *policy.Options {
	c.Sort()
	l := newLayout(c)
	in := &policy.Options{
		Now:         c.Now,
		Preemptor:   &c.Preemptor,
		Dims:        c.Dims,
		Need:        columns(len(c.Dims)),
		DeviceGroup: make([][]int32, len(c.Preemptor.Devices)),
		DeviceNeed:  columns(len(c.Preemptor.Devices)),
		FirstVictim: []int32{0},
		Victims:     l.rows(),
		Shared:      l.shared(),
	}
	for i := range c.Options {
		o := &c.Options[i]
		highest, sum, lost, start := int32(0), int64(0), int64(0), int64(0)
		in.BudgetViolations = append(in.BudgetViolations, c.violations(o, victims[i]))
		o.appendRelocation(in, victims[i])
		for k, v := range victims[i] {
			l.append(&in.Victims, &o.Rows[v])
			sum += int64(o.Rows[v].Priority)
			lost += o.Rows[v].LostWork
			if k == 0 || o.Rows[v].Priority > highest {
				highest, start = o.Rows[v].Priority, c.Now-o.Rows[v].Age
			} else if o.Rows[v].Priority == highest {
				start = min(start, c.Now-o.Rows[v].Age)
			}
		}
		in.FirstVictim = append(in.FirstVictim, int32(in.Victims.Len()))
		in.Node, in.Place = append(in.Node, o.Node), append(in.Place, l.id(o.Name))
		in.HighestPriority = append(in.HighestPriority, highest)
		in.VictimCount = append(in.VictimCount, int32(len(victims[i])))
		in.PrioritySum = append(in.PrioritySum, sum)
		in.LostWork, in.Start = append(in.LostWork, lost), append(in.Start, start)
		for d := range c.Dims {
			in.Need[d] = append(in.Need[d], c.Preemptor.Ask[d]-o.Free[d])
		}
		for r := range c.Preemptor.Devices {
			in.DeviceGroup[r] = append(in.DeviceGroup[r], o.DeviceGroup[r])
			in.DeviceNeed[r] = append(in.DeviceNeed[r], c.deviceNeed(o, r))
		}
		in.FitBefore = append(in.FitBefore, o.FitBefore)
		in.FitAfter = append(in.FitAfter, o.FitAfter)
		for k := range in.Components {
			in.Components[k] = append(in.Components[k], o.Components[k])
		}
		in.Present = append(in.Present, o.Present)
		in.ExpectedLostWork, in.CascadeDepth = append(in.ExpectedLostWork, o.Follows.LostWork), append(in.CascadeDepth, o.Follows.Depth)
		in.ExpectedDelay = append(in.ExpectedDelay, o.Follows.Delay)
	}
	in.Strings = l.strings
	in.Victims.Annotations = l.annotations()
	return in
}

// NewScores returns a zero answer, as a host passes it to ScoreOptions.
func NewScores(options int) *policy.OptionScores {
	s := &policy.OptionScores{Score: make([]float64, options)}
	for k := range s.Tiers {
		s.Tiers[k] = make([]int64, options)
	}
	return s
}

// capacity returns the capacity of the node of an option, by dimension: its free
// capacity and the use of the rows.
func (o *Option) capacity() []float64 {
	capacity := slices.Clone(o.Free)
	for _, r := range o.Rows {
		for d := range capacity {
			capacity[d] += r.Use[d]
		}
	}
	return capacity
}

func (c *Case) deviceNeed(o *Option, r int) float64 {
	return float64(c.Preemptor.Devices[r].Count) - o.DeviceFree[r]
}

func columns(n int) [][]float64 { return make([][]float64, n) }

// appendRelocation appends where the victims of an option could run instead.
func (o *Option) appendRelocation(in *policy.Options, victims []int) {
	stranded, displacing, priority, lost := int32(0), int32(0), int32(math.MinInt32), int64(0)
	for _, v := range victims {
		r := &o.Rows[v].Relocation
		switch r.Where {
		case policy.RelocationEvicts:
			displacing++
		case policy.RelocationNone:
			stranded++
		}
		p, l := r.cost()
		priority, lost = max(priority, p), lost+l
	}
	in.Stranded, in.Displacing = append(in.Stranded, stranded), append(in.Displacing, displacing)
	in.DisplacedPriority, in.DisplacedLostWork = append(in.DisplacedPriority, priority), append(in.DisplacedLostWork, lost)
}
