package binding

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// FindSpreadWithin is FindSpread for a binding that must be within one of some domains, such as
// regions. A domain holds positions in Request.Clusters, ascending.
//
// The lowest priorities over all clusters need not be the cheapest victims then: the first domain
// in which they suffice may need more of them than another. So each domain is searched by itself,
// and the policy ranks the victims of each as it ranks those of single clusters. Of equals the
// first domain ranks best.
func FindSpreadWithin(snap *state.Snapshot, req *Request, domains [][]int, enough func(free []model.Vector) bool) (SpreadResult, error) {
	var all SpreadResult
	var found []SpreadResult
	all.Result.Outcomes = newSearch(snap, req).result.Outcomes
	for _, domain := range domains {
		one, err := findSpread(snap, req, domain, enough)
		if err != nil {
			return SpreadResult{}, err
		}
		for _, at := range domain {
			all.Result.Outcomes[at] = one.Result.Outcomes[at]
		}
		all.Result.Version, all.Result.RecheckAt = one.Result.Version, earlier(all.Result.RecheckAt, one.Result.RecheckAt)
		if len(one.Victims) > 0 {
			found = append(found, one)
		}
	}
	if len(found) == 0 {
		return all, nil
	}
	best := 0
	if len(found) > 1 {
		var err error
		if best, err = cheapest(snap, req, found); err != nil {
			return SpreadResult{}, err
		}
	}
	all.Victims, all.Result.Why = found[best].Victims, found[best].Result.Why
	return all, nil
}

// earlier returns the earlier of two times; 0: none.
func earlier(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// cheapest returns the position of the result that the policy ranks best. It is called with the
// victims alone, all of which are needed.
func cheapest(snap *state.Snapshot, req *Request, found []SpreadResult) (int, error) {
	s := newSearch(snap, req)
	for i := range found {
		victims := found[i].Victims
		o := option{cluster: slices.IndexFunc(req.Clusters, func(c *model.Cluster) bool { return c.ID == victims[0].ClusterID })}
		for k := range victims {
			v, b := &victims[k], snap.Binding(victims[k].Binding)
			freed := v.Freed()
			o.need.Add(&freed)
			o.rows = append(o.rows, row{v.Assignment, b.Priority, whole, v.Replicas - v.Keep, freed, b.Checkpoint})
		}
		s.sort(o.rows)
		s.options = append(s.options, o)
	}
	_, best, err := s.rank()
	return best, err
}
