package extender

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// A clusterState keeps the cluster as a scheduler state between requests. Building
// the state for 5,000 nodes takes about a second, and kube-scheduler sends requests
// for one pod after another, between which little changes. Therefore changes of nodes,
// pods and budgets are applied to the state, and the pending pod is added to a fork that
// is discarded.
//
// The state is rebuilt if changes cannot be applied: if a pod requires a new
// attribute or label, if a change affects the translation of all nodes, or if too
// many changes have accumulated.
type clusterState struct {
	cache *cache
	cfg   *Config

	mu      sync.Mutex
	cluster *kube.IncrementalCluster // nil: not built
	epoch   uint64                   // epoch and position in the cache's log of the last applied change
	at      int
	snap    *state.Snapshot
	placed  map[string]*kube.Instance // by key of the pod
	// built is the time of the last rebuild, and building its duration.
	built    time.Time
	building time.Duration
	idle     []*scheduler.Scheduler
}

// query returns a query for a pending pod: for preemption on the proposed nodes, or if
// proposal is nil for all feasible nodes. It returns an error if the model cannot
// express a requirement of the pod.
func (s *clusterState) query(pod *kube.Pod, proposal map[string]*kube.MetaVictims) (*query, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.applyChanges() {
		if err := s.rebuild(pod); err != nil {
			return nil, err
		}
	}
	q, ok, err := s.forkWith(pod, proposal)
	if !ok && err == nil {
		if err := s.rebuild(pod); err != nil {
			return nil, err
		}
		q, ok, err = s.forkWith(pod, proposal)
	}
	if !ok && err == nil {
		err = errUntranslatable(pod)
	}
	return q, err
}

// update brings the state up to date. It builds the state if that is necessary.
func (s *clusterState) update() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.applyChanges() {
		return nil
	}
	return s.load(s.collect())
}

// maxBacklog bounds the changes that are left to a request if a watch feeds the cache. It
// is far below maxChanges, beyond which the state is rebuilt.
const maxBacklog = 256

// catchUp applies the changes if more than maxBacklog have accumulated. If the state must
// be rebuilt, it does so unless a rebuild would take more than a tenth of the time: each
// new ResourceSlice requires one, for example. It does not wait for a request that uses
// the state, because the request applies the changes itself.
func (s *clusterState) catchUp() {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	s.cache.mu.RLock()
	changes, known := s.cache.log.since(s.epoch, s.at)
	s.cache.mu.RUnlock()
	if s.built.IsZero() || known && len(changes) <= maxBacklog || known && s.applyChanges() {
		return
	}
	if s.cfg.Clock.Now().Sub(s.built) > 10*s.building {
		_ = s.load(s.collect()) // the next request repeats it and reports the error
	}
}

func errUntranslatable(pod *kube.Pod) error {
	return fmt.Errorf("pod %s: requirements cannot be translated", pod.Metadata.Name)
}

// applyChanges applies new changes. It returns false if the state must be rebuilt.
func (s *clusterState) applyChanges() bool {
	c := s.cache
	c.mu.RLock()
	changes, known := c.log.since(s.epoch, s.at)
	fed := !c.synced.IsZero()
	known = known && s.cluster != nil && (!fed || s.cluster.RetainsLabels(func(label string) bool { return c.perInstanceReaders[label] > 0 }))
	c.mu.RUnlock()
	if !known {
		return false
	}
	if len(changes) > 0 {
		txn := s.snap.Fork(s.snap.Index() + 1)
		for _, n := range changes {
			if (fed || n.isNode || n.budget != nil) && !s.applyChange(txn, n) {
				s.cluster = nil
				return false
			}
		}
		s.snap = txn.Snapshot()
	}
	s.at += len(changes)
	return true
}

