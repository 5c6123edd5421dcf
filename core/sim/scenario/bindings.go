package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/cede-scheduler/cede/core/model"
)

// Scopes of a binding, and how its replicas are scheduled.
const (
	scopeNamespace = "namespace"
	scopeCluster   = "cluster"
	divided        = "divided"
	duplicated     = "duplicated"
)

// MarshalJSON writes the mapping to replicas if there is one, else the list of names.
func (x ExpectClusters) MarshalJSON() ([]byte, error) {
	if x.Replicas != nil {
		return json.Marshal(x.Replicas)
	}
	return json.Marshal(append([]string{}, x.Names...))
}

func decodeExpectClusters(d *decoder, v reflect.Value, ev event) {
	x := v.Addr().Interface().(*ExpectClusters)
	if ev.kind == kindObject {
		mapPlan(newPlan(reflect.TypeFor[int]()), false).decode(d, reflect.ValueOf(&x.Replicas).Elem(), ev)
		return
	}
	if ev.kind != kindList {
		d.wrongType(ev, "a list of clusters, or a mapping from them to replicas", "write [m1, m2] or {m1: 2, m2: 1}")
		return
	}
	slicePlan(newPlan(reflect.TypeFor[string]()), "strings").decode(d, reflect.ValueOf(&x.Names).Elem(), ev)
}

// checkClusters checks the member clusters.
func (c *checker) checkClusters() {
	var root *path
	for i := range c.f.Clusters {
		m, p := &c.f.Clusters[i], root.field("clusters").item(i)
		c.unique(p.field("id"), "clusters", "id", m.ID, i, c.clusters)
		c.checkAmounts(p.field("capacity"), m.Capacity)
		c.noEmptyKey(p.field("attributes"), m.Attributes)
		if _, ok := m.Attributes[model.AttributeClusterID]; ok {
			c.add(p.field("attributes").field(model.AttributeClusterID), model.AttributeClusterID+" is built in and cannot be set as an attribute", "set the cluster's id")
		}
	}
}

// checkBindings checks the bindings. Jobs and bindings share one name space of ids.
func (c *checker) checkBindings() {
	var root *path
	for i := range c.f.Bindings {
		b, p := &c.f.Bindings[i], root.field("bindings").item(i)
		c.unique(p.field("id"), "bindings", "id", b.ID, i, c.bindings)
		if at, ok := c.jobs[b.ID]; ok {
			c.add(p.field("id"), fmt.Sprintf("duplicate id %.100q: already used by jobs[%d]", b.ID, at), "use distinct ids: jobs and bindings share one namespace of ids")
		}
		c.checkBinding(p, b)
	}
}

func (c *checker) checkBinding(p *path, b *Binding) {
	c.optionalName(p.field("namespace"), b.Namespace)
	c.oneOf(p.field("scope"), b.Scope, valuesOf[Binding]("scope")...)
	c.oneOf(p.field("preemptionPolicy"), b.PreemptionPolicy, valuesOf[Binding]("preemptionPolicy")...)
	c.oneOf(p.field("replicaScheduling"), b.ReplicaScheduling, valuesOf[Binding]("replicaScheduling")...)
	c.checkAmounts(p.field("resources"), b.Resources)
	c.checkDuration(p.field("killTimeout"), b.KillTimeout)
	c.checkDuration(p.field("duration"), b.Duration)
	c.checkDuration(p.field("checkpoint"), b.Checkpoint)
	c.checkClass(p, b)
	if b.Scope == scopeCluster && b.PreemptionPolicy == preemptionPolicies[0] {
		c.add(p.field("preemptionPolicy"), "a cluster-scoped binding cannot preempt", "write Never, or omit it")
	}
	if n := b.replicas(); n < 0 || n > maxReplicas {
		c.add(p.field("replicas"), fmt.Sprintf("%d replicas: expected 0 to %d", n, maxReplicas), "check the number")
	}
	if n := b.MinReplicas; n < 0 || n > max(0, b.replicas()) {
		c.add(p.field("minReplicas"), fmt.Sprintf("%d replicas: expected 0 to %d, the replicas of the binding", n, b.replicas()), "lower it, or omit it: the binding is then evicted as a whole")
	}
	for i, id := range b.Clusters {
		c.needCluster(p.field("clusters").item(i), id)
	}
	for _, id := range keys(b.Weights) {
		at := p.field("weights").field(id)
		c.needCluster(at, id)
		if w := b.Weights[id]; w < 0 || w > maxReplicas {
			c.add(at, fmt.Sprintf("%d is not a valid weight: expected 0 to %d", w, maxReplicas), "write 0 to exclude the cluster")
		}
	}
	for i := range b.Constraints {
		c.checkConstraint(p.field("constraints").item(i), &b.Constraints[i], false)
	}
	c.checkClusterSpread(p.field("spread"), b)
}

