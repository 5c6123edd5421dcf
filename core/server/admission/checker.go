package admission

import (
	"fmt"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// usageTTL is how long a count of a namespace is used. It bounds the effect of changes
// that bypass the checker, such as the restore of a snapshot or another leader's writes.
const usageTTL = 10 * time.Second

// A Checker checks writes against the limits. Make it with New.
//
// The usage of a namespace is counted from the state at most every usageTTL, and increased
// by each accepted write in between, so that a registration does not cost the time to
// iterate over all jobs. The result is an upper bound: a write that fails, or a job that
// ends, is not subtracted. If the bound exceeds a limit, the usage is counted again before
// the write is refused. Writes that are in flight during a count are not in it, so that a
// namespace can exceed its limits by those.
type Checker struct {
	limits Limits
	clock  clock.Clock

	mu       sync.Mutex
	jobs     map[string]*usage // by namespace
	bindings map[string]*usage // by namespace
}

// usage is an upper bound of what a namespace uses.
type usage struct {
	objects, instances int
	at                 time.Time // of the count
	index              uint64    // of the state that was counted
}

// New returns a Checker. Zero limits mean the defaults.
func New(l Limits, c clock.Clock) *Checker {
	return &Checker{limits: l.WithDefaults(), clock: c, jobs: map[string]*usage{}, bindings: map[string]*usage{}}
}

// problems collects the limits that a write exceeds.
type problems []string

// check adds a problem if a value exceeds a limit and the stored value, before. An object
// above a limit that was lowered since can still be stopped, reduced and updated.
func (p *problems) check(what string, value, before, limit int, key string) {
	if value > limit && value > before {
		*p = append(*p, fmt.Sprintf("%s: %d, at most %d are allowed (raise limits.admission.%s)", what, value, limit, key))
	}
}

// Job returns a problem for every limit that registering a job exceeds. If reserve is set
// and there is none, the job counts as registered.
func (c *Checker) Job(snap *state.Snapshot, j *model.Job, reserve bool) []string {
	l, old := &c.limits, snap.Job(j.Key())
	before := map[string]*model.Group{}
	if old != nil {
		for _, g := range old.Groups {
			before[g.Name] = g
		}
	}
	var list problems
	list.check("groups", len(j.Groups), groupsOf(old), l.JobGroups, "job_groups")
	for _, g := range j.Groups {
		count, tasks := 0, 0
		if b := before[g.Name]; b != nil {
			count, tasks = b.Count, len(b.Tasks)
		}
		list.check(fmt.Sprintf("instances of group %.60q", g.Name), g.Count, count, l.GroupCount, "group_count")
		list.check(fmt.Sprintf("tasks of group %.60q", g.Name), len(g.Tasks), tasks, l.GroupTasks, "group_tasks")
		if len(list) > maxProblems {
			return append(list, "further problems are omitted")
		}
	}
	now, was := instances(j), instances(old)
	list.check("instances of all groups", now, was, l.JobAllocations, "job_allocations")

	c.mu.Lock()
	defer c.mu.Unlock()
	more := usage{instances: now}
	if old == nil {
		more.objects = 1
	} else if !old.Stopped {
		more.instances -= was
	}
	u := c.use(c.jobs, snap, j.Namespace, more, limit{l.NamespaceJobs, l.NamespaceAllocations}, countJobs)
	list.check(fmt.Sprintf("jobs of namespace %s", j.Namespace), u.objects+more.objects, u.objects, l.NamespaceJobs, "namespace_jobs")
	list.check(fmt.Sprintf("instances of all jobs of namespace %s", j.Namespace), u.instances+more.instances, u.instances, l.NamespaceAllocations, "namespace_allocations")
	if len(list) == 0 && reserve {
		u.add(more)
	}
	return list
}

// maxProblems is the maximum number of problems that are listed.
const maxProblems = 20

// Binding returns a problem for every limit that registering a binding exceeds. If there
// is none, the binding counts as registered.
func (c *Checker) Binding(snap *state.Snapshot, b *model.Binding) []string {
	l, old := &c.limits, snap.Binding(b.Key())
	more := usage{objects: 1, instances: b.Replicas}
	replicas, clusters := 0, 0
	if old != nil {
		replicas, clusters, more.objects = old.Replicas, len(old.Clusters), 0
		if !old.Stopped {
			more.instances -= old.Replicas
		}
	}
	var list problems
	list.check("replicas", b.Replicas, replicas, l.BindingReplicas, "binding_replicas")
	list.check("clusters", len(b.Clusters), clusters, l.BindingClusters, "binding_clusters")

	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.use(c.bindings, snap, b.Namespace, more, limit{l.NamespaceBindings, l.NamespaceReplicas}, countBindings)
	list.check(fmt.Sprintf("bindings of namespace %s", b.Namespace), u.objects+more.objects, u.objects, l.NamespaceBindings, "namespace_bindings")
	list.check(fmt.Sprintf("replicas of all bindings of namespace %s", b.Namespace), u.instances+more.instances, u.instances, l.NamespaceReplicas, "namespace_replicas")
	if len(list) == 0 {
		u.add(more)
	}
	return list
}

// Cluster returns a problem if registering a member cluster exceeds the limit.
func (c *Checker) Cluster(snap *state.Snapshot, id string) []string {
	if snap.Cluster(id) != nil {
		return nil
	}
	n := 0
	for range snap.Clusters() {
		n++
	}
	var list problems
	list.check("clusters", n+1, n, c.limits.Clusters, "clusters")
	return list
}

// limit is the number of objects and instances that a namespace may have.
type limit struct{ objects, instances int }

// use returns the usage of a namespace. It counts again if the usage is old, or would
// exceed a limit with more and the state has changed since. The caller holds the lock.
func (c *Checker) use(by map[string]*usage, snap *state.Snapshot, namespace string, more usage, l limit, count func(*state.Snapshot, string) usage) *usage {
	u, now := by[namespace], c.clock.Now()
	exceeds := u != nil && (u.objects+more.objects > l.objects || u.instances+more.instances > l.instances)
	if u == nil || now.Sub(u.at) > usageTTL || exceeds && u.index != snap.Index() {
		for other, o := range by { // namespaces that are not used any more
			if now.Sub(o.at) > usageTTL {
				delete(by, other)
			}
		}
		counted := count(snap, namespace)
		counted.at, counted.index = now, snap.Index()
		u = &counted
		by[namespace] = u
	}
	return u
}

// add counts a write that was accepted. It does not subtract: the write may still fail.
func (u *usage) add(more usage) {
	u.objects += more.objects
	u.instances += max(0, more.instances)
}

func countJobs(snap *state.Snapshot, namespace string) (u usage) {
	for j := range snap.Jobs() {
		if j.Namespace == namespace {
			u.objects++
			if !j.Stopped {
				u.instances += instances(j)
			}
		}
	}
	return u
}

func countBindings(snap *state.Snapshot, namespace string) (u usage) {
	for b := range snap.Bindings() {
		if b.Namespace == namespace {
			u.objects++
			if !b.Stopped {
				u.instances += b.Replicas
			}
		}
	}
	return u
}

func groupsOf(j *model.Job) int {
	if j == nil {
		return 0
	}
	return len(j.Groups)
}

// instances returns the number of instances of all groups of a job, which may be nil. A
// group of a system job counts once.
func instances(j *model.Job) (n int) {
	if j == nil {
		return 0
	}
	for _, g := range j.Groups {
		n += g.Count
	}
	return n
}
