package binding

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// Request is a search for a member cluster that holds all that a binding
// misses once others have left it.
type Request struct {
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

	TieOrder tiebreak.Order
	// OnCall is told of every call of a hook; nil: nobody is.
	OnCall func(policy.Call)
}

// Result is what came of a search.
type Result struct {
	Cluster   *model.Cluster    // nil: eviction makes no room anywhere
	Victims   []Victim          // on it, in the order of picking
	Version   *policy.Version   // that decided
	Outcomes  []preempt.Outcome // by position in BindingRequest.Clusters
	RecheckAt int64             // when the policy wants to be asked again; 0: not by time
}

// Victim is an assignment of which replicas leave.
type Victim struct {
	*model.Assignment
	Keep int // replicas that stay; 0: none
}

// Freed is what the replicas hold that leave.
func (v *Victim) Freed() model.Vector {
	return replicasOf(v.Assignment, v.Replicas-v.Keep)
}

// Ceiling is the highest priority that may be evicted for a binding. A
// PriorityDelta of the policy is about allocations, and has no say.
func Ceiling(priority int32, v *policy.Version, configured *int32) int64 {
	return int64(priority) - int64(max(1, preempt.BaseGap(v, configured)))
}

// Find looks for the best cluster. The host's rules hold whatever the
// policy answers: victims are candidates of their cluster, each once, of strictly
// lower priority, never of a cluster-scoped binding, never what asks for nothing;
// redundant ones are spared in reverse order of picking; and a cluster on which
// the answer frees too little is dropped. What breaks them is a fault.
func Find(snap *state.Snapshot, req *Request) (Result, error) {
	b := newBindingSearch(snap, req)
	if b.collect(); len(b.options) == 0 {
		return b.found, nil
	}
	if err := b.ask(); err != nil {
		return Result{}, err
	}
	return b.found, nil
}

func newBindingSearch(snap *state.Snapshot, req *Request) *bindingSearch {
	b := &bindingSearch{req: req, snap: snap, dims: snap.Dims().Len()}
	b.found.Outcomes = make([]preempt.Outcome, len(req.Clusters))
	b.ceiling = Ceiling(req.Binding.Priority, req.Policy, req.Delta)
	b.choosePolicy()
	return b
}

// bindingSearch is one search. Few bindings need one, so it keeps no memory.
type bindingSearch struct {
	req     *Request
	snap    *state.Snapshot
	dims    int
	ceiling int64
	options []bindingOption
	found   Result

	version   *policy.Version // that is asked; nil: nobody has the hook, the rules answer
	ascending bool            // it evicts by ascending priority
	elastic   bool            // it shrinks elastic bindings
	ids       columns.Strings
	rows      []bindingRow // scratch
}

// bindingOption is a cluster with who may leave it.
type bindingOption struct {
	at   int // in BindingRequest.Clusters
	need model.Vector
	rows []bindingRow // ascending by priority, then in tie order
}

// bindingRow is what may leave a cluster: an assignment, or some replicas of one.
type bindingRow struct {
	assignment *model.Assignment
	priority   int32
	part       part
	replicas   int
	vec        model.Vector // what they hold
	checkpoint int64        // of the binding
}

// choosePolicy finds who is asked: the first that has the hook.
func (b *bindingSearch) choosePolicy() {
	for _, v := range []*policy.Version{b.req.Policy, b.req.Default} {
		if v != nil && v.Hooks().Has(policy.HookPreemptBindings) {
			b.version, b.found.Version = v, v
			b.ascending, b.elastic = v.Info().Ascending, v.Info().Elastic
			return
		}
	}
	b.found.Version, b.ascending = b.req.Policy, true
}