// maxReplicas bounds replicas and weights.
const maxReplicas = 1 << 20

// checkClass checks the priority class and its source. Both exclude an explicit priority.
func (c *checker) checkClass(p *path, b *Binding) {
	source := p.field("priorityClassSource")
	if b.ClassSource == string(model.FederatedPriorityClass) {
		c.add(source, "FederatedPriorityClass is reserved and not supported", "write KubePriorityClass or PodPriorityClass")
		return
	}
	c.oneOf(source, b.ClassSource, string(model.KubePriorityClass), string(model.PodPriorityClass))
	if b.PriorityClass != "" && b.Priority != nil {
		c.add(p.field("priorityClass"), "priority and priorityClass are mutually exclusive", "remove one of the two")
	}
	if strict := c.f.Scheduler.FeatureGates.StrictPriorityClasses; b.PriorityClass != "" && strict != nil && *strict {
		if _, ok := c.classes[b.PriorityClass]; !ok {
			c.add(p.field("priorityClass"), fmt.Sprintf("unknown priority class %.100q, and StrictPriorityClasses is enabled", b.PriorityClass), "declare it under priorityClasses, or disable the gate")
		}
	}
	if b.ClassSource != "" && b.Priority != nil {
		c.add(source, "priority and priorityClassSource are mutually exclusive", "remove one of the two")
	}
}

// checkClusterSpread checks the bounds on clusters and on the values of the attribute.
func (c *valueChecker) checkClusterSpread(p *path, b *Binding) {
	s := &b.Spread
	c.checkRange(p, b, "Clusters", "clusters", s.MinClusters, s.MaxClusters)
	switch {
	case s.By == "" && (s.MinGroups != nil || s.MaxGroups != nil):
		c.add(p.field("by"), "minGroups and maxGroups require an attribute", "write {by: region, minGroups: 2}")
		return
	case s.By != "" && s.MinGroups == nil && s.MaxGroups == nil:
		c.add(p.field("by"), "minGroups or maxGroups is required if `by` is set", "write {by: region, minGroups: 2}, or omit `by`")
		return
	}
	c.checkRange(p, b, "Groups", "values of "+s.By, s.MinGroups, s.MaxGroups)
	if least, most := valueOrZero(s.MinGroups), valueOrZero(s.MaxClusters); most > 0 && least > most {
		c.add(p.field("minGroups"), fmt.Sprintf("at least %d values of %s on at most %d clusters: expected no more than maxClusters", least, s.By, most), "lower it")
	}
}

// checkRange checks one pair of minimum and maximum of a binding's spread. Field is
// the common suffix of the two field names, noun the unit for messages.
func (c *valueChecker) checkRange(p *path, b *Binding, field, noun string, from, to *int) {
	least, most := valueOrZero(from), valueOrZero(to)
	switch {
	case least < 0 || from != nil && least == 0:
		c.add(p.field("min"+field), fmt.Sprintf("%d %s: expected 1 or more", least, noun), "omit it for 1")
	case to != nil && most < 1:
		c.add(p.field("max"+field), fmt.Sprintf("%d %s: expected 1 or more", most, noun), "omit it for any number")
	case most > 0 && least > most:
		c.add(p.field("min"+field), fmt.Sprintf("at least %d and at most %d %s: expected no more than max%s", least, most, noun, field), "lower it")
	case b.ReplicaScheduling != duplicated && least > b.replicas() && b.replicas() > 0:
		c.add(p.field("min"+field), fmt.Sprintf("%d replicas cannot be divided over %d %s", b.replicas(), least, noun), "lower it, or request more replicas")
	}
}

