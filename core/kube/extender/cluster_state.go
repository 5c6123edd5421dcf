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
	// special holds, by node, the keys of the placed pods that prepareVictims is about: those
	// without a start time, and those of groups that are evicted together.
	special map[string]map[string]bool
	// built is the time of the last rebuild, and building its duration.
	built    time.Time
	building time.Duration
	idle     []*scheduler.Scheduler
}

// query returns a query for a pending pod: for preemption on the proposed nodes, or if
// proposal is nil for all feasible nodes. Unless acrossNodes is set, pod groups with pods
// on other nodes are excluded from preemption. It returns an error if the model cannot
// express a requirement of the pod.
func (s *clusterState) query(pod *kube.Pod, proposal map[string]*kube.MetaVictims, acrossNodes bool) (q *query, err error) {
	err = s.translate([]*kube.Pod{pod}, func() (ok bool, err error) {
		q, ok, err = s.forkWith(pod, proposal, acrossNodes)
		return ok, err
	})
	return q, err
}

// translate calls fork with the current state. If it returns false, which means that the
// state lacks something that the pods require, it is called again with a rebuilt state.
func (s *clusterState) translate(pods []*kube.Pod, fork func() (ok bool, err error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.applyChanges() {
		if err := s.rebuild(pods); err != nil {
			return err
		}
	}
	ok, err := fork()
	if ok || err != nil {
		return err
	}
	if err := s.rebuild(pods); err != nil {
		return err
	}
	if ok, err = fork(); !ok && err == nil {
		err = errUntranslatable(pods[0])
	}
	return err
}

// prepare updates the state ahead of requests: if whole is true now, otherwise when enough
// changes have accumulated. If that fails, the next request builds the state and reports the
// error; the feed goes on.
func (s *clusterState) prepare(whole bool) {
	log := s.cfg.Logger
	defer func() {
		if panicked := recover(); panicked != nil {
			log.Error("scheduler state not built ahead of requests", "panic", panicked)
		}
	}()
	if !whole {
		s.catchUp()
		return
	}
	if err := s.update(); err != nil {
		log.Warn("scheduler state not built ahead of requests", "err", err)
		return
	}
	s.releaseScheduler(s.acquireScheduler(s.cfg.Policies))
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
	if delete(s.special[i.Node], id); len(s.special[i.Node]) == 0 {
		delete(s.special, i.Node)
	}
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
	a := allocationOf(i, id, s.cluster.DevicesOf(i))
	s.indexSpecial(a)
	txn.AllocWriter().Upsert(a)
	return s.refreshNode(txn, i.Node)
}

// indexSpecial adds a placed pod to special if it belongs there.
func (s *clusterState) indexSpecial(a *model.Allocation) {
	if a.StartTime != 0 && !a.Job.AllOrNone && !isInComposite(a) {
		return
	}
	if s.special[a.NodeID] == nil {
		s.special[a.NodeID] = map[string]bool{}
	}
	s.special[a.NodeID][a.ID] = true
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

// rebuild builds the state from all cached objects. The pending pods are expected,
// although the feed may not have reported them yet.
func (s *clusterState) rebuild(pending []*kube.Pod) error {
	d, expected := s.collect()
	return s.load(d, append(expected, pending...))
}

// load builds the state from a dump. Pods that are expected later can be translated.
func (s *clusterState) load(d *kube.Dump, expected []*kube.Pod) error {
	s.cluster, s.snap, s.placed, s.special = nil, nil, make(map[string]*kube.Instance, len(d.Pods)), map[string]map[string]bool{}
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
		s.indexSpecial(list[k])
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
func (s *clusterState) forkWith(pod *kube.Pod, proposal map[string]*kube.MetaVictims, acrossNodes bool) (q *query, ok bool, err error) {
	txn := s.snap.Fork(s.snap.Index() + 1)
	among := proposal // nodes of which open responses matter; nil: all
	if dependsOnOtherNodes(s.cache, pod) {
		among = nil
	}
	s.removeLeaving(txn, among)
	if ok, err := s.reserveNominated(txn, []*kube.Pod{pod}, among); !ok {
		return nil, false, err
	}
	now := s.cfg.Clock.Now().UnixNano()
	var excluded []string
	if proposal != nil {
		if excluded, err = s.prepareVictims(txn, pod.PriorityValue(), proposal, now, acrossNodes); err != nil {
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
	return &query{now: now, snap: txn.Snapshot(), job: a.Job, group: a.Group, since: unixNano(pod.Created()), excluded: excluded}, true, nil
}

// removeLeaving removes the pods that open answers name as victims, on the given nodes.
func (s *clusterState) removeLeaving(txn *state.Txn, among map[string]*kube.MetaVictims) {
	for _, k := range s.cache.leaving() {
		if i := s.placed[k]; i != nil && isAmong(among, i.Node) {
			txn.AllocWriter().Delete(k)
		}
	}
}

// reserveNominated reserves capacity for the nominated pods that have precedence over the
// pending ones, and removes the pending ones themselves, which another feed may have placed.
// It returns false if a nominated pod requires a rebuild.
func (s *clusterState) reserveNominated(txn *state.Txn, pending []*kube.Pod, among map[string]*kube.MetaVictims) (bool, error) {
	isPending := make(map[string]bool, len(pending))
	for _, p := range pending {
		isPending[key(p)] = true
	}
	for _, nominated := range s.nominatedPods(pending[0], among) {
		if isPending[key(nominated)] {
			continue
		}
		i, ok := s.cluster.TranslatePod(asPending(nominated))
		if !ok {
			return false, nil
		}
		if err := s.reserve(txn, nominated, i); err != nil {
			return false, err
		}
	}
	for k := range isPending {
		if s.placed[k] != nil && txn.Alloc(k) != nil {
			txn.AllocWriter().Delete(k)
		}
	}
	return true, nil
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

// prepareVictims prepares the pods on the proposed nodes for eviction. It returns the names
// of the pod groups that it excludes, of those with a lower priority than the preemptor.
func (s *clusterState) prepareVictims(txn *state.Txn, priority int32, proposal map[string]*kube.MetaVictims, now int64, acrossNodes bool) (excluded []string, err error) {
	var allocs []*model.Allocation
	names := map[string]bool{}
	for node := range proposal {
		if len(s.special[node]) == 0 {
			continue
		}
		if !acrossNodes {
			allocs = txn.AppendNodeAllocs(allocs[:0], node)
			if err := protectGroups(txn, node, priority, allocs, names); err != nil {
				return nil, err
			}
		}
		allocs = startUnstarted(txn, node, allocs, now)
	}
	excluded = slices.Sorted(maps.Keys(names))
	if len(txn.Budgets()) > 0 {
		return excluded, nil
	}
	return excluded, budgetsFromCounts(txn, proposal)
}

// startUnstarted gives pods of a node without a start time one: as in kube-scheduler, they
// count as started now. It uses and returns the memory of buffer.
func startUnstarted(txn *state.Txn, node string, buffer []*model.Allocation, now int64) []*model.Allocation {
	buffer = txn.AppendNodeAllocs(buffer[:0], node)
	for _, a := range buffer {
		if a.StartTime == 0 && !isReservation(a) {
			started := *a
			started.StartTime, started.CreateTime = now, now
			txn.AllocWriter().Upsert(&started)
		}
	}
	return buffer
}

// isInComposite reports whether a pod belongs to a composite pod group. Composite groups are
// not read: they may have to be evicted as a whole, and have a priority of their own.
func isInComposite(a *model.Allocation) bool { return a.Job.Meta[kube.MetaComposite] != "" }

// protectGroups makes pod groups unevictable that are evicted as a whole and have pods on
// other nodes than this one: kube-scheduler accepts victims of an extender on the node of the
// preemptor only, and the eviction of a part would break the group. The same applies to the
// pods of composite groups. It adds to names those with a priority below that of the preemptor.
func protectGroups(txn *state.Txn, node string, priority int32, allocs []*model.Allocation, names map[string]bool) error {
	for _, a := range allocs {
		if a.Job.NonPreemptible || isReservation(a) || !isInComposite(a) && !isInWideCohort(txn, a, node) {
			continue
		}
		if a.Job.Priority < priority {
			names[a.Job.Namespace+"/"+a.Job.Meta["name"]] = true
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

// isInWideCohort reports whether a pod is evicted together with pods of other nodes.
func isInWideCohort(txn *state.Txn, a *model.Allocation, node string) bool {
	return a.InCohort() && slices.ContainsFunc(txn.AppendJobAllocs(nil, a.Job.Key()), func(o *model.Allocation) bool {
		return o.NodeID != node && o.InCohort()
	})
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
