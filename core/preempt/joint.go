package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// A Joint is one of several ways to place the instances of a gang.
type Joint struct {
	Placed  []*model.Allocation // one at least; the first is of the request's group
	Victims []*model.Allocation // in picking order
}

// A Bound holds totals that no way to place the instances of a gang in some domain can fall
// below. Totals that it does not hold are zero, and the victims have just started.
type Bound struct {
	Pos         int32 // of some node of the domain
	Highest     int32 // priority; math.MinInt32 without victims
	Victims     int32
	PrioritySum int64 // each raised by 2^31 and lowered again, so that more victims cost more
	LostWork    int64 // nanoseconds
	// Rows is an estimate of the victims, for policies that read them one by one.
	Rows []*state.Row
	// Lists are lists of least victims, for such policies with Info.Monotone. The victims of any way
	// can be paired with those of each list such that each is at least as high in every column.
	Lists [][]LeastVictim
}

// A LeastVictim stands for equal fictitious victims of a bound.
type LeastVictim struct {
	Priority int32
	Count    int32
	LostWork int64 // nanoseconds
	Use      model.Vector
}

// A Comparison is the result of a call of ScoreOptions about ways and bounds. Positions count
// the ways first, then the bounds. It is valid until the next search of its Finder.
type Comparison struct {
	table *optionTable
	// at are the positions in the table. The list of a bound with the highest tiers counts, since
	// each of them holds.
	at []int32
}

// Better reports whether the policy prefers one to another, which is earlier or later.
func (c Comparison) Better(i, j int) bool { return c.table.better(int(c.at[i]), int(c.at[j])) }

// Key returns the tiers of one. Under a policy with Info.Monotone they do not depend on the others, so
// that those of several comparisons can be compared.
func (c Comparison) Key(i int) prune.Key { return c.table.key(int(c.at[i])) }

// Compare calls the policy's ScoreOptions once about ways and bounds. snap is the state before
// any of them. The policy receives each way as one option: the victims are those of all nodes,
// the need and the fit are the sum and the mean over its nodes, and everything else is that of
// the first placement. A bound is an option with its totals. The nodes of the request are not
// read. Where victims could run instead is not compared, since a bound cannot contain it and
// no domain could be omitted: every victim counts as one that fits elsewhere.
func (f *Finder) Compare(snap *state.Snapshot, req Request, ways []Joint, bounds []Bound) (c Comparison, err error) {
	req.Nodes = nil
	s := &f.search
	s.start(snap, req)
	f.findings, f.err = protect.Findings{}, nil
	defer f.Release()
	if f.chooser, err = acquireHook(s.traits.chooser, req.OnCall); err != nil {
		return c, err
	}
	var charged protect.Charges
	for i := range ways {
		s.addJoint(&ways[i], &charged)
	}
	s.addBounds(bounds)
	err = f.scoreOptions()
	c = Comparison{&f.table, make([]int32, 0, len(ways)+len(bounds))}
	for i := range ways {
		c.at = append(c.at, int32(i))
	}
	for i, of := range s.boundOf {
		at := int32(len(ways) + i)
		if i == 0 || s.boundOf[i-1] != of {
			c.at = append(c.at, at)
		} else if err == nil {
			last := &c.at[len(c.at)-1]
			if before, key := f.table.key(int(*last)), f.table.key(int(at)); before.Less(&key) {
				*last = at
			}
		}
	}
	s.boundOf = s.boundOf[:0]
	clear(s.boundSolutions)
	return c, err
}

// addBounds adds an option for each bound, or for each of its lists. Their totals are filled in with
// the table.
func (s *search) addBounds(bounds []Bound) {
	s.boundOf = s.boundOf[:0]
	for i := range bounds {
		for range max(1, len(bounds[i].Lists)) {
			s.boundOf = append(s.boundOf, &bounds[i])
		}
	}
	s.boundSolutions = scratch.Sized(s.boundSolutions, len(s.boundOf))
	need := make([]float64, s.scope.Snap.Dims().Len())
	readsVictims := s.traits.optionColumns.Has(sdk.VictimColumns)
	list := 0
	for i, b := range s.boundOf {
		of := &s.boundSolutions[i]
		*of = solution{evaluatedAt: b.Pos, start: s.req.Now, fitBefore: 1, fitAfter: 1, need: need}
		if list++; i == 0 || s.boundOf[i-1] != b {
			list = 0
		}
		switch {
		case !readsVictims:
		case len(b.Lists) > 0:
			of.victims = s.leastRows(b.Lists[list])
		default:
			of.victims = b.Rows
		}
		s.addOption(b.Pos, 0)
		o := &s.options[len(s.options)-1]
		o.feasible, o.solution = true, of
	}
}