// applyChange applies one change. It returns false if the state must be rebuilt.
func (s *clusterState) applyChange(txn *state.Txn, n change) bool {
	switch {
	case n.budget != nil:
		return s.applyBudget(txn, n.budget, n.exists)
	case n.podGroup != nil:
		s.cluster.SetPodGroup(n.podGroup, n.exists)
		return true
	case n.claim != nil:
		s.cluster.SetClaim(n.claim, n.exists)
		return true
	case n.node != nil:
		node, ok := s.cluster.UpsertNode(n.node)
		return ok && txn.NodeWriter().Upsert(node) == nil
	case n.isNode:
		txn.NodeWriter().Delete(n.key)
		return s.cluster.DeleteNode(n.key)
	}
	return s.removePod(txn, n.key) && (n.pod == nil || s.addPod(txn, n.pod, n.key))
}

// applyBudget stores a disruption budget, or deletes it if it does not exist.
func (s *clusterState) applyBudget(txn *state.Txn, b *kube.Budget, exists bool) bool {
	if exists {
		budget, ok := s.cluster.TranslateBudget(b)
		if !ok {
			return false
		}
		if budget != nil {
			txn.BudgetWriter().Upsert(budget)
			return true
		}
	}
	txn.BudgetWriter().Delete(model.BudgetKey{Namespace: cmp.Or(b.Metadata.Namespace, model.DefaultNamespace), Name: b.Metadata.Name})
	return true
}

// removePod removes a pod if it is present.
func (s *clusterState) removePod(txn *state.Txn, id string) bool {
	i := s.placed[id]
	if i == nil {
		return true
	}
	if !s.cluster.RemoveInstance(i) {
		return false
	}
	txn.AllocWriter().Delete(id)
	delete(s.placed, id)
	return s.refreshNode(txn, i.Node)
}

// addPod adds a pod that has a node.
func (s *clusterState) addPod(txn *state.Txn, p *kube.Pod, id string) bool {
	i, changed, ok := s.cluster.AddPod(p)
	if !ok || i == nil {
		return ok
	}
	if changed && txn.JobWriter().Upsert(i.Job.Job) != nil {
		return false
	}
	s.placed[id] = i
	txn.AllocWriter().Upsert(allocationOf(i, id, s.cluster.DevicesOf(i)))
	return s.refreshNode(txn, i.Node)
}

// refreshNode stores the node again if its translation changed.
func (s *clusterState) refreshNode(txn *state.Txn, node string) bool {
	n, ok := s.cluster.RefreshNode(node)
	return ok && (n == nil || txn.NodeWriter().Upsert(n) == nil)
}

// allocationOf returns the allocation of an instance.
func allocationOf(i *kube.Instance, id string, devices []model.DeviceUse) *model.Allocation {
	a := &model.Allocation{
		ID: id, Job: i.Job.Job, Group: i.Job.Group(i.Group.Name), NodeID: i.Node, Devices: devices,
		Desired: model.DesiredRun, Client: model.ClientRunning, Started: true,
	}
	a.StartTime = unixNano(i.Pod.Started())
	a.CreateTime = a.StartTime
	return a
}

// rebuild builds the state from all cached objects. The pending pod is expected,
// although the feed may not have reported it yet.
func (s *clusterState) rebuild(pending *kube.Pod) error {
	d, expected := s.collect()
	return s.load(d, append(expected, pending))
}

// load builds the state from a dump. Pods that are expected later can be translated.
func (s *clusterState) load(d *kube.Dump, expected []*kube.Pod) error {
	s.cluster, s.snap, s.placed = nil, nil, make(map[string]*kube.Instance, len(d.Pods))
	from := s.cfg.Clock.Now()
	defer func() {
		s.built = s.cfg.Clock.Now()
		s.building = s.built.Sub(from)
	}()
	roster := kube.NewIncrementalCluster(d, expected)
	txn := state.New().Begin(1)
	defer txn.Abort()
	if err := s.populate(txn, roster); err != nil {
		return err
	}
	s.cluster, s.snap = roster, txn.Commit()
	return nil
}

