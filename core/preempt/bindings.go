package preempt

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// BindingRequest is a search for a member cluster that holds all that a binding
// misses once others have left it.
type BindingRequest struct {
	Binding  *model.Binding
	Replicas int // that are missing
	Now      int64
	Delta    *int32 // the operator's base gap; nil: the policy's own
	Waiting  int64  // nanoseconds since the binding was submitted
	Attempts int32

	Policy  *policy.Version
	Default *policy.Version // decides where Policy has no PreemptBindings

	// Clusters are those that may take the binding and lack room even when
	// everything that was told to stop is gone, in tie order.
	Clusters []*model.Cluster

	Ties Ties
	// Tell is told of every call of a hook; nil: nobody is.
	Tell func(policy.Call)
}

// BindingFound is what came of a search.
type BindingFound struct {
	Cluster   *model.Cluster      // nil: eviction makes no room anywhere
	Victims   []*model.Assignment // on it, in the order of picking
	Version   *policy.Version     // that decided
	Outcomes  []Outcome           // by position in BindingRequest.Clusters
	RecheckAt int64               // when the policy wants to be asked again; 0: not by time
}

// BindingCeiling is the highest priority that may be evicted for a binding. A
// PriorityDelta of the policy is about allocations, and has no say.
func BindingCeiling(priority int32, v *policy.Version, configured *int32) int64 {
	return int64(priority) - int64(max(1, baseGap(v, configured)))
}

// FindBinding looks for the best cluster. The host's rules hold whatever the
// policy answers: victims are candidates of their cluster, each once, of strictly
// lower priority, never of a cluster-scoped binding, never what asks for nothing;
// redundant ones are spared in reverse order of picking; and a cluster on which
// the answer frees too little is dropped. What breaks them is a fault.
func FindBinding(snap *state.Snapshot, req *BindingRequest) (BindingFound, error) {
	b := bindingSearch{req: req, snap: snap, dims: snap.Dims().Len()}
	b.found.Outcomes = make([]Outcome, len(req.Clusters))
	b.ceiling = BindingCeiling(req.Binding.Priority, req.Policy, req.Delta)
	if b.collect(); len(b.options) == 0 {
		return b.found, nil
	}
	if err := b.ask(); err != nil {
		return BindingFound{}, err
	}
	return b.found, nil
}

// bindingSearch is one search. Few bindings need one, so it keeps no memory.
type bindingSearch struct {
	req     *BindingRequest
	snap    *state.Snapshot
	dims    int
	ceiling int64
	options []bindingOption
	found   BindingFound

	version *policy.Version // that is asked; nil: nobody has the hook, the rules answer
	ids     dictionary
}

// bindingOption is a cluster with who may leave it.
type bindingOption struct {
	at   int // in BindingRequest.Clusters
	need model.Vector
	rows []bindingRow // ascending by priority, then in tie order
}

type bindingRow struct {
	assignment *model.Assignment
	priority   int32
}

// collect makes an option of every cluster where everybody who may go would be
// enough.
func (b *bindingSearch) collect() {
	for at, c := range b.req.Clusters {
		o := bindingOption{at: at, need: b.req.Binding.Needs(b.req.Replicas)}
		_, soon := b.snap.ClusterRoom(c.ID, b.req.Binding.Key(), b.req.Binding.Priority, b.req.Now)
		o.need.Sub(&soon)
		left := o.need
		for _, a := range b.snap.ClusterAssignments(c.ID) {
			if priority, ok := b.mayGo(a); ok {
				o.rows = append(o.rows, bindingRow{a, priority})
				left.Sub(&a.Vec)
			}
		}
		switch {
		case len(o.rows) == 0:
			b.found.Outcomes[at] = NoCandidates
		case !b.covered(&left):
			b.found.Outcomes[at] = NotEnough
		default:
			slices.SortFunc(o.rows, func(x, y bindingRow) int {
				return cmp.Or(cmp.Compare(x.priority, y.priority), b.req.Ties.Compare(x.assignment.ID, y.assignment.ID))
			})
			b.options = append(b.options, o)
		}
	}
}

