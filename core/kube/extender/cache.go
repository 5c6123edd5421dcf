package extender

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/core/kube"
)

// A cache holds the objects of the Kubernetes cluster.
type cache struct {
	mu      sync.RWMutex
	nodes   map[string]*kube.Node
	pods    map[string]*kube.Pod            // by key: the UID, or namespace/name without one
	onNode  map[string]map[string]*kube.Pod // by node ("": pending), then by key
	budgets map[string]*kube.Budget
	classes map[string]*kube.PriorityClass
	related relatedObjects
	// perInstanceReaders counts the selectors of pods and budgets that read each
	// per-instance label.
	perInstanceReaders map[string]int
	// synced is the time of the last full update. If it is zero the pods on the nodes
	// are unknown.
	synced time.Time
	// changes is incremented by every change that may affect feasibility.
	changes atomic.Uint64
	// hashByNode holds the hash of each node's text in the last request, if the
	// cached node is equal to it. Unchanged nodes are not decoded again.
	hashByNode map[string]uint64
	nodeByHash map[uint64]string // inverse of hashByNode
	log        changeLog
	answers    answers
	// observedPods and observedNodes hold the objects that no feed contained.
	observedPods, observedNodes observedSet
	// live is set if a watch maintains the cache. Objects of requests are then not
	// stored: no event would remove an object that was deleted before.
	live bool
}

func newCache() *cache {
	c := &cache{answers: newAnswers(0, time.Now, func(*answer, string) {})}
	c.clear()
	return c
}

// clear removes all objects. The caller must hold mu, or be the only user.
func (c *cache) clear() {
	c.nodes, c.pods = map[string]*kube.Node{}, map[string]*kube.Pod{}
	c.onNode, c.hashByNode, c.nodeByHash = map[string]map[string]*kube.Pod{}, map[string]uint64{}, map[uint64]string{}
	c.perInstanceReaders = map[string]int{}
	c.budgets, c.classes = map[string]*kube.Budget{}, map[string]*kube.PriorityClass{}
	c.related = newRelatedObjects()
}

// key returns the identity of a pod.
func key(p *kube.Pod) string {
	if p.Metadata.UID != "" {
		return p.Metadata.UID
	}
	return p.Metadata.Namespace + "/" + p.Metadata.Name
}

// feed stores the objects of a dump. If whole is true, they replace all cached objects.
func (c *cache) feed(d *kube.Dump, whole bool, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes.Add(1)
	if whole {
		c.retain(d)
		if c.synced.IsZero() {
			c.log.restart() // until now nodes counted as empty
		}
		c.synced = now
	}
	for _, n := range d.Nodes {
		c.observedNodes.remove(n.Metadata.Name)
		c.putNode(n)
	}
	for _, p := range d.Pods {
		c.observedPods.remove(key(p))
		c.feedPod(p)
	}
	for _, b := range d.Budgets {
		c.setBudget(budgetName(b), b)
	}
	for _, k := range d.Classes {
		c.classes[k.Metadata.Name] = k
	}
	restart := c.related.feed(d, changeRecorder(c))
	for _, deleted := range d.Deleted {
		switch o := deleted.(type) {
		case *kube.Node:
			c.dropNode(o.Metadata.Name)
		case *kube.Pod:
			c.removePod(o)
		case *kube.Budget:
			c.setBudget(budgetName(o), nil)
		case *kube.PriorityClass:
			delete(c.classes, o.Metadata.Name)
		default:
			restart = c.related.remove(deleted, changeRecorder(c)) || restart
		}
	}
	if restart {
		c.log.restart() // the devices of all nodes are translated again
	}
}

// feedPod stores a pod of the feed and updates the answers that concern it. The caller
// must hold mu.
func (c *cache) feedPod(p *kube.Pod) {
	c.putPod(p)
	if c.pods[key(p)] == nil {
		c.podGone(p)
		return
	}
	c.podChanged(p)
}

// removePod removes a pod that the feed reports as deleted. The event may lack all
// fields but the identity. The caller must hold mu.
func (c *cache) removePod(p *kube.Pod) {
	if cached := c.pods[key(p)]; cached != nil {
		p = cached
	}
	c.dropPod(key(p))
	c.podGone(p)
}