// collect makes an option of every cluster where everybody who may go would be
// enough.
func (b *bindingSearch) collect() {
	for at, c := range b.req.Clusters {
		o := bindingOption{at: at, need: b.req.Binding.TotalAsk(b.req.Replicas)}
		_, soon := b.snap.ClusterFreeCapacity(c.ID, b.req.Binding.Key(), b.req.Binding.Priority, b.req.Now)
		o.need.Sub(&soon)
		left := o.need
		left.Sub(b.candidates(c.ID))
		switch {
		case len(b.rows) == 0:
			b.found.Outcomes[at] = preempt.NoCandidates
		case !b.covered(&left):
			b.found.Outcomes[at] = preempt.Insufficient
		default:
			o.rows = slices.Clone(b.reach(o.need))
			b.sort(o.rows)
			b.options = append(b.options, o)
		}
	}
}

// candidates fills rows with who may leave a cluster, and returns what all of them
// hold.
func (b *bindingSearch) candidates(cluster string) *model.Vector {
	b.rows = b.rows[:0]
	var held model.Vector
	for a, victim := range b.snap.ClusterWorkload(cluster) {
		if b.mayGo(a, victim) {
			b.addCandidate(a, victim)
			held.Add(&a.Vec)
		}
	}
	return &held
}

// reach is those of rows whom the policy may come to evict: where it goes by
// ascending priority, nobody above the lowest priority that is enough. Nine in
// ten are not, and need not be laid out for it.
func (b *bindingSearch) reach(need model.Vector) []bindingRow {
	if !b.ascending {
		return b.rows
	}
	slices.SortFunc(b.rows, func(x, y bindingRow) int { return cmp.Compare(x.priority, y.priority) })
	for i := range b.rows {
		if i > 0 && b.rows[i].priority != b.rows[i-1].priority && b.covered(&need) {
			return b.rows[:i]
		}
		need.Sub(&b.rows[i].vec)
	}
	return b.rows
}

// sort puts rows into the order in which policies see them.
func (b *bindingSearch) sort(rows []bindingRow) {
	slices.SortFunc(rows, func(x, y bindingRow) int {
		return cmp.Or(
			cmp.Compare(x.priority, y.priority), b.req.TieOrder.Compare(x.assignment.ID, y.assignment.ID), cmp.Compare(x.part, y.part),
		)
	})
}

// mayGo is whether an assignment is a candidate; its binding is nil when that is
// gone.
func (b *bindingSearch) mayGo(a *model.Assignment, victim *model.Binding) bool {
	return a.Live() && victim != nil && victim.Key() != b.req.Binding.Key() && !victim.ClusterScoped &&
		int64(victim.Priority) <= b.ceiling && a.Vec != model.Vector{}
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
		b.found.Outcomes[o.at] = preempt.Declined
		if o.rows != nil {
			b.found.Outcomes[o.at] = preempt.Possible
			fitting = append(fitting, o)
		}
	}
	if b.options = fitting; len(fitting) == 0 {
		return nil
	}
	return b.choose()
}

// victims are the picks that make room on option i, in their order, without those
// that are redundant; nil: they free too little.
func (b *bindingSearch) victims(o *bindingOption, in *sdk.Candidates, answer *sdk.BindingVictims, i int) ([]bindingRow, error) {
	picks, left, err := b.picks(o, in, answer, i)
	if err != nil || !b.covered(&left) {
		return nil, err
	}
	for k, pick := range slices.Backward(picks) {
		if pick.part == surplus && goesWhole(picks, pick.assignment) {
			continue
		}
		back := left
		back.Add(&pick.vec)
		if b.covered(&back) {
			left = back
			picks = slices.Delete(picks, k, k+1)
		} else if pick.part == surplus {
			b.keepSome(&picks[k], &left)
		}
	}
	return united(picks), nil
}