// valueOrZero returns *n, or 0 if n is nil.
func valueOrZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// replicas returns the number of replicas that the binding requests; 1 if it is absent.
func (b *Binding) replicas() int {
	if b.Replicas == nil {
		return 1
	}
	return *b.Replicas
}

// needCluster checks a reference to a member cluster and reports whether it exists.
func (c *referenceChecker) needCluster(p *path, id string) bool {
	_, ok := c.clusters[id]
	if !ok {
		c.unknown(p, "clusters", "member cluster", id, c.clusters)
	}
	return ok
}

// needBinding checks a reference to a binding and reports whether it exists.
func (c *referenceChecker) needBinding(p *path, id string) bool {
	_, ok := c.bindings[id]
	if !ok {
		c.unknown(p, "bindings", "binding", id, c.bindings)
	}
	return ok
}

// needJobOrBinding checks a reference to a job or a binding.
func (c *referenceChecker) needJobOrBinding(p *path, id string) {
	if _, ok := c.bindings[id]; ok || c.incomplete["bindings"] {
		return
	}
	if len(c.jobs) == 0 && len(c.bindings) > 0 {
		c.needBinding(p, id)
		return
	}
	c.needJob(p, id)
}

// checkRunningBinding checks the replicas that run before time 0: the binding must
// admit the cluster, must request at least that many replicas, and the cluster must
// have the capacity.
func (c *checker) checkRunningBinding(p *path, r *Running) {
	for field, value := range map[string]string{"job": r.Job, "group": r.Group, "node": r.Node} {
		if value != "" {
			c.add(p.field(field), field+" and binding are mutually exclusive", "remove one of the two")
		}
	}
	known := c.needBinding(p.field("binding"), r.Binding)
	if len(r.Clusters) == 0 {
		c.add(p.field("clusters"), "clusters are missing", "write the replicas of each cluster, such as {m1: 2}")
	}
	for _, id := range keys(r.Clusters) {
		at := p.field("clusters").field(id)
		if r.Clusters[id] < 1 {
			c.add(at, fmt.Sprintf("%d replicas: expected 1 or more", r.Clusters[id]), "omit the cluster")
			known = false
		}
		if !c.needCluster(at, id) || !known {
			continue
		}
		b := c.bindings[r.Binding]
		if c.invalid[fmt.Sprintf("bindings[%d]", b)] || c.invalid[fmt.Sprintf("clusters[%d]", c.clusters[id])] {
			continue
		}
		c.reserveReplicas(at, r, id, &c.f.Bindings[b], &c.f.Clusters[c.clusters[id]])
	}
}

// reserveReplicas deducts the replicas of an entry from the free capacity of a cluster
// and from the replicas that the binding requests. It reports a problem if either
// does not suffice, or if the binding does not admit the cluster.
func (c *checker) reserveReplicas(p *path, r *Running, id string, b *Binding, m *Cluster) {
	if c.freeByCluster == nil {
		c.freeByCluster, c.runningReplicas = map[string]map[string]int64{}, map[string]int{}
	}
	n := r.Clusters[id]
	binding, _ := b.resolve(&classes{})
	binding.Resources = nil // capacity is compared by resource name below
	binding.Compile(model.NewDimensions())
	if reason := binding.InfeasibleReason(m.resolve()); reason != "" {
		c.add(p, fmt.Sprintf("the binding cannot run on cluster %s: it is excluded by %s", id, reason), "use another cluster")
		return
	}
	if once := b.ID + "\x00" + id; c.runningReplicas[once] > 0 {
		c.add(p, fmt.Sprintf("another entry has replicas of %s on cluster %s", b.ID, id), "combine the replicas in one entry")
		return
	}
	c.runningReplicas[b.ID+"\x00"+id] = n
	requested, key := b.replicas(), b.ID
	if b.ReplicaScheduling == duplicated {
		key += "@" + id
	}
	if c.runningReplicas[key] += n; c.runningReplicas[key] > requested {
		c.add(p, fmt.Sprintf("%d replicas of %s run: expected at most %d, the replicas of the binding", c.runningReplicas[key], b.ID, requested), "run fewer, or request more")
		return
	}
	free := c.freeByCluster[id]
	if free == nil {
		free = maps.Clone(map[string]int64(m.Capacity))
		if free == nil {
			free = map[string]int64{}
		}
		c.freeByCluster[id] = free
	}
	for _, name := range keys(b.Resources) {
		if need := b.Resources[name] * int64(n); need > free[name] {
			c.add(p, fmt.Sprintf("%s requires %d %s of %s: cluster %s has %d free", r.ID, need, model.UnitOf(need, name), name, id, free[name]), "run fewer replicas there before the start, or raise its capacity")
			return
		}
	}
	for name, amount := range b.Resources {
		free[name] -= amount * int64(n)
	}
}

