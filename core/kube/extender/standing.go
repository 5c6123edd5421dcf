package extender

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// standing is the cluster as a state, kept from one request to the next. To make it of
// 5,000 nodes takes a second, and kube-scheduler asks about pods one after the other,
// between which little changes: so nodes and pods that came and left are put in and
// taken out, and who asks is put into a branch of the state that is thrown away. Where
// that does not do - a pod wants what the nodes were never asked for, nodes are told
// apart by other means now, changes are too many - the state is made anew.
type standing struct {
	cache *cache
	cfg   *Config

	mu     sync.Mutex
	roster *kube.Roster // nil: not made yet
	epoch  uint64       // of the cache's log, which is followed as far as at
	at     int
	snap   *state.Snapshot
	placed map[string]*kube.Instance // by key of the pod
	idle   []*scheduler.Scheduler
}

// pose makes the question where a pod may go, which comes without a node.
func (s *standing) pose(pod *kube.Pod) (*question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.follow() {
		if err := s.begin(); err != nil {
			return nil, err
		}
	}
	q, ok, err := s.branch(pod)
	if !ok && err == nil {
		if err := s.begin(); err != nil { // now that it is known what the pod wants
			return nil, err
		}
		q, ok, err = s.branch(pod)
	}
	if !ok && err == nil {
		err = fmt.Errorf("what pod %s wants cannot be told", pod.Metadata.Name)
	}
	return q, err
}

// follow takes over what has changed; false where that takes a new state.
func (s *standing) follow() bool {
	c := s.cache
	c.mu.RLock()
	news, known := c.log.since(s.epoch, s.at)
	fed := !c.fed.IsZero()
	known = known && s.roster != nil && (!fed || s.roster.KeptFor(func(label string) bool { return c.tellers[label] > 0 }))
	c.mu.RUnlock()
	if !known {
		return false
	}
	if len(news) > 0 {
		txn := s.snap.Fork(s.snap.Index() + 1)
		for _, n := range news {
			if (fed || n.isNode) && !s.apply(txn, n) {
				s.roster = nil
				return false
			}
		}
		s.snap = txn.Snapshot()
	}
	s.at += len(news)
	return true
}

// apply takes over one change.
func (s *standing) apply(txn *state.Txn, n change) bool {
	switch {
	case n.node != nil:
		node, ok := s.roster.Put(n.node)
		return ok && txn.UpsertNode(node) == nil
	case n.isNode:
		txn.DeleteNode(n.key)
		return s.roster.Drop(n.key)
	}
	return s.leave(txn, n.key) && (n.pod == nil || s.join(txn, n.pod, n.key))
}

// leave takes out a pod, if it is there.
func (s *standing) leave(txn *state.Txn, id string) bool {
	i := s.placed[id]
	if i == nil {
		return true
	}
	if !s.roster.Leave(i) {
		return false
	}
	txn.DeleteAllocs(id)
	delete(s.placed, id)
	return s.retell(txn, i.Node)
}

// join puts in a pod.
func (s *standing) join(txn *state.Txn, p *kube.Pod, id string) bool {
	i, changed, ok := s.roster.Join(p)
	if !ok || i == nil {
		return ok
	}
	if changed && txn.UpsertJob(i.Job.Job) != nil {
		return false
	}
	s.placed[id] = i
	txn.UpsertAllocs(allocationOf(i, id))
	return s.retell(txn, i.Node)
}

// retell stores a node as it is told after a pod came or left.
func (s *standing) retell(txn *state.Txn, node string) bool {
	n, ok := s.roster.Retell(node)
	return ok && (n == nil || txn.UpsertNode(n) == nil)
}

// allocationOf is an instance in the state.
func allocationOf(i *kube.Instance, id string) *model.Allocation {
	return &model.Allocation{
		ID: id, Job: i.Job.Job, Group: i.Job.Group(i.Group.Name), NodeID: i.Node,
		Desired: model.DesiredRun, Client: model.ClientRunning, Started: true,
	}
}

