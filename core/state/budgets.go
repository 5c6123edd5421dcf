package state

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// budgetTable holds the disruption budgets and their counts. The counts follow every
// write of an allocation, so that a reader need not walk over the allocations of a
// budget.
type budgetTable struct {
	budgets      *budgets // never nil
	budgetCounts cow.Vec[budgetCount]
}

// budgets is the set of budgets. It is immutable: a change makes another one.
type budgets struct {
	// set identifies this value, for what groups cache; see model.Group.CacheBudgets.
	set     uint64
	list    []*model.Budget // ascending by key
	byLabel map[namespaced][]int32
	byNS    map[string][]int32 // budgets of all groups of a namespace
	strict  int                // number of strict budgets in list
}

// namespaced is a label in a namespace.
type namespaced struct {
	namespace string
	label
}

var (
	noBudgets = &budgets{}
	lastSet   atomic.Uint64
)

// newBudgets takes ownership of a list that is ascending by key. Budgets with a
// selector are listed under one label of it, the first by key: a group that matches has
// that label too, so one access finds all candidates.
func newBudgets(list []*model.Budget) *budgets {
	if len(list) == 0 {
		return noBudgets
	}
	b := &budgets{set: lastSet.Add(1), list: list, byLabel: map[namespaced][]int32{}}
	for i, budget := range list {
		key, labelled := firstKey(budget.Labels)
		switch {
		case labelled:
			at := namespaced{budget.Namespace, label{key, budget.Labels[key]}}
			b.byLabel[at] = append(b.byLabel[at], int32(i))
		case budget.MaxEvictions == nil:
			continue // without labels it matches nothing
		default:
			if b.byNS == nil {
				b.byNS = map[string][]int32{}
			}
			b.byNS[budget.Namespace] = append(b.byNS[budget.Namespace], int32(i))
		}
		if budget.Strict {
			b.strict++
		}
	}
	return b
}

// of returns the positions of the budgets that apply to a group, ascending. The result
// is cached in the group, for one set of budgets: it costs a map access for each label
// of the group at first, and one comparison from then on.
func (b *budgets) of(g *model.Group) []int32 {
	if len(b.list) == 0 {
		return nil
	}
	at, cached := g.CachedBudgets(b.set)
	if cached {
		return at
	}
	for key, value := range g.Labels {
		for _, i := range b.byLabel[namespaced{g.Job.Namespace, label{key, value}}] {
			if b.list[i].Matches(g) {
				at = append(at, i)
			}
		}
	}
	at = append(at, b.byNS[g.Job.Namespace]...)
	slices.Sort(at)
	g.CacheBudgets(b.set, at)
	return at
}

func (b *budgets) find(key model.BudgetKey) (int, bool) {
	return slices.BinarySearchFunc(b.list, key, func(b *model.Budget, key model.BudgetKey) int { return b.Key().Compare(key) })
}

// budgetCount holds the counts of one budget.
type budgetCount struct {
	available int32 // available allocations
	desired   int32 // desired instances of jobs with a count
	done      int32 // completed ones of them
	perNode   int32 // matching groups of per-node jobs
	recent    *evictionWindow
}

// Budgets returns the disruption budgets, ascending by namespace and name. The
// slice is shared and read-only.
func (v *budgetTable) Budgets() []*model.Budget { return v.budgets.list }

// Budget returns the budget with the key, or nil if there is none.
func (v *budgetTable) Budget(key model.BudgetKey) *model.Budget {
	if at, ok := v.budgets.find(key); ok {
		return v.budgets.list[at]
	}
	return nil
}

// GroupBudgets returns the positions in Budgets of those that apply to a group,
// ascending. The slice is shared and read-only.
func (v *budgetTable) GroupBudgets(g *model.Group) []int32 { return v.budgets.of(g) }

// StrictBudgetCount returns the number of strict budgets.
func (v *budgetTable) StrictBudgetCount() int { return v.budgets.strict }

// DisruptionsAllowed returns how many more available allocations may be evicted under
// the budget at a position in Budgets, at a time in Unix nanoseconds. It is negative if
// fewer are available than the budget requires, or more were evicted than it allows. It
// costs no walk over allocations, except for per-node jobs under a budget that depends
// on the desired number.
func (v *View) DisruptionsAllowed(at int32, now int64) int {
	if rate := v.budgets.list[at].MaxEvictions; rate != nil {
		return int(rate.Number) - v.budgetCounts.At(int(at)).recent.in(now, rate)
	}
	available, keeps := v.BudgetAvailability(at)
	return available - keeps
}

// OverrunsBudget reports whether a disruption budget allows no disruption of an allocation
// at a time in Unix nanoseconds, after those in charged, which holds the number of
// disruptions by position in Budgets. It adds this one.
func (v *View) OverrunsBudget(a *model.Allocation, now int64, charged map[int32]int) (overruns bool) {
	if !a.Available() {
		return false
	}
	for _, at := range v.GroupBudgets(a.Group) {
		overruns = overruns || v.DisruptionsAllowed(at, now)-charged[at] < 1
		charged[at]++
	}
	return overruns
}

