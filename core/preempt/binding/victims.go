package binding

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// selectVictims calls the policy about all options, verifies the victims of each, and
// calls it again with those victims alone to learn which cluster is best. It returns a
// *policy.Error if an answer is malformed; the result is then incomplete.
func (s *search) selectVictims() error {
	in, answer, err := s.call()
	if err != nil {
		return err
	}
	s.result.RecheckAt = protect.PolicyRecheck(answer.Recheck, s.req.Now)
	fitting := s.options[:0]
	for i := range s.options {
		o := s.options[i]
		if o.rows, err = s.victims(&o, in, answer, i); err != nil {
			return err
		}
		s.result.Outcomes[o.cluster] = preempt.Declined
		if o.rows != nil {
			s.result.Outcomes[o.cluster] = preempt.Possible
			fitting = append(fitting, o)
		}
	}
	if s.options = fitting; len(fitting) == 0 {
		return nil
	}
	return s.choose()
}

// victims returns the picks for option i that free enough, in picking order and without
// redundant ones. It returns nil if they free too little. Redundant picks are returned
// from the last to the first, so the rows that the policy prefers to evict stay.
func (s *search) victims(o *option, in *sdk.Candidates, answer *sdk.BindingVictims, i int) ([]row, error) {
	picks, left, err := s.picks(o, in, answer, i)
	if err != nil || !s.isCovered(&left) {
		return nil, err
	}
	for k, pick := range slices.Backward(picks) {
		if pick.part == surplus && picksMinimum(picks, pick.assignment) {
			continue // it leaves with its minimum
		}
		back := left
		back.Add(&pick.vec)
		if s.isCovered(&back) {
			left = back
			picks = slices.Delete(picks, k, k+1)
		} else if pick.part == surplus {
			s.returnReplicas(&picks[k], &left)
		}
	}
	return mergeParts(picks), nil
}

// picks returns the rows that the answer lists for option i, as far as they are needed,
// and the need that remains. Rows beyond that are still validated. A row out of range
// or listed twice is a fault of the policy even if it is not needed, so that faults do
// not depend on the load.
func (s *search) picks(o *option, in *sdk.Candidates, answer *sdk.BindingVictims, i int) (
	picks []row, left model.Vector, err error,
) {
	first, end := in.FirstRow[i], in.FirstRow[i+1]
	picked, listed := make([]bool, end-first), make([]bool, end-first)
	left = o.need
	pick := func(k int32) {
		picked[k] = true
		picks = append(picks, o.rows[k])
		left.Sub(&o.rows[k].vec)
	}
	cluster := s.req.Clusters[o.cluster].ID
	for _, row := range answer.Rows(i) {
		switch {
		case row < first || row >= end:
			return nil, left, s.badAnswer("cluster %s: row %d is not one of its rows %d to %d", cluster, row, first, end-1)
		case listed[row-first]:
			return nil, left, s.badAnswer("cluster %s: row %d is listed twice", cluster, row)
		}
		at := row - first
		listed[at] = true
		if o.rows[at].part == minimum && !picked[at-1] && !s.isCovered(&left) {
			pick(at - 1) // the surplus first: no binding retains less than its minimum
		}
		if !picked[at] && !s.isCovered(&left) {
			pick(at)
		}
	}
	return picks, left, nil
}

// choose calls the policy about the options with their victims alone, and adopts the
// one that it ranks best. The second call costs little: each option has its victims
// alone.
func (s *search) choose() error {
	victims := make([][]row, len(s.options))
	for i := range s.options {
		o := &s.options[i]
		victims[i] = o.rows // in picking order
		o.rows = slices.Clone(o.rows)
		s.sort(o.rows)
	}
	answer, best, err := s.rank()
	if err != nil {
		return err
	}
	s.result.Cluster = s.req.Clusters[s.options[best].cluster]
	for _, v := range victims[best] {
		s.result.Victims = append(s.result.Victims, Victim{v.assignment, v.assignment.Replicas - v.replicas})
	}
	s.result.Why = s.explain(answer, best)
	if at := protect.PolicyRecheck(answer.Recheck, s.req.Now); at != 0 && (s.result.RecheckAt == 0 || at < s.result.RecheckAt) {
		s.result.RecheckAt = at
	}
	return nil
}

// rank calls the policy about the options, and returns its answer and the position of the option
// that ranks best.
func (s *search) rank() (answer *sdk.BindingVictims, best int, err error) {
	in, answer, err := s.call()
	if err != nil {
		return nil, 0, err
	}
	for i := range s.options {
		if _, err := s.victims(&s.options[i], in, answer, i); err != nil {
			return nil, 0, err
		}
		if ranksBefore(answer, i, best) {
			best = i
		}
	}
	return answer, best, nil
}

// ranksBefore reports whether option i has lower tiers than another one. Of equals the
// first one ranks best.
func ranksBefore(answer *sdk.BindingVictims, i, other int) bool {
	for k := range answer.Tiers {
		if c := cmp.Compare(answer.Tiers[k][i], answer.Tiers[k][other]); c != 0 {
			return c < 0
		}
	}
	return false
}