func (c *expectChecker) checkExpectedBinding(p *path, x *ExpectBinding) {
	if x.At != nil {
		c.checkDuration(p.field("at"), *x.At)
	}
	if x.Binding != nil {
		c.needBinding(p.field("binding"), *x.Binding)
	}
	if x.Clusters != nil {
		for i, id := range x.Clusters.Names {
			c.needCluster(p.field("clusters").item(i), id)
		}
		for _, id := range keys(x.Clusters.Replicas) {
			c.needCluster(p.field("clusters").field(id), id)
		}
	}
	c.allocs(p.field("preempted"), deref(x.Preempted))
}

func (m *Cluster) resolve() *model.Cluster {
	return &model.Cluster{ID: m.ID, Capacity: model.Resources(m.Capacity), Attributes: m.Attributes}
}

// resolve returns the binding with every default filled in. An unknown priority class
// is not an error because the class may have been deleted since; it returns a warning.
func (b *Binding) resolve(all *classes) (binding *model.Binding, warning string) {
	binding = &model.Binding{
		Namespace: cmp.Or(b.Namespace, model.DefaultNamespace), ID: b.ID, ClusterScoped: b.Scope == scopeCluster,
		Replicas: b.replicas(), Resources: model.Resources(b.Resources), Clusters: b.Clusters, Weights: b.Weights,
		Constraints: resolveConstraints(b.Constraints), Duplicated: b.ReplicaScheduling == duplicated,
		MinClusters: valueOrZero(b.Spread.MinClusters), MaxClusters: valueOrZero(b.Spread.MaxClusters), SpreadBy: b.Spread.By,
		MinGroups: valueOrZero(b.Spread.MinGroups), MaxGroups: valueOrZero(b.Spread.MaxGroups), KillTimeout: int64(b.KillTimeout), Duration: int64(b.Duration),
		MinReplicas: b.MinReplicas, Checkpoint: int64(b.Checkpoint),
	}
	class := all.byName[b.PriorityClass]
	source := cmp.Or(model.ClassSource(b.ClassSource), model.KubePriorityClass)
	missing := b.PriorityClass != "" && class == nil
	if missing {
		warning = fmt.Sprintf("binding %s: unknown priority class %q", b.ID, b.PriorityClass)
	}
	// If the class of a pod template does not exist, the global default applies.
	// If the binding itself names an unknown class, its priority is 0 and its
	// preemption policy Never.
	if class == nil && b.Priority == nil && (!missing || source == model.PodPriorityClass) {
		class = all.fallback
	}
	switch {
	case b.Priority != nil:
		binding.Priority = *b.Priority
	case class != nil:
		binding.Priority, binding.PriorityClass, binding.ClassSource = class.Value, class.Name, source
		binding.Preempts = !class.NeverPreempts && !binding.ClusterScoped
	}
	if b.PreemptionPolicy != "" {
		binding.Preempts = b.PreemptionPolicy != "Never"
	}
	return binding, warning
}

// Assigned holds the replicas of a binding that run on one cluster before time 0.
type Assigned struct {
	ID        string // of the running entry
	Binding   *model.Binding
	Cluster   string
	Replicas  int
	StartedAt int64 // Unix nanoseconds
}

// assigned returns the running entries of bindings, one for each entry and cluster.
func (c *checker) assigned(bindings []*model.Binding) (list []Assigned) {
	for i := range c.f.Running {
		r := &c.f.Running[i]
		if r.Binding == "" {
			continue
		}
		for _, id := range keys(r.Clusters) {
			list = append(list, Assigned{
				ID: r.ID, Binding: bindings[c.bindings[r.Binding]], Cluster: id, Replicas: r.Clusters[id], StartedAt: int64(r.StartedAt),
			})
		}
	}
	return list
}