// BudgetAvailability returns how many allocations under the budget at a position in
// Budgets are available, and how many it requires to be.
func (v *View) BudgetAvailability(at int32) (available, keeps int) {
	b, c := v.budgets.list[at], v.budgetCounts.At(int(at))
	desired := 0
	if b.DependsOnDesired() {
		desired = max(0, int(c.desired-c.done))
		if c.perNode > 0 {
			desired += v.desiredPerNode(b)
		}
	}
	return int(c.available), b.RequiredAvailable(desired)
}

// BudgetPosition returns the position in Budgets of the budget with the key; it
// returns false if there is none.
func (v *budgetTable) BudgetPosition(key model.BudgetKey) (int32, bool) {
	at, ok := v.budgets.find(key)
	return int32(at), ok
}

// BudgetAllocs yields the live allocations under a budget.
func (v *View) BudgetAllocs(b *model.Budget) iter.Seq[*model.Allocation] {
	return func(yield func(*model.Allocation) bool) {
		var allocs []*model.Allocation
		for key := range v.BudgetJobs(b) {
			allocs = v.AppendJobAllocs(allocs[:0], key)
			for _, a := range allocs {
				if a.Live() && b.Matches(a.Group) && !yield(a) {
					return
				}
			}
		}
	}
}

// BudgetJobs yields the jobs that may have an allocation under a budget, in no
// defined order.
func (v *View) BudgetJobs(b *model.Budget) iter.Seq[model.JobKey] {
	return func(yield func(model.JobKey) bool) {
		if len(b.Labels) > 0 {
			for key := range v.JobsMatching(b.Labels) {
				if key.Namespace == b.Namespace && !yield(key) {
					return
				}
			}
			return
		}
		for key := range v.DirtyIndexes() {
			if key.Namespace == b.Namespace && !yield(key) {
				return
			}
		}
	}
}

// desiredPerNode returns how many instances the per-node jobs under a budget
// desire: one for each feasible node, whatever its status.
func (v *View) desiredPerNode(b *model.Budget) (n int) {
	for slot := range v.perNode.All {
		j := v.jobs.At(slot).job
		if j.Stopped || j.Namespace != b.Namespace {
			continue
		}
		for _, g := range j.Groups {
			if g.Count > 0 && b.Matches(g) {
				n += v.countFeasibleNodes(g)
			}
		}
	}
	return n
}

// countFeasibleNodes returns the number of nodes that the constraints of a group admit.
// Feasibility is computed once for each class of equal nodes, unless the constraints
// refer to the node itself.
func (v *View) countFeasibleNodes(g *model.Group) (n int) {
	feasible := make([]int8, v.ClassCount()) // by class; 0 if not computed
	for c := range v.ChunkCount() {
		chunk := v.Chunk(c)
		for i := range chunk.Len() {
			node := chunk.Node(i)
			if node == nil {
				continue
			}
			cached := &feasible[chunk.Class(i)]
			if *cached == 0 || g.ConstrainsNodeID() {
				*cached = -1
				if g.IsFeasible(node) {
					*cached = 1
				}
			}
			if *cached > 0 {
				n++
			}
		}
	}
	return n
}

// Upsert stores a disruption budget. It compiles it and sets its indexes.
func (t BudgetWriter) Upsert(b *model.Budget) {
	b.Compile()
	list := slices.Clone(t.budgets.list)
	at, found := t.budgets.find(b.Key())
	if found {
		t.stamp(&b.CreateIndex, &b.ModifyIndex, list[at].CreateIndex)
		list[at] = b
	} else {
		t.stamp(&b.CreateIndex, &b.ModifyIndex, 0)
		list = slices.Insert(list, at, b)
	}
	t.replace(list, at)
	t.touch(budgetKey(b.Key()))
}

// Delete deletes a disruption budget, if it exists.
func (t BudgetWriter) Delete(key model.BudgetKey) {
	at, found := t.budgets.find(key)
	if !found {
		return
	}
	t.replace(slices.Delete(slices.Clone(t.budgets.list), at, at+1), -1)
	t.touch(budgetKey(key))
}

// replace replaces the list of budgets. changed is the position of a budget that
// is new or has another version, or -1 if there is none. Only the changed budget is
// counted anew, which costs a walk over its allocations; the counts of the others move
// to their new positions.
func (t BudgetWriter) replace(list []*model.Budget, changed int) {
	before, counts := t.budgets, t.budgetCounts
	t.budgets, t.budgetCounts = newBudgets(list), cow.Vec[budgetCount]{}
	for i, b := range list {
		var count budgetCount
		if i == changed {
			count = t.countBudget(b)
		}
		if at, was := before.find(b.Key()); was && i != changed {
			count = counts.At(at)
		} else if was && b.MaxEvictions != nil {
			count.recent = counts.At(at).recent // recorded for the earlier version
		}
		t.budgetCounts.Append(t.owner, count)
	}
}