// mayGo is whether an assignment is a candidate, and of which priority.
func (b *bindingSearch) mayGo(a *model.Assignment) (priority int32, ok bool) {
	if !a.Live() || a.Binding == b.req.Binding.Key() || a.Vec == (model.Vector{}) {
		return 0, false
	}
	victim := b.snap.Binding(a.Binding)
	if victim == nil || victim.ClusterScoped || int64(victim.Priority) > b.ceiling {
		return 0, false
	}
	return victim.Priority, true
}

func (b *bindingSearch) covered(need *model.Vector) bool {
	for d := range b.dims {
		if need[d] > 0 {
			return false
		}
	}
	return true
}

const hookBindings = "PreemptBindings"

// ask asks who leaves, keeps whom it takes to make room, and asks about those
// alone which cluster is best.
func (b *bindingSearch) ask() error {
	for _, v := range []*policy.Version{b.req.Policy, b.req.Default} {
		if b.version == nil && v != nil && v.Hooks().Has(policy.HookPreemptBindings) {
			b.version = v
		}
	}
	b.found.Version = b.version
	if b.version == nil {
		b.found.Version = b.req.Policy
	}
	in, answer, err := b.call()
	if err != nil {
		return err
	}
	b.found.RecheckAt = answer.Recheck.Time()
	fitting := b.options[:0]
	for i := range b.options {
		o := b.options[i]
		if o.rows, err = b.victims(&o, in, answer, i); err != nil {
			return err
		}
		b.found.Outcomes[o.at] = Declined
		if o.rows != nil {
			b.found.Outcomes[o.at] = Possible
			fitting = append(fitting, o)
		}
	}
	if b.options = fitting; len(fitting) == 0 {
		return nil
	}
	return b.choose()
}

// victims are the picks that make room on option i, in their order; nil: they
// free too little.
func (b *bindingSearch) victims(o *bindingOption, in *sdk.Candidates, answer *sdk.BindingVictims, i int) ([]bindingRow, error) {
	first, end := in.FirstRow[i], in.FirstRow[i+1]
	taken := make([]bool, end-first)
	left := o.need
	var picks []bindingRow
	for _, row := range answer.Rows(i) {
		switch {
		case row < first || row >= end:
			return nil, b.misanswer("cluster %s: row %d is not one of its rows %d to %d", b.req.Clusters[o.at].ID, row, first, end-1)
		case taken[row-first]:
			return nil, b.misanswer("cluster %s: row %d is listed twice", b.req.Clusters[o.at].ID, row)
		}
		taken[row-first] = true
		if b.covered(&left) {
			continue // the rest is looked at for what is wrong with it
		}
		picks = append(picks, o.rows[row-first])
		left.Sub(&o.rows[row-first].assignment.Vec)
	}
	if !b.covered(&left) {
		return nil, nil
	}
	for k, pick := range slices.Backward(picks) {
		back := left
		back.Add(&pick.assignment.Vec)
		if b.covered(&back) {
			left = back
			picks = slices.Delete(picks, k, k+1)
		}
	}
	return picks, nil
}

// choose asks about the options with their victims alone.
func (b *bindingSearch) choose() error {
	victims := make([][]bindingRow, len(b.options))
	for i := range b.options {
		o := &b.options[i]
		victims[i] = o.rows
		o.rows = slices.Clone(o.rows)
		slices.SortFunc(o.rows, func(x, y bindingRow) int {
			return cmp.Or(cmp.Compare(x.priority, y.priority), b.req.Ties.Compare(x.assignment.ID, y.assignment.ID))
		})
	}
	in, answer, err := b.call()
	if err != nil {
		return err
	}
	best := 0
	for i := range b.options {
		if _, err := b.victims(&b.options[i], in, answer, i); err != nil {
			return err
		}
		if lowerTiers(answer, i, best) {
			best = i
		}
	}
	b.found.Cluster = b.req.Clusters[b.options[best].at]
	for _, v := range victims[best] {
		b.found.Victims = append(b.found.Victims, v.assignment)
	}
	if at := answer.Recheck.Time(); at != 0 && (b.found.RecheckAt == 0 || at < b.found.RecheckAt) {
		b.found.RecheckAt = at
	}
	return nil
}

