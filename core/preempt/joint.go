package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/protect"
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
	// Rows is an estimate of the victims, for policies that read them one by one.
	Rows []*state.Row
}

// A Comparison is the result of a call of ScoreOptions about ways and bounds. Positions count
// the ways first, then the bounds. It is valid until the next search of its Finder.
type Comparison struct{ table *optionTable }

// Better reports whether the policy prefers one to another, which is earlier or later.
func (c Comparison) Better(i, j int) bool { return c.table.better(i, j) }

// Cheaper reports whether a tier of one is lower, and those before it are equal.
func (c Comparison) Cheaper(i, j int) bool {
	for _, tier := range &c.table.scores.Tiers {
		if tier[i] != tier[j] {
			return tier[i] < tier[j]
		}
	}
	return false
}

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
	s.bounds = nil
	clear(s.boundSolutions)
	return Comparison{&f.table}, err
}

// addBounds adds an option for each bound. Their totals are filled in with the table.
func (s *search) addBounds(bounds []Bound) {
	s.bounds, s.boundSolutions = bounds, scratch.Sized(s.boundSolutions, len(bounds))
	need := make([]float64, s.scope.Snap.Dims().Len())
	for i := range bounds {
		b, of := &bounds[i], &s.boundSolutions[i]
		*of = solution{evaluatedAt: b.Pos, start: s.req.Now, fitBefore: 1, fitAfter: 1, need: need}
		if s.traits.optionColumns.Has(sdk.VictimColumns) {
			of.victims = b.Rows
		}
		s.addOption(b.Pos, 0)
		o := &s.options[len(s.options)-1]
		o.feasible, o.solution = true, of
	}
}

// fillBounds sets the totals of bounds, which are the last options of the table.
func (t *optionTable) fillBounds(bounds []Bound) {
	o, first := &t.options, len(t.at)-len(bounds)
	for i := range bounds {
		b, at := &bounds[i], first+i
		o.HighestPriority[at], o.VictimCount[at], o.PrioritySum[at] = b.Highest, b.Victims, b.PrioritySum
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