func (s *clusterState) populate(txn *state.Txn, r *kube.IncrementalCluster) error {
	for _, n := range r.Nodes {
		if err := txn.NodeWriter().Upsert(n); err != nil {
			return err
		}
	}
	for _, j := range r.Jobs {
		if err := txn.JobWriter().Upsert(j.Job); err != nil {
			return err
		}
	}
	list := make([]*model.Allocation, len(r.Instances))
	for k, i := range r.Instances {
		id := key(i.Pod)
		s.placed[id], list[k] = i, allocationOf(i, id, r.DevicesOf(i))
	}
	txn.AllocWriter().Upsert(list...)
	for _, b := range r.Budgets {
		txn.BudgetWriter().Upsert(b)
	}
	return nil
}

// collect returns the nodes with their pods, and the pending pods. It also sets the
// position in the change log.
func (s *clusterState) collect() (d *kube.Dump, waiting []*kube.Pod) {
	c := s.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	s.epoch, s.at = c.log.epoch, c.log.size()
	d = &kube.Dump{}
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		d.Nodes = append(d.Nodes, c.nodes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.onNode)) {
		if name == "" || c.synced.IsZero() {
			continue // the cache may lack pods
		}
		for _, k := range slices.Sorted(maps.Keys(c.onNode[name])) {
			d.Pods = append(d.Pods, c.onNode[name][k]) // including pods on unknown nodes: their selectors count
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.budgets)) {
		d.Budgets = append(d.Budgets, c.budgets[name])
	}
	c.related.addTo(d)
	for _, k := range slices.Sorted(maps.Keys(c.onNode[""])) {
		waiting = append(waiting, asPending(c.onNode[""][k]))
	}
	return d, waiting
}

// forkWith adds a pod to a fork of the state, together with the nominated
// pods that have precedence over it. For a preemption, proposal holds the proposed
// victims. It returns ok = false if one of the pods requires a rebuild.
func (s *clusterState) forkWith(pod *kube.Pod, proposal map[string]*kube.MetaVictims) (q *query, ok bool, err error) {
	txn := s.snap.Fork(s.snap.Index() + 1)
	among := proposal // nodes of which open responses matter; nil: all
	if pod.DependsOnOtherNodes() {
		among = nil
	}
	for _, k := range s.cache.leaving() {
		if i := s.placed[k]; i != nil && isAmong(among, i.Node) {
			txn.AllocWriter().Delete(k)
		}
	}
	for _, nominated := range s.nominatedPods(pod, among) {
		i, ok := s.cluster.TranslatePod(asPending(nominated))
		if !ok {
			return nil, false, nil
		}
		if err := s.reserve(txn, nominated, i); err != nil {
			return nil, false, err
		}
	}
	if existing := s.placed[key(pod)]; existing != nil && txn.Alloc(key(pod)) != nil {
		txn.AllocWriter().Delete(key(pod))
	}
	now := s.cfg.Clock.Now().UnixNano()
	if proposal != nil {
		if err := s.prepareVictims(txn, proposal, now); err != nil {
			return nil, false, err
		}
	}
	a, ok := s.cluster.TranslatePod(pod)
	if !ok {
		return nil, false, nil
	}
	if err := requireExact(a.Report); err != nil {
		return nil, false, err
	}
	if err := txn.JobWriter().Upsert(a.Job); err != nil {
		return nil, false, err
	}
	txn.ConfigWriter().Set(s.config(proposal != nil))
	return &query{now: now, snap: txn.Snapshot(), job: a.Job, group: a.Group, since: unixNano(pod.Created())}, true, nil
}

// config returns the scheduler configuration of a query.
func (s *clusterState) config(preempts bool) *model.SchedulerConfig {
	config := model.SchedulerConfig{Algorithm: model.SpreadRank}
	if settings := s.cfg.Settings(); settings != nil {
		config = *settings
	}
	if preempts {
		for i := range config.Preemption {
			config.Preemption[i] = true // kube-scheduler decides whether to preempt
		}
	}
	return &config
}

