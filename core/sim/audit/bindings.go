package audit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
)

// binding is a binding with its status.
type binding struct {
	*scenario.Binding
	priority   int64
	preempts   bool
	registered bool
	stopped    bool
	replicas   int
}

// assignment is the replicas of a binding on one cluster.
type assignment struct {
	id       string
	binding  *binding
	cluster  string
	replicas int
	live     bool
	finished bool
}

// bindingChecker holds the state of the member clusters.
type bindingChecker struct {
	c        *checker
	clusters map[string]*scenario.Cluster
	bindings map[string]*binding
	list     []*assignment
	claims   map[string]string // claim -> binding
}

func newBindingChecker(c *checker) bindingChecker {
	b := bindingChecker{c: c, clusters: map[string]*scenario.Cluster{}, bindings: map[string]*binding{}, claims: map[string]string{}}
	for i := range c.run.File.Clusters {
		b.clusters[c.run.File.Clusters[i].ID] = &c.run.File.Clusters[i]
	}
	for i := range c.run.File.Bindings {
		spec := &c.run.File.Bindings[i]
		w := &binding{Binding: spec, preempts: spec.PreemptionPolicy == "PreemptLowerPriority" && spec.Scope != "cluster", replicas: 1}
		if spec.Priority != nil {
			w.priority = int64(*spec.Priority)
		}
		if spec.Replicas != nil {
			w.replicas = *spec.Replicas
		}
		b.bindings[spec.ID] = w
	}
	for _, r := range c.run.File.Running {
		for cluster, n := range r.Clusters {
			w := b.bindings[r.Binding]
			w.registered = true
			namespace := cmp.Or(w.Namespace, "default")
			b.list = append(b.list, &assignment{id: namespace + "/" + w.ID + "/" + cluster + "/running", binding: w, cluster: cluster, replicas: n, live: true})
		}
	}
	return b
}

func (b *bindingChecker) submit(id string) {
	if w := b.bindings[id]; w != nil {
		w.registered, w.stopped = true, false
	}
}

func (b *bindingChecker) stop(id string) {
	if w := b.bindings[id]; w != nil && w.registered {
		w.stopped = true
	}
}

func (b *bindingChecker) find(id string) *assignment {
	if i := slices.IndexFunc(b.list, func(a *assignment) bool { return a.id == id }); i >= 0 {
		return b.list[i]
	}
	return nil
}

// event applies an event of a binding.
func (b *bindingChecker) event(ev *timeline.Event) {
	switch ev.Kind {
	case timeline.Claimed:
		b.claims[ev.Alloc] = ev.Job
		return
	case timeline.Unclaimed:
		delete(b.claims, ev.Alloc)
		return
	case timeline.Assigned:
		b.assigned(ev)
		return
	}
	a := b.find(ev.Alloc)
	if a == nil {
		if ev.Kind == timeline.Withdrawn && ev.By != "" { // replicas that leave an elastic binding
			part := &assignment{id: ev.Alloc, binding: b.bindings[ev.Job], cluster: ev.Node, replicas: ev.Replicas}
			b.list = append(b.list, part)
			b.victim(part, ev)
		}
		return
	}
	switch ev.Kind {
	case timeline.Resized:
		a.replicas = ev.Replicas
	case timeline.Withdrawn:
		if ev.By != "" {
			b.victim(a, ev)
		}
		a.finished = ev.By == "" && !a.binding.stopped && a.binding.Duration > 0
		a.live = false
	case timeline.Released:
		a.live = false
		a.replicas = 0
	}
}

// assigned checks that the cluster may hold the binding.
func (b *bindingChecker) assigned(ev *timeline.Event) {
	w, cluster := b.bindings[ev.Job], b.clusters[ev.Node]
	if w == nil || cluster == nil {
		b.c.report("bindings", "%s is of no binding or cluster of the file", ev.Alloc)
		return
	}
	if b.find(ev.Alloc) != nil {
		return // replicas that left an elastic binding: see event
	}
	b.list = append(b.list, &assignment{id: ev.Alloc, binding: w, cluster: ev.Node, replicas: ev.Replicas, live: true})
	if why := b.excluded(w, cluster); why != "" {
		b.c.report("bindings", "%s must not be assigned to %s: %s", w.ID, cluster.ID, why)
	}
	if !w.registered || w.stopped {
		b.c.report("bindings", "%s is assigned, and is not registered", w.ID)
	}
}

