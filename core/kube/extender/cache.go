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

// cache is what is known of the cluster.
type cache struct {
	mu      sync.RWMutex
	nodes   map[string]*kube.Node
	pods    map[string]*kube.Pod            // by UID, or by name where there is none
	onNode  map[string]map[string]*kube.Pod // by node ("": they wait for one), then as pods
	budgets map[string]*kube.Budget
	classes map[string]*kube.PriorityClass
	// perInstanceReaders is how often each label that tells the pods of a workload apart is read.
	perInstanceReaders map[string]int
	// synced is when the whole cluster was told last; zero: never, so that nobody knows
	// what else is on a node.
	synced time.Time
	// changes counts what bears on where pods may go.
	changes atomic.Uint64
	// hashByNode are hashes of nodes as requests carried them last, of those that are known as
	// they were there: most say the same each time, and are not read again.
	hashByNode map[string]uint64
	nodeByHash map[uint64]string // the same the other way round
	log        changeLog
}

func newCache() *cache {
	c := &cache{}
	c.clear()
	return c
}

// clear forgets everything. mu is held, or the cache is new.
func (c *cache) clear() {
	c.nodes, c.pods = map[string]*kube.Node{}, map[string]*kube.Pod{}
	c.onNode, c.hashByNode, c.nodeByHash = map[string]map[string]*kube.Pod{}, map[string]uint64{}, map[uint64]string{}
	c.perInstanceReaders = map[string]int{}
	c.budgets, c.classes = map[string]*kube.Budget{}, map[string]*kube.PriorityClass{}
}

// key tells pods apart.
func key(p *kube.Pod) string {
	if p.Metadata.UID != "" {
		return p.Metadata.UID
	}
	return p.Metadata.Namespace + "/" + p.Metadata.Name
}

// feed takes over a dump; a whole one replaces what was known.
func (c *cache) feed(d *kube.Dump, whole bool, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes.Add(1)
	if whole {
		c.retain(d)
		if c.synced.IsZero() {
			c.log.restart() // so far nodes were taken to be empty
		}
		c.synced = now
	}
	for _, n := range d.Nodes {
		c.putNode(n)
	}
	for _, p := range d.Pods {
		c.putPod(p)
	}
	for _, b := range d.Budgets {
		c.budgets[b.Metadata.Namespace+"/"+b.Metadata.Name] = b
	}
	for _, k := range d.Classes {
		c.classes[k.Metadata.Name] = k
	}
	for _, gone := range d.Deleted {
		switch o := gone.(type) {
		case *kube.Node:
			c.dropNode(o.Metadata.Name)
		case *kube.Pod:
			c.dropPod(key(o))
		case *kube.Budget:
			delete(c.budgets, o.Metadata.Namespace+"/"+o.Metadata.Name)
		case *kube.PriorityClass:
			delete(c.classes, o.Metadata.Name)
		}
	}
}

// putPod takes over one pod. mu is held.
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

// dropPod forgets a pod. mu is held.
func (c *cache) dropPod(k string) {
	p := c.pods[k]
	if p == nil {
		return
	}
	delete(c.pods, k)
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

// putNode takes over one node. mu is held.
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
		c.log.podAdded(c.onNode[name][k]) // so far on a node that nobody knew
	}
}

// dropNode forgets a node. mu is held.
func (c *cache) dropNode(name string) {
	if c.nodes[name] == nil {
		return
	}
	delete(c.nodes, name)
	c.forgetHash(name)
	c.changes.Add(1)
	for k, p := range c.onNode[name] {
		c.log.podRemoved(k, p)
	}
	c.log.add(nodeRemoval(name))
}

// sameNode is whether two versions of a node differ in nothing but when it was heard of.
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

// retain forgets what a whole cluster has no more: what stays as it is need not be
// worked out again, and what could not be read stays as it was. mu is held.
func (c *cache) retain(d *kube.Dump) {
	nodes, pods, unread := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, u := range d.Invalid {
		unread[u.Describe()] = true
	}
	for _, n := range d.Nodes {
		nodes[n.Metadata.Name] = true
	}
	for _, p := range d.Pods {
		pods[key(p)] = true
	}
	for name := range c.nodes {
		if !nodes[name] && !unread["Node "+name] {
			c.dropNode(name)
		}
	}
	for k, p := range c.pods {
		if !pods[k] && !unread["Pod "+p.Metadata.Namespace+"/"+p.Metadata.Name] {
			c.dropPod(k)
		}
	}
	maps.DeleteFunc(c.budgets, func(name string, _ *kube.Budget) bool { return !unread["PodDisruptionBudget "+name] })
	maps.DeleteFunc(c.classes, func(name string, _ *kube.PriorityClass) bool { return !unread["PriorityClass "+name] })
}

// hashes makes the hashes of texts.
var hashes = maphash.MakeSeed()

// knownNodes names the nodes of texts that say what they said last, "" where one does not.
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

// observeNode takes over a node that a request carries.
func (c *cache) observeNode(n *kube.Node, sum uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putNode(n)
	c.forgetHash(n.Metadata.Name)
	c.hashByNode[n.Metadata.Name], c.nodeByHash[sum] = sum, n.Metadata.Name
}

func (c *cache) forgetHash(node string) {
	if sum, ok := c.hashByNode[node]; ok {
		delete(c.nodeByHash, sum)
		delete(c.hashByNode, node)
	}
}

// observePods takes over pods that a request carries.
func (c *cache) observePods(pods ...*kube.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range pods {
		if p != nil && p.Metadata.Name != "" {
			c.putPod(p)
		}
	}
}

// setNode notes that a pod has a node now.
func (c *cache) setNode(uid, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pods[uid]
	if p == nil {
		return
	}
	c.changes.Add(1)
	moved := *p
	moved.Spec.NodeName = node
	c.putPod(&moved)
}

// isComplete is whether everything on a node is known, those among it whom
// kube-scheduler would evict.
func (c *cache) isComplete(node string, victims *kube.MetaVictims) bool {
	if c.synced.IsZero() || c.nodes[node] == nil {
		return false
	}
	return !slices.ContainsFunc(victims.Pods, func(p kube.MetaPod) bool { return c.onNode[node][p.UID] == nil })
}

// isSynced is whether somebody told what runs in the cluster.
func (c *cache) isSynced() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return !c.synced.IsZero()
}

// size is how much is known.
func (c *cache) size() (nodes, pods int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.nodes), len(c.pods)
}