// lowerTiers is whether option i ranks before another; of equals the first does.
func lowerTiers(answer *sdk.BindingVictims, i, other int) bool {
	for k := range answer.Tiers {
		if c := cmp.Compare(answer.Tiers[k][i], answer.Tiers[k][other]); c != 0 {
			return c < 0
		}
	}
	return false
}

func (b *bindingSearch) misanswer(format string, args ...any) error {
	if b.version == nil {
		panic("preempt: the rules of bindings answer wrongly")
	}
	return b.version.Misanswer(hookBindings, format, args...)
}

// call puts the options as they are to the policy.
func (b *bindingSearch) call() (*sdk.Candidates, *sdk.BindingVictims, error) {
	in := b.question()
	out := &sdk.BindingVictims{}
	out.Reset()
	for k := range out.Tiers {
		out.Tiers[k] = make([]int64, in.Len())
	}
	if b.version == nil {
		return in, out, rules.New().PreemptBindings(in, out)
	}
	instance, err := b.version.AcquireFor(b.req.Tell)
	if err != nil {
		return nil, nil, err
	}
	defer b.version.Release(instance)
	if err := b.version.Count(hookBindings, instance.PreemptBindings(in, out)); err != nil {
		return nil, nil, err
	}
	if out.Len() != in.Len() {
		return nil, nil, b.misanswer("answered %d clusters of %d", out.Len(), in.Len())
	}
	return in, out, nil
}

func (b *bindingSearch) question() *sdk.Candidates {
	b.ids.reset()
	in := &sdk.Candidates{
		Now: b.req.Now, Preemptor: b.preemptor(), Dims: b.snap.Dims().Names(), FirstRow: []int32{0},
		Need: make([][]float64, b.dims), Freed: make([][]float64, b.dims), Rows: sdk.Rows{Use: make([][]float64, b.dims)},
	}
	for i := range b.options {
		o := &b.options[i]
		in.Place = append(in.Place, b.ids.id(b.req.Clusters[o.at].ID))
		for d := range b.dims {
			in.Need[d] = append(in.Need[d], float64(o.need[d]))
			in.Freed[d] = append(in.Freed[d], 0)
		}
		for _, row := range o.rows {
			b.addRow(&in.Rows, row)
		}
		in.FirstRow = append(in.FirstRow, int32(len(in.Rows.Priority)))
	}
	in.Strings = b.ids.list
	return in
}

func (b *bindingSearch) addRow(r *sdk.Rows, row bindingRow) {
	key := row.assignment.Binding
	name := b.ids.id(key.Namespace + "\x00" + key.ID)
	r.Priority = append(r.Priority, row.priority)
	r.Start = append(r.Start, row.assignment.StartTime)
	r.Namespace, r.Job, r.Group = append(r.Namespace, b.ids.id(key.Namespace)), append(r.Job, name), append(r.Group, name)
	for d := range b.dims {
		r.Use[d] = append(r.Use[d], float64(row.assignment.Vec[d]))
	}
}

func (b *bindingSearch) preemptor() *sdk.Preemptor {
	x := b.req.Binding
	needs := x.Needs(b.req.Replicas)
	p := &sdk.Preemptor{
		Namespace: x.Namespace, Job: x.ID, Group: x.ID, JobType: model.JobBinding.String(), Priority: x.Priority,
		Delta: baseGap(b.req.Policy, b.req.Delta), Waiting: b.req.Waiting, Attempts: b.req.Attempts,
	}
	for d := range b.dims {
		p.Ask = append(p.Ask, float64(needs[d]))
	}
	return p
}