// excluded returns why a cluster does not admit a binding, or "".
func (b *bindingChecker) excluded(w *binding, cluster *scenario.Cluster) string {
	if len(w.Clusters) > 0 && !slices.Contains(w.Clusters, cluster.ID) {
		return "the list of clusters"
	}
	for i := range w.Constraints {
		value, ok := cluster.Attributes[w.Constraints[i].Attribute]
		if !holds(&w.Constraints[i], value, ok) {
			return w.Constraints[i].Attribute
		}
	}
	if w.Spread.By != "" && cluster.Attributes[w.Spread.By] == "" {
		return "no attribute " + w.Spread.By
	}
	return ""
}

// victim checks an eviction from a cluster.
func (b *bindingChecker) victim(a *assignment, ev *timeline.Event) {
	by, v := b.bindings[ev.By], a.binding
	switch {
	case by == nil:
		b.c.report("victims", "%s is evicted by %q, which is not a binding", v.ID, ev.By)
	case !by.preempts, !b.c.enabled("binding"):
		b.c.report("victims", "%s is evicted by %s, which must not preempt", v.ID, by.ID)
	case v.Scope == "cluster":
		b.c.report("victims", "%s is cluster-scoped and is evicted by %s", v.ID, by.ID)
	case by.priority-v.priority <= 0 || b.c.run.Policy != "aging" && by.priority-v.priority < b.c.gap():
		b.c.report("victims", "%s is evicted by %s: the priority gap is too small", v.ID, by.ID)
	case b.excluded(by, b.clusters[a.cluster]) != "":
		b.c.report("victims", "%s is evicted from %s by %s, which may not be assigned there", v.ID, a.cluster, by.ID)
	}
}

// check checks the capacity of the clusters and the number of replicas. A stopping
// assignment holds its capacity until it is released.
func (b *bindingChecker) check() {
	for id := range b.clusters {
		for name, free := range b.free(id) {
			if free < 0 {
				b.c.report("capacity", "cluster %s has too little %s", id, name)
			}
		}
	}
	for id, w := range b.bindings {
		live, clusters := 0, 0
		for _, a := range b.list {
			if a.binding == w && a.live && a.replicas > 0 {
				live += a.replicas
				clusters++
				if w.ReplicaScheduling == "duplicated" && a.replicas > w.replicas {
					b.c.report("bindings", "%s has %d replicas on %s", id, a.replicas, a.cluster)
				}
			}
		}
		if w.ReplicaScheduling != "duplicated" && live > w.replicas {
			b.c.report("bindings", "%s has %d replicas, and %d are desired", id, live, w.replicas)
		}
		if m := w.Spread.MaxClusters; m != nil && clusters > *m {
			b.c.report("bindings", "%s is on %d clusters, and %d are allowed", id, clusters, *m)
		}
	}
}

// free returns the free capacity of a cluster.
func (b *bindingChecker) free(id string) map[string]int64 {
	free := map[string]int64{}
	maps.Copy(free, b.clusters[id].Capacity)
	for _, a := range b.list {
		if a.cluster == id {
			for name, amount := range a.binding.Resources {
				free[name] -= amount * int64(a.replicas)
			}
		}
	}
	return free
}

// rest checks that no divided binding without limits on its spread waits although all of
// its missing replicas fit in free capacity that nothing claims.
func (b *bindingChecker) rest() {
	if len(b.claims) > 0 {
		return
	}
	for _, w := range b.bindings {
		if !w.registered || w.stopped || w.ReplicaScheduling == "duplicated" || w.Spread != (scenario.ClusterSpread{}) {
			continue
		}
		missing, capacity := w.replicas, 0
		for _, a := range b.list {
			if a.binding == w && (a.live || a.finished) {
				missing -= a.replicas
			}
			if a.binding == w && a.finished {
				missing = 0 // completed
			}
		}
		for id, cluster := range b.clusters {
			if b.excluded(w, cluster) != "" {
				continue
			}
			fit := int64(missing)
			free := b.free(id)
			for name, ask := range w.Resources {
				if ask > 0 {
					fit = min(fit, max(0, free[name])/ask)
				}
			}
			capacity += int(fit)
		}
		if missing > 0 && capacity >= missing {
			b.c.report("waits", "binding %s lacks %d replicas, and %d fit", w.ID, missing, capacity)
		}
	}
}