// putPod stores a pod. A finished pod is removed instead. The caller must hold mu.
func (c *cache) putPod(p *kube.Pod) {
	k := key(p)
	if old := c.pods[k]; old != nil && reflect.DeepEqual(old, p) {
		return
	}
	c.dropPod(k)
	if p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" {
		return
	}
	c.pods[k] = p
	c.related.addUser(k, p)
	p.EachPerInstanceLabel(func(label string) { c.perInstanceReaders[label]++ })
	node := p.Spec.NodeName
	if c.onNode[node] == nil {
		c.onNode[node] = map[string]*kube.Pod{}
	}
	c.onNode[node][k] = p
	if node != "" {
		c.changes.Add(1)
	}
	c.log.podAdded(p)
}

// dropPod removes a pod. The caller must hold mu.
func (c *cache) dropPod(k string) {
	p := c.pods[k]
	if p == nil {
		return
	}
	delete(c.pods, k)
	c.related.removeUser(k, p)
	c.observedPods.remove(k)
	p.EachPerInstanceLabel(func(label string) { c.perInstanceReaders[label]-- })
	if on := c.onNode[p.Spec.NodeName]; on != nil {
		if delete(on, k); len(on) == 0 {
			delete(c.onNode, p.Spec.NodeName)
		}
	}
	if p.Spec.NodeName != "" {
		c.changes.Add(1)
	}
	c.log.podRemoved(k, p)
}

// putNode stores a node. The caller must hold mu.
func (c *cache) putNode(n *kube.Node) {
	name := n.Metadata.Name
	old := c.nodes[name]
	if old != nil && sameNode(old, n) {
		return
	}
	c.nodes[name] = n
	c.forgetHash(name)
	c.changes.Add(1)
	c.log.add(nodeUpdate(n))
	if old != nil {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(c.onNode[name])) {
		c.log.podAdded(c.onNode[name][k]) // until now on an unknown node
	}
}

// dropNode removes a node. The caller must hold mu.
func (c *cache) dropNode(name string) {
	if c.nodes[name] == nil {
		return
	}
	delete(c.nodes, name)
	c.observedNodes.remove(name)
	c.forgetHash(name)
	c.changes.Add(1)
	for k, p := range c.onNode[name] {
		c.log.podRemoved(k, p)
	}
	c.log.add(nodeRemoval(name))
}

func budgetName(b *kube.Budget) string { return b.Metadata.Namespace + "/" + b.Metadata.Name }

// setBudget stores a disruption budget, or deletes it if b is nil. The caller must hold
// mu.
func (c *cache) setBudget(name string, b *kube.Budget) {
	old := c.budgets[name]
	if old == b || old != nil && b != nil && reflect.DeepEqual(old, b) {
		return
	}
	count := func(b *kube.Budget, by int) {
		if b != nil {
			b.EachPerInstanceLabel(func(label string) { c.perInstanceReaders[label] += by })
		}
	}
	count(old, -1)
	count(b, 1)
	if b == nil {
		delete(c.budgets, name)
		c.log.add(budgetRemoval(old))
		return
	}
	c.budgets[name] = b
	c.log.add(budgetUpdate(b))
}

// sameNode reports whether two versions of a node are equal except for the heartbeat
// times of their conditions.
func sameNode(a, b *kube.Node) bool {
	if !slices.EqualFunc(a.Status.Conditions, b.Status.Conditions, func(x, y kube.NodeCondition) bool {
		return x.Type == y.Type && x.Status == y.Status
	}) {
		return false
	}
	one, other := *a, *b
	one.Status.Conditions, other.Status.Conditions = nil, nil
	return reflect.DeepEqual(&one, &other)
}