// leastRows returns fictitious victims as rows. They run on no node, have not started for budgets,
// and have run for as long as the work that they lose: real ones have run for longer.
func (s *search) leastRows(list []LeastVictim) (rows []*state.Row) {
	for i := range list {
		v := &list[i]
		start := s.req.Now - v.LostWork
		row := &state.Row{
			Alloc:    &model.Allocation{NodePos: -1, Started: true, StartTime: start},
			Group:    &model.Group{Ask: model.Ask{Vec: v.Use}},
			Priority: v.Priority, Start: start,
		}
		for range v.Count {
			rows = append(rows, row)
		}
	}
	return rows
}

// fillBounds sets the totals of bounds, which are the last options of the table.
func (t *optionTable) fillBounds(bounds []*Bound) {
	o, first := &t.options, len(t.at)-len(bounds)
	for i, b := range bounds {
		at := first + i
		o.HighestPriority[at], o.VictimCount[at], o.PrioritySum[at], o.LostWork[at] = b.Highest, b.Victims, b.PrioritySum, b.LostWork
	}
}

// addJoint adds a feasible option for a way to place a gang.
func (s *search) addJoint(j *Joint, charged *protect.Charges) {
	// A gang that is placed in another order of its groups starts with another one.
	first := j.Placed[max(0, slices.IndexFunc(j.Placed, func(a *model.Allocation) bool { return a.Group.Name == s.req.Group.Name }))]
	s.addOption(first.NodePos, s.deviceWay(first))
	o := &s.options[len(s.options)-1]
	o.feasible, o.solution = true, &solution{evaluatedAt: first.NodePos}
	for _, v := range j.Victims {
		o.victims = append(o.victims, protect.RowOf(s.scope.Snap, v))
	}
	o.fillCosts(s, charged)
	o.fillJoint(s, j)
}

// deviceWay returns the position in the node's DeviceChoices of the device groups that an
// allocation uses.
func (s *search) deviceWay(a *model.Allocation) int16 {
	if len(a.Devices) == 0 {
		return 0
	}
	node := s.scope.Snap.NodeAt(a.NodePos)
	way := slices.IndexFunc(node.DeviceChoices(&s.req.Group.Ask), func(choice []int16) bool {
		return slices.EqualFunc(choice, a.Devices, func(at int16, use model.DeviceUse) bool { return node.Devices[at].ID == use.ID })
	})
	return int16(max(0, way))
}

// fillJoint computes the need and the fit over the nodes of a way.
func (o *solution) fillJoint(s *search, j *Joint) {
	dims := s.scope.Snap.Dims().Len()
	asked, freed := map[int32]*model.Vector{}, map[int32]*model.Vector{}
	for _, a := range j.Placed {
		addTo(asked, a)
	}
	for _, v := range j.Victims {
		addTo(freed, v)
	}
	o.need = make([]float64, dims)
	for pos, ask := range asked { // sums of whole numbers: any order
		node := fit.At(s.scope.Snap, pos)
		for d := range dims {
			o.need[d] += float64(max(0, ask[d]-node.Free(d)))
		}
	}
	for _, a := range j.Placed {
		node, ask := fit.At(s.scope.Snap, a.NodePos), asked[a.NodePos]
		cpu, memory := node.Free(model.CPU)-ask[model.CPU], node.Free(model.Memory)-ask[model.Memory]
		o.fitBefore += fit.Score(s.req.Algorithm, node.Offer(model.CPU), node.Offer(model.Memory), cpu, memory)
		if free := freed[a.NodePos]; free != nil {
			cpu, memory = cpu+free[model.CPU], memory+free[model.Memory]
		}
		o.fitAfter += fit.Score(s.req.Algorithm, node.Offer(model.CPU), node.Offer(model.Memory), cpu, memory)
	}
	o.fitBefore, o.fitAfter = o.fitBefore/float64(len(j.Placed)), o.fitAfter/float64(len(j.Placed))
}

// addTo adds the request of an allocation to the sum of its node.
func addTo(sums map[int32]*model.Vector, a *model.Allocation) {
	if sums[a.NodePos] == nil {
		sums[a.NodePos] = new(model.Vector)
	}
	sums[a.NodePos].Add(&a.Group.Ask.Vec)
}
