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
)

// A Request is a search for a member cluster that holds all missing replicas of a
// binding once others have left it.
type Request struct {
	Binding  *model.Binding
	Replicas int    // that are missing
	Now      int64  // Unix nanoseconds
	Delta    *int32 // the operator's base gap; nil: the policy's own
	Waiting  int64  // nanoseconds since the binding was submitted
	Attempts int32

	Policy  *policy.Version
	Default *policy.Version // serves the PreemptBindings hook if Policy lacks it

	// Clusters are those that may run the binding but lack capacity even after everything
	// that is stopping has left, in tie order.
	Clusters []*model.Cluster

	TieOrder tiebreak.Order
	OnCall   func(policy.Call) // called for every call of a hook; nil: not called
}

// A Result is the result of a search.
type Result struct {
	Cluster   *model.Cluster    // nil: eviction frees enough capacity on no cluster
	Victims   []Victim          // on it, in picking order
	Version   *policy.Version   // that decided
	Outcomes  []preempt.Outcome // by position in Request.Clusters
	RecheckAt int64             // when the policy requests another search; 0: not by time
	// Why explains the choice of the cluster and of the victims there, once per claim: By is
	// not set. It is nil without a cluster.
	Why *model.Choice
}

// A Victim is an assignment of which replicas leave.
type Victim struct {
	*model.Assignment
	Keep int // replicas that stay; 0: none
}

// Freed returns the resources of the leaving replicas.
func (v *Victim) Freed() model.Vector {
	return vectorOf(v.Assignment, v.Replicas-v.Keep)
}

// Ceiling returns the highest priority that may be evicted for a binding. A PriorityDelta
// hook of the policy does not apply: it concerns allocations.
func Ceiling(priority int32, v *policy.Version, configured *int32) int64 {
	return int64(priority) - int64(max(1, preempt.BaseGap(v, configured)))
}

// Find returns the best cluster and the victims there. These rules hold for any
// answer of the policy: victims are candidates of their cluster, each listed once, of strictly
// lower priority, never of a cluster-scoped binding, and never without a request;
// redundant ones are reprieved in reverse order of picking; and a cluster on which the
// answer frees too little is dropped. It returns an error if the answer breaks a rule.
func Find(snap *state.Snapshot, req *Request) (Result, error) {
	s := newSearch(snap, req)
	if s.collect(); len(s.options) == 0 {
		return s.result, nil
	}
	if err := s.selectVictims(); err != nil {
		return Result{}, err
	}
	return s.result, nil
}

// search is one search. Few bindings need one, so that it does not reuse memory.
type search struct {
	req     *Request
	snap    *state.Snapshot
	dims    int
	ceiling int64
	options []option
	result  Result

	version   *policy.Version // that is called; nil: none has the hook, the built-in rules answer
	ascending bool            // it evicts by ascending priority
	elastic   bool            // it shrinks elastic bindings
	ids       columns.Strings
	rows      []row // scratch
}

// option is a cluster with its candidates.
type option struct {
	cluster    int // position in Request.Clusters
	need       model.Vector
	rows       []row // ascending by priority, then in tie order
	candidates int   // rows before the policy selected some
}

// row is a candidate: an assignment, or some replicas of one.
type row struct {
	assignment *model.Assignment
	priority   int32
	part       part
	replicas   int
	vec        model.Vector // that they hold
	checkpoint int64        // of the binding
}

func newSearch(snap *state.Snapshot, req *Request) *search {
	s := &search{req: req, snap: snap, dims: snap.Dims().Len()}
	s.result.Outcomes = make([]preempt.Outcome, len(req.Clusters))
	s.ceiling = Ceiling(req.Binding.Priority, req.Policy, req.Delta)
	s.chooseVersion()
	return s
}

// chooseVersion chooses the first version that has the hook.
func (s *search) chooseVersion() {
	for _, v := range []*policy.Version{s.req.Policy, s.req.Default} {
		if v != nil && v.Hooks().Has(policy.HookPreemptBindings) {
			s.version, s.result.Version = v, v
			s.ascending, s.elastic = v.Info().Ascending, v.Info().Elastic
			return
		}
	}
	s.result.Version, s.ascending = s.req.Policy, true
}

// collect creates an option for every cluster that would have enough capacity if all of
// its candidates left.
func (s *search) collect() {
	for at, c := range s.req.Clusters {
		o := option{cluster: at, need: s.req.Binding.TotalAsk(s.req.Replicas)}
		_, soon := s.snap.ClusterFreeCapacity(c.ID, s.req.Binding.Key(), s.req.Binding.Priority, s.req.Now)
		o.need.Sub(&soon)
		left := o.need
		left.Sub(s.collectCandidates(c.ID))
		switch {
		case len(s.rows) == 0:
			s.result.Outcomes[at] = preempt.NoCandidates
		case !s.isCovered(&left):
			s.result.Outcomes[at] = preempt.Insufficient
		default:
			o.rows = slices.Clone(s.reach(o.need))
			s.sort(o.rows)
			o.candidates = len(o.rows)
			s.options = append(s.options, o)
		}
	}
}

// collectCandidates fills s.rows with the candidates of a cluster, and returns the sum
// of their resources.
func (s *search) collectCandidates(cluster string) *model.Vector {
	s.rows = s.rows[:0]
	var held model.Vector
	for a, victim := range s.snap.ClusterWorkload(cluster) {
		if s.isCandidate(a, victim) {
			s.addCandidate(a, victim)
			held.Add(&a.Vec)
		}
	}
	return &held
}

// isCandidate reports whether replicas of an assignment may leave. victim is its
// binding, nil if that has been deleted.
func (s *search) isCandidate(a *model.Assignment, victim *model.Binding) bool {
	return a.Live() && victim != nil && victim.Key() != s.req.Binding.Key() && !victim.ClusterScoped &&
		int64(victim.Priority) <= s.ceiling && a.Vec != model.Vector{}
}

// reach returns the part of s.rows that the policy can reach: if it goes by ascending
// priority, none above the lowest priority that suffices. Typically that leaves out nine
// rows in ten.
func (s *search) reach(need model.Vector) []row {
	if !s.ascending {
		return s.rows
	}
	slices.SortFunc(s.rows, func(x, y row) int { return cmp.Compare(x.priority, y.priority) })
	for i := range s.rows {
		if i > 0 && s.rows[i].priority != s.rows[i-1].priority && s.isCovered(&need) {
			return s.rows[:i]
		}
		need.Sub(&s.rows[i].vec)
	}
	return s.rows
}

// sort puts rows into the order in which policies read them.
func (s *search) sort(rows []row) {
	slices.SortFunc(rows, func(x, y row) int {
		return cmp.Or(
			cmp.Compare(x.priority, y.priority), s.req.TieOrder.Compare(x.assignment.ID, y.assignment.ID), cmp.Compare(x.part, y.part),
		)
	})
}

// isCovered reports whether no dimension of a need is short.
func (s *search) isCovered(need *model.Vector) bool {
	for d := range s.dims {
		if need[d] > 0 {
			return false
		}
	}
	return true
}