// retain removes all objects that a full dump does not contain, except objects that
// could not be read. Equal objects are retained, because a replacement would
// invalidate the cluster state. The caller must hold mu.
func (c *cache) retain(d *kube.Dump) {
	nodes, pods, budgets, unread := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, u := range d.Invalid {
		unread[u.Describe()] = true
	}
	for _, n := range d.Nodes {
		nodes[n.Metadata.Name] = true
	}
	for _, p := range d.Pods {
		pods[key(p)] = true
	}
	for _, b := range d.Budgets {
		budgets[budgetName(b)] = true
	}
	for name := range c.budgets {
		if !budgets[name] && !unread["PodDisruptionBudget "+name] {
			c.setBudget(name, nil)
		}
	}
	for name := range c.nodes {
		if !nodes[name] && !unread["Node "+name] {
			c.dropNode(name)
		}
	}
	for k, p := range c.pods {
		if !pods[k] && !unread["Pod "+p.Metadata.Namespace+"/"+p.Metadata.Name] {
			c.removePod(p)
		}
	}
	for _, o := range c.related.missing(d) {
		if c.related.remove(o, changeRecorder(c)) {
			c.log.restart()
		}
	}
	maps.DeleteFunc(c.classes, func(name string, _ *kube.PriorityClass) bool { return !unread["PriorityClass "+name] })
}

// hashes is the seed of the hashes of node texts.
var hashes = maphash.MakeSeed()

// knownNodes returns the name of each node with an unchanged text, "" for all others,
// and the hashes of the texts.
func (c *cache) knownNodes(texts []json.RawMessage) (names []string, sums []uint64) {
	names, sums = make([]string, len(texts)), make([]uint64, len(texts))
	for i, text := range texts {
		sums[i] = maphash.Bytes(hashes, text)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i, sum := range sums {
		names[i] = c.nodeByHash[sum]
	}
	return names, sums
}

// observeNode stores a node from a request, with the hash of its text.
func (c *cache) observeNode(n *kube.Node, sum uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := n.Metadata.Name
	if !c.live {
		known := c.nodes[name] != nil && !c.observedNodes.contains(name)
		c.putNode(n)
		if !known {
			if oldest, full := c.observedNodes.add(name, maxObservedNodes); full {
				c.dropNode(oldest)
			}
		}
	} else if c.nodes[name] == nil {
		return
	}
	c.forgetHash(name)
	c.hashByNode[n.Metadata.Name], c.nodeByHash[sum] = sum, n.Metadata.Name
}

func (c *cache) forgetHash(node string) {
	if sum, ok := c.hashByNode[node]; ok {
		delete(c.nodeByHash, sum)
		delete(c.hashByNode, node)
	}
}

// observePods stores pods from a request.
func (c *cache) observePods(pods ...*kube.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live {
		return
	}
	for _, p := range pods {
		if p != nil && p.Metadata.Name != "" {
			c.observePod(p)
		}
	}
}

// observePod stores a pod from a request. The caller must hold mu.
func (c *cache) observePod(p *kube.Pod) {
	k := key(p)
	known := c.pods[k] != nil && !c.observedPods.contains(k)
	c.putPod(p)
	if known || c.pods[k] == nil {
		return
	}
	if oldest, full := c.observedPods.add(k, maxObservedPods); full {
		c.dropPod(oldest)
	}
}

// setNode records that a pod was bound to a node.
func (c *cache) setNode(uid, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pods[uid]
	if p == nil {
		return
	}
	c.changes.Add(1)
	isObserved := c.observedPods.contains(uid)
	moved := *p
	moved.Spec.NodeName = node
	c.putPod(&moved)
	if isObserved {
		c.observedPods.add(uid, maxObservedPods)
	}
	c.podChanged(&moved)
}

// isComplete reports whether all pods on a node are cached, including the proposed
// victims. The victims of a pod group may be on other nodes.
func (c *cache) isComplete(node string, victims *kube.MetaVictims) bool {
	if c.synced.IsZero() || c.nodes[node] == nil {
		return false
	}
	return !slices.ContainsFunc(victims.Pods, func(v kube.MetaPod) bool {
		p := c.pods[v.UID]
		return p == nil || p.Spec.NodeName != node && (p.Spec.NodeName == "" || p.Group() == "")
	})
}

// isSynced reports whether the cache has received a full dump.
func (c *cache) isSynced() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return !c.synced.IsZero()
}

// size returns the number of cached objects.
func (c *cache) size() (nodes, pods int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.nodes), len(c.pods)
}
