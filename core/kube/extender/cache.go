package extender

import (
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
	// fed is when the whole cluster was told last; zero: never, so that nobody knows
	// what else is on a node.
	fed time.Time
	// changes counts what bears on where pods may go, but for nodes that requests carry.
	changes atomic.Uint64
}

func newCache() *cache {
	c := &cache{}
	c.clear()
	return c
}

// clear forgets everything. mu is held, or the cache is new.
func (c *cache) clear() {
	c.nodes, c.pods = map[string]*kube.Node{}, map[string]*kube.Pod{}
	c.onNode = map[string]map[string]*kube.Pod{}
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
		c.clear()
		c.fed = now
	}
	for _, n := range d.Nodes {
		c.nodes[n.Metadata.Name] = n
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
			delete(c.nodes, o.Metadata.Name)
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
	c.dropPod(k)
	if p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" {
		return
	}
	c.pods[k] = p
	node := p.Spec.NodeName
	if c.onNode[node] == nil {
		c.onNode[node] = map[string]*kube.Pod{}
	}
	c.onNode[node][k] = p
}

// dropPod forgets a pod. mu is held.
func (c *cache) dropPod(k string) {
	p := c.pods[k]
	if p == nil {
		return
	}
	delete(c.pods, k)
	if on := c.onNode[p.Spec.NodeName]; on != nil {
		if delete(on, k); len(on) == 0 {
			delete(c.onNode, p.Spec.NodeName)
		}
	}
}

// see takes over what a request carries.
func (c *cache) see(nodes []*kube.Node, pods ...*kube.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range nodes {
		c.nodes[n.Metadata.Name] = n
	}
	for _, p := range pods {
		if p != nil && p.Metadata.Name != "" {
			c.putPod(p)
		}
	}
}

// bound notes that a pod has a node now.
func (c *cache) bound(uid, node string) {
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

// complete is whether everything on a node is known, those among it whom
// kube-scheduler would evict.
func (c *cache) complete(node string, victims *kube.MetaVictims) bool {
	if c.fed.IsZero() || c.nodes[node] == nil {
		return false
	}
	return !slices.ContainsFunc(victims.Pods, func(p kube.MetaPod) bool { return c.onNode[node][p.UID] == nil })
}

// wasFed is whether somebody told what runs in the cluster.
func (c *cache) wasFed() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return !c.fed.IsZero()
}

// size is how much is known.
func (c *cache) size() (nodes, pods int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.nodes), len(c.pods)
}