// begin makes the state of everything that is known.
func (s *standing) begin() error {
	d, expected := s.gather()
	s.roster, s.snap, s.placed = nil, nil, make(map[string]*kube.Instance, len(d.Pods))
	roster := kube.NewRoster(d, expected)
	txn := state.New().Begin(1)
	defer txn.Abort()
	if err := s.fill(txn, roster); err != nil {
		return err
	}
	s.roster, s.snap = roster, txn.Commit()
	return nil
}

func (s *standing) fill(txn *state.Txn, r *kube.Roster) error {
	for _, n := range r.Nodes {
		if err := txn.UpsertNode(n); err != nil {
			return err
		}
	}
	for _, j := range r.Jobs {
		if err := txn.UpsertJob(j.Job); err != nil {
			return err
		}
	}
	list := make([]*model.Allocation, len(r.Instances))
	for k, i := range r.Instances {
		id := key(i.Pod)
		s.placed[id], list[k] = i, allocationOf(i, id)
	}
	txn.UpsertAllocs(list...)
	return nil
}

// gather collects the nodes, what is on them, and who waits, and notes as of when.
func (s *standing) gather() (d *kube.Dump, waiting []*kube.Pod) {
	c := s.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	s.epoch, s.at = c.log.epoch, c.log.size()
	d = &kube.Dump{}
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		d.Nodes = append(d.Nodes, c.nodes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.onNode)) {
		if name == "" || c.fed.IsZero() {
			continue // nobody knows what is on the nodes, yet
		}
		for _, k := range slices.Sorted(maps.Keys(c.onNode[name])) {
			d.Pods = append(d.Pods, c.onNode[name][k]) // what they read of others counts without their node, too
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.onNode[""])) {
		waiting = append(waiting, asPending(c.onNode[""][k]))
	}
	return d, waiting
}

// branch puts who asks into a state of its own, and those for whom room is kept that
// it must respect. It is not ok where this roster cannot tell one of them.
func (s *standing) branch(pod *kube.Pod) (q *question, ok bool, err error) {
	txn := s.snap.Fork(s.snap.Index() + 1)
	for _, held := range s.nominated(pod) {
		i, ok := s.roster.Ask(asPending(held))
		if !ok {
			return nil, false, nil
		}
		if err := s.hold(txn, held, i); err != nil {
			return nil, false, err
		}
	}
	if self := s.placed[key(pod)]; self != nil {
		txn.DeleteAllocs(key(pod))
	}
	a, ok := s.roster.Ask(pod)
	if !ok {
		return nil, false, nil
	}
	if err := speakable(a.Notes); err != nil {
		return nil, false, err
	}
	if err := txn.UpsertJob(a.Job); err != nil {
		return nil, false, err
	}
	config := model.SchedulerConfig{Algorithm: model.SpreadRank}
	if settings := s.cfg.Settings(); settings != nil {
		config = *settings
	}
	txn.SetConfig(&config)
	return &question{now: s.cfg.Clock.Now().UnixNano(), snap: txn.Snapshot(), job: a.Job, group: a.Group}, true, nil
}

// hold gives a pod that waits for victims to leave the node that it was promised. Of
// its job another version may follow.
func (s *standing) hold(txn *state.Txn, held *kube.Pod, a *kube.Asked) error {
	if txn.Node(held.Spec.NodeName) == nil {
		return nil
	}
	if err := txn.UpsertJob(a.Job); err != nil {
		return err
	}
	txn.UpsertAllocs(&model.Allocation{
		ID: "held " + key(held), Job: a.Job, Group: a.Job.Group(a.Group), NodeID: held.Spec.NodeName,
		Desired: model.DesiredRun, Client: model.ClientRunning, Started: true,
	})
	return nil
}

// nominated are those who have a node in prospect and whom the pod must respect.
func (s *standing) nominated(pod *kube.Pod) []*kube.Pod {
	c := s.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.fed.IsZero() {
		return nil
	}
	return c.nominated(pod, nil)
}

// scheduler is one that is idle, or another one.
func (s *standing) scheduler(policies scheduler.Policies) *scheduler.Scheduler {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		one := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return one
	}
	return scheduler.New(scheduler.Config{Policies: policies, Workers: 1, Forget: true})
}

func (s *standing) release(one *scheduler.Scheduler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, one)
}