// prepareVictims prepares the pods on the proposed nodes for eviction. A pod without a
// start time counts as started now, as in kube-scheduler.
func (s *clusterState) prepareVictims(txn *state.Txn, proposal map[string]*kube.MetaVictims, now int64) error {
	var allocs []*model.Allocation
	for node := range proposal {
		allocs = txn.AppendNodeAllocs(allocs[:0], node)
		if err := protectWideCohorts(txn, node, allocs); err != nil {
			return err
		}
		allocs = txn.AppendNodeAllocs(allocs[:0], node)
		for _, a := range allocs {
			if a.StartTime == 0 && !isReservation(a) {
				started := *a
				started.StartTime, started.CreateTime = now, now
				txn.AllocWriter().Upsert(&started)
			}
		}
	}
	if len(txn.Budgets()) > 0 {
		return nil
	}
	return budgetsFromCounts(txn, proposal)
}

// protectWideCohorts makes the cohorts that have members on other nodes than this one
// unevictable: kube-scheduler accepts victims on the node of the preemptor only, and the
// eviction of a part would break the group.
func protectWideCohorts(txn *state.Txn, node string, allocs []*model.Allocation) error {
	for _, a := range allocs {
		if !a.InCohort() || a.Job.NonPreemptible || isReservation(a) || !slices.ContainsFunc(txn.AppendJobAllocs(nil, a.Job.Key()), func(o *model.Allocation) bool {
			return o.NodeID != node && o.InCohort()
		}) {
			continue
		}
		job := *a.Job
		job.NonPreemptible, job.Groups = true, make([]*model.Group, len(a.Job.Groups))
		for i, g := range a.Job.Groups {
			one := *g
			job.Groups[i] = &one
		}
		if err := txn.JobWriter().Upsert(&job); err != nil {
			return err
		}
		protected := *a
		protected.Job = txn.Job(job.Key())
		protected.Group = protected.Job.Group(a.Group.Name)
		txn.AllocWriter().Upsert(&protected)
	}
	return nil
}

// unixNano returns a time in Unix nanoseconds, or 0 for the zero time.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// heldPrefix begins the IDs of the allocations of nominated pods.
const heldPrefix = "held "

// isReservation reports whether an allocation reserves capacity for a nominated pod.
func isReservation(a *model.Allocation) bool { return strings.HasPrefix(a.ID, heldPrefix) }

// reserve places a nominated pod on its nominated node. It stores its own version of
// the job, which a later version may replace.
func (s *clusterState) reserve(txn *state.Txn, nominated *kube.Pod, a *kube.PodTranslation) error {
	if txn.Node(nominated.Spec.NodeName) == nil {
		return nil
	}
	if err := txn.JobWriter().Upsert(a.Job); err != nil {
		return err
	}
	txn.AllocWriter().Upsert(&model.Allocation{
		ID: heldPrefix + key(nominated) + " " + nominated.Spec.NodeName, Job: a.Job, Group: a.Job.Group(a.Group), NodeID: nominated.Spec.NodeName,
		Desired: model.DesiredRun, Client: model.ClientRunning, Started: true,
	})
	return nil
}

// nominatedPods returns the nominated pods that have precedence over the pod.
func (s *clusterState) nominatedPods(pod *kube.Pod, among map[string]*kube.MetaVictims) []*kube.Pod {
	c := s.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.synced.IsZero() {
		return nil
	}
	return c.nominatedPods(pod, among)
}

// acquireScheduler returns an idle scheduler, or a new one if none is idle.
func (s *clusterState) acquireScheduler(policies scheduler.Policies) *scheduler.Scheduler {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		one := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return one
	}
	return scheduler.New(scheduler.Config{Policies: policies, Workers: 1, Forget: true, Explain: s.cfg.Decided != nil})
}

func (s *clusterState) releaseScheduler(one *scheduler.Scheduler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, one)
}