// picks are the rows that the answer lists for option i until there is room, and
// what is lacking then.
func (b *bindingSearch) picks(o *bindingOption, in *sdk.Candidates, answer *sdk.BindingVictims, i int) (
	picks []bindingRow, left model.Vector, err error,
) {
	first, end := in.FirstRow[i], in.FirstRow[i+1]
	taken, listed := make([]bool, end-first), make([]bool, end-first)
	left = o.need
	take := func(k int32) {
		taken[k] = true
		picks = append(picks, o.rows[k])
		left.Sub(&o.rows[k].vec)
	}
	for _, row := range answer.Rows(i) {
		switch {
		case row < first || row >= end:
			return nil, left, b.misanswer("cluster %s: row %d is not one of its rows %d to %d", b.req.Clusters[o.at].ID, row, first, end-1)
		case listed[row-first]:
			return nil, left, b.misanswer("cluster %s: row %d is listed twice", b.req.Clusters[o.at].ID, row)
		}
		at := row - first
		listed[at] = true
		if o.rows[at].part == minimum && !taken[at-1] && !b.covered(&left) {
			take(at - 1) // no binding keeps less than its minimum
		}
		if !taken[at] && !b.covered(&left) { // else it is looked at for what is wrong with it
			take(at)
		}
	}
	return picks, left, nil
}

// choose asks about the options with their victims alone.
func (b *bindingSearch) choose() error {
	victims := make([][]bindingRow, len(b.options))
	for i := range b.options {
		o := &b.options[i]
		victims[i] = o.rows
		o.rows = slices.Clone(o.rows)
		b.sort(o.rows)
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
		b.found.Victims = append(b.found.Victims, Victim{v.assignment, v.assignment.Replicas - v.replicas})
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
	return b.version.RecordBadAnswer(hookBindings, format, args...)
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
	instance, err := b.version.AcquireObserved(b.req.OnCall)
	if err != nil {
		return nil, nil, err
	}
	defer b.version.Release(instance)
	if err := b.version.RecordCall(hookBindings, instance.PreemptBindings(in, out)); err != nil {
		return nil, nil, err
	}
	if out.Len() != in.Len() {
		return nil, nil, b.misanswer("answered %d clusters of %d", out.Len(), in.Len())
	}
	return in, out, nil
}

func (b *bindingSearch) question() *sdk.Candidates {
	b.ids.Reset()
	in := &sdk.Candidates{
		Now: b.req.Now, Preemptor: b.preemptor(), Dims: b.snap.Dims().Names(), FirstRow: []int32{0},
		Need: make([][]float64, b.dims), Freed: make([][]float64, b.dims), Rows: sdk.Rows{Use: make([][]float64, b.dims)},
	}
	for i := range b.options {
		o := &b.options[i]
		in.Place = append(in.Place, b.ids.ID(b.req.Clusters[o.at].ID))
		for d := range b.dims {
			in.Need[d] = append(in.Need[d], float64(o.need[d]))
			in.Freed[d] = append(in.Freed[d], 0)
		}
		for _, row := range o.rows {
			b.addRow(&in.Rows, row)
		}
		in.FirstRow = append(in.FirstRow, int32(len(in.Rows.Priority)))
	}
	in.Strings = b.ids.List
	return in
}

func (b *bindingSearch) addRow(r *sdk.Rows, row bindingRow) {
	key := row.assignment.Binding
	name := b.ids.ID(key.Namespace + "\x00" + key.ID)
	r.Priority = append(r.Priority, row.priority)
	r.Start = append(r.Start, row.assignment.StartTime)
	r.LostWork = append(r.LostWork, row.assignment.LostWork(b.req.Now, row.checkpoint))
	r.Namespace, r.Job, r.Group = append(r.Namespace, b.ids.ID(key.Namespace)), append(r.Job, name), append(r.Group, name)
	for d := range b.dims {
		r.Use[d] = append(r.Use[d], float64(row.vec[d]))
	}
}

func (b *bindingSearch) preemptor() *sdk.Preemptor {
	x := b.req.Binding
	needs := x.TotalAsk(b.req.Replicas)
	p := &sdk.Preemptor{
		Namespace: x.Namespace, Job: x.ID, Group: x.ID, JobType: model.JobBinding.String(), Priority: x.Priority,
		Delta: preempt.BaseGap(b.req.Policy, b.req.Delta), Waiting: b.req.Waiting, Attempts: b.req.Attempts,
	}
	for d := range b.dims {
		p.Ask = append(p.Ask, float64(needs[d]))
	}
	return p
}