// countBudget counts everything under a budget.
func (v *View) countBudget(b *model.Budget) (c budgetCount) {
	for key := range v.BudgetJobs(b) {
		r := v.jobRow(key)
		for _, g := range r.countedGroups() {
			if b.Matches(g) {
				c.addGroup(g, 1)
			}
		}
		for slot := range r.allocs.All {
			a := v.allocs.At(slot)
			c.count(b, r, a, v.isAvailable(a))
		}
	}
	return c
}

// countedGroups returns the groups of which instances are desired.
func (r *jobRow) countedGroups() []*model.Group {
	if r.job == nil || r.job.Stopped {
		return nil
	}
	return r.job.Groups
}

func (c *budgetCount) addGroup(g *model.Group, by int32) {
	if g.Job.Type.PerNode() {
		c.perNode += by
	} else {
		c.desired += by * int32(g.Count)
	}
}

// isAvailable reports whether an allocation is available. It is not if its node is down
// or was removed: the allocation is lost, or its status is unknown. That counts at once,
// before an evaluation of its job writes it, because evaluations of other jobs may come
// first and would evict the remaining ones.
func (v *nodeTable) isAvailable(a *model.Allocation) bool {
	return a.Available() && isReachable(v.Node(a.NodeID))
}

// isReachable reports whether allocations on a node, which is nil if it was removed, can
// be available.
func isReachable(n *model.Node) bool { return n != nil && n.Status != model.NodeDown }

// count counts an allocation of a job's row, if the budget matches it.
func (c *budgetCount) count(b *model.Budget, r *jobRow, a *model.Allocation, available bool) {
	if available && b.Matches(a.Group) {
		c.available++
	}
	if g := r.completedGroup(a); g != nil && b.Matches(g) {
		c.done++
	}
}

// completedGroup returns the group of the current job that desires an instance which an
// allocation completed, so that nothing is missing without it, or nil if there is none. Its
// labels and count may have changed since.
func (r *jobRow) completedGroup(a *model.Allocation) *model.Group {
	if r.job == nil || r.job.Type != model.JobBatch || !a.IsDone(r.job) {
		return nil
	}
	if g := r.job.Group(a.Group.Name); g != nil && a.Index < g.Count {
		return g
	}
	return nil
}

// countAlloc updates the counts for a change of an allocation: old and next are
// two versions of it, nil if there is none. Both are counted by the current row of
// their job: when that row changes, countJob adjusts the counts.
func (t BudgetWriter) countAlloc(old, next *model.Allocation) {
	if old != nil {
		t.add(old, -1)
	}
	if next != nil {
		t.add(next, 1)
	}
	t.recordEviction(old, next)
}

func (t BudgetWriter) add(a *model.Allocation, by int32) {
	if len(t.budgets.list) == 0 {
		return
	}
	if under := t.budgets.of(a.Group); len(under) > 0 && t.isAvailable(a) {
		t.addTo(under, budgetCount{available: by})
	}
	if g := t.jobRow(a.Job.Key()).completedGroup(a); g != nil {
		t.addTo(t.budgets.of(g), budgetCount{done: by})
	}
}

// addTo adds the available and done instances of change to the counts of budgets.
func (t BudgetWriter) addTo(under []int32, change budgetCount) {
	for _, at := range under {
		c := t.budgetCounts.At(int(at))
		c.available, c.done = c.available+change.available, c.done+change.done
		t.budgetCounts.Set(t.owner, int(at), c)
	}
}

// recountAround calls change, which changes a node, and updates the counts of its
// allocations: they are available only while the node is reachable. The rows are
// collected before the change, because the change replaces them.
func (t BudgetWriter) recountAround(pos int32, old, next *model.Node, change func()) {
	var affected []*model.Allocation
	if len(t.budgets.list) > 0 && isReachable(old) != isReachable(next) {
		for _, r := range t.chunks[pos/ChunkSize].use(int(pos % ChunkSize)).rows {
			affected = append(affected, r.Alloc)
		}
	}
	for _, a := range affected {
		t.add(a, -1)
	}
	change()
	for _, a := range affected {
		t.add(a, 1)
	}
}

// countJob counts the desired instances of a job that is added (by = 1) or removed
// (by = -1). Its existing instances are counted with the allocations.
func (t BudgetWriter) countJob(r *jobRow, by int32) {
	if len(t.budgets.list) == 0 {
		return
	}
	for _, g := range r.countedGroups() {
		for _, at := range t.budgets.of(g) {
			c := t.budgetCounts.At(int(at))
			c.addGroup(g, by)
			t.budgetCounts.Set(t.owner, int(at), c)
		}
	}
	if r.job == nil || r.job.Type != model.JobBatch {
		return
	}
	for slot := range r.allocs.All {
		if g := r.completedGroup(t.allocs.At(slot)); g != nil {
			t.addTo(t.budgets.of(g), budgetCount{done: by})
		}
	}
}

// budgetKey returns the watch key of a disruption budget.
func budgetKey(key model.BudgetKey) Key {
	return Key{Table: TableBudgets, Namespace: key.Namespace, ID: key.Name}
}
