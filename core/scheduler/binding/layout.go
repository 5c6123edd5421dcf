package binding

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// A layout is on which clusters a binding is and may be.
type layout struct {
	view     *view
	binding  *model.Binding
	on       map[string]int   // assigned replicas by cluster
	feasible []*model.Cluster // clusters that may take it and are up, ascending by ID
}

// missing returns the number of replicas that are not assigned; negative: surplus.
func (l *layout) missing() int {
	missing := l.binding.Replicas
	for _, n := range l.on {
		missing -= n
	}
	return missing
}

// slot returns a cluster with capacity for so many replicas.
func (l *layout) slot(c *model.Cluster, capacity int) slot {
	_, has := l.on[c.ID]
	return slot{cluster: c, group: l.binding.SpreadGroup(c), capacity: capacity, weight: int64(l.binding.Weights[c.ID]), has: has}
}

// slots returns the feasible clusters with the capacity that each offers, by position.
func (l *layout) slots(missing int, offers []model.Vector) []slot {
	slots := make([]slot, len(l.feasible))
	for i, c := range l.feasible {
		slots[i] = l.slot(c, l.binding.FittingReplicas(&offers[i], missing))
	}
	return slots
}

// units returns clusters as slots, each of which takes all replicas or none.
func (l *layout) units(clusters []*model.Cluster) []slot {
	slots := make([]slot, len(clusters))
	for i, c := range clusters {
		slots[i] = l.slot(c, 1)
		slots[i].add = l.binding.Replicas
	}
	return slots
}

// free returns the capacity that the feasible clusters offer now.
func (l *layout) free() []model.Vector {
	offers := make([]model.Vector, len(l.feasible))
	for i, c := range l.feasible {
		offers[i], _ = l.view.capacity(c)
	}
	return offers
}

// soon returns the capacity that the feasible clusters offer after all pending stops.
func (l *layout) soon() []model.Vector {
	offers := make([]model.Vector, len(l.feasible))
	for i, c := range l.feasible {
		_, offers[i] = l.view.capacity(c)
	}
	return offers
}

// limits returns the binding's limits besides the clusters that it is on.
func (l *layout) limits() *spreadLimits {
	b := l.binding
	x := &spreadLimits{used: map[string]bool{}, maxNewGroups: unlimited}
	for id := range l.on {
		x.used[b.SpreadGroup(l.view.snap.Cluster(id))] = true
	}
	// Limits count the clusters that the binding is on.
	x.maxNew, x.minNew = newBetween(b.MinClusters, b.MaxClusters, len(l.on))
	if b.SpreadBy != "" {
		x.maxNewGroups, x.minNewGroups = newBetween(b.MinGroups, b.MaxGroups, len(x.used))
	}
	return x
}

// fitsOne reports whether all missing replicas may be on one cluster.
func (l *layout) fitsOne(c *model.Cluster) bool {
	return l.limits().maxCapacity([]slot{l.slot(c, 1)}, nil) >= 0
}

// domains returns the positions of the feasible clusters by the value of the spread attribute, if
// the binding must be within one value and is on none yet; nil: otherwise.
func (l *layout) domains() (list [][]int) {
	if l.binding.SpreadBy == "" || l.binding.MaxGroups != 1 || len(l.on) > 0 {
		return nil
	}
	at := map[string]int{} // position in the list
	for i, c := range l.feasible {
		value := l.binding.SpreadGroup(c)
		k, ok := at[value]
		if !ok {
			k = len(list)
			at[value], list = k, append(list, nil)
		}
		list[k] = append(list[k], i)
	}
	return list
}

// divide divides replicas over the feasible clusters, given the capacity that each offers. It
// returns false if there is no division within the limits.
func (l *layout) divide(missing int, offers []model.Vector) ([]slot, bool) {
	if l.binding.SpreadBy == "" {
		return divide(missing, l.slots(missing, offers), l.binding, len(l.on))
	}
	return l.limits().divide(missing, l.slots(missing, offers))
}

// canDivide is divide without the division.
func (l *layout) canDivide(missing int, offers []model.Vector) bool {
	if l.binding.SpreadBy == "" {
		_, ok := l.divide(missing, offers)
		return ok
	}
	x := l.limits()
	return x.minClusters() <= missing && x.maxCapacity(nil, l.slots(missing, offers)) >= missing
}

// sortByWeight sorts clusters: those with claims of the binding first, then by
// descending weight.
func (l *layout) sortByWeight(clusters []*model.Cluster) []*model.Cluster {
	weights := l.binding.Weights
	slices.SortStableFunc(clusters, func(x, y *model.Cluster) int {
		return cmp.Or(l.view.compareClaims(x, y), cmp.Compare(weights[y.ID], weights[x.ID]))
	})
	return clusters
}

// indexOf returns the position of a feasible cluster, or -1.
func (l *layout) indexOf(clusterID string) int {
	return slices.IndexFunc(l.feasible, func(c *model.Cluster) bool { return c.ID == clusterID })
}
