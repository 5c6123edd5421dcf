package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
)

const (
	// maxNodes bounds the number of nodes after expansion of count.
	maxNodes     = 1_000_000
	tooManyNodes = "more than 1000000 nodes in all"
	// maxDevices bounds the device groups of a node, which are searched linearly.
	maxDevices = 1000
)

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// checkNodes checks the nodes. Ids must be unique after expansion of count.
func (c *checker) checkNodes() {
	var root *path
	total := 0
	for i := range c.f.Nodes {
		n, p := &c.f.Nodes[i], root.field("nodes").item(i)
		c.unique(p.field("id"), "nodes", "id", n.ID, i, c.nodes)
		switch count := n.instances(); {
		case count < 0:
			c.add(p.field("count"), fmt.Sprintf("%d is negative: expected 0 or more", count), "remove the sign")
		case total+min(count, maxNodes+1) > maxNodes:
			c.add(p.field("count"), tooManyNodes, "use fewer nodes")
		default:
			total += count
		}
		c.checkNode(p, n)
	}
	// A generated id may collide with an explicit one: n1 with count 2, and n1-0.
	for i := range c.f.Nodes {
		n := &c.f.Nodes[i]
		if of, ok := c.expansion(n.ID); ok && !n.expands() {
			c.add(root.field("nodes").item(i).field("id"), fmt.Sprintf("%.100q is also an id that count generates for nodes[%d]", n.ID, of), "use a unique id")
		}
	}
}

// instances returns the number of nodes of the entry.
func (n *Node) instances() int {
	if n.Count == nil {
		return 1
	}
	return *n.Count
}

// expands reports whether the nodes have the ids ID-0, ID-1, and so on. A single node
// has the id as written, even with an explicit count of 1.
func (n *Node) expands() bool { return n.instances() != 1 }

// expansion returns the entry of nodes that generates an id by its count.
func (c *referenceChecker) expansion(id string) (int, bool) {
	dash := strings.LastIndexByte(id, '-')
	if dash < 0 {
		return 0, false
	}
	i, ok := c.nodes[id[:dash]]
	if !ok || !c.f.Nodes[i].expands() {
		return 0, false
	}
	k, err := strconv.Atoi(id[dash+1:])
	return i, err == nil && k >= 0 && k < c.f.Nodes[i].instances() && strconv.Itoa(k) == id[dash+1:]
}

// node returns the entry of nodes that an id belongs to.
func (c *referenceChecker) node(id string) (int, bool) {
	if i, ok := c.nodes[id]; ok && !c.f.Nodes[i].expands() {
		return i, true
	}
	return c.expansion(id)
}

// needNode checks a reference to a node.
func (c *referenceChecker) needNode(p *path, id string) {
	if id == "" {
		c.add(p, "node is missing", "name one of `nodes`")
		return
	}
	if _, ok := c.node(id); ok || c.incomplete["nodes"] {
		return
	}
	if i, ok := c.nodes[id]; ok && c.f.Nodes[i].instances() <= 0 {
		c.add(p, fmt.Sprintf("unknown node %.100q: nodes[%d] has count %d", id, i, c.f.Nodes[i].instances()), "raise the count, or omit it for one node")
		return
	}
	if i, ok := c.nodes[id]; ok && c.f.Nodes[i].instances() > 1 {
		c.add(p, fmt.Sprintf("unknown node %.100q: with count %d the ids are %.100s-0 to %.100s-%d", id, c.f.Nodes[i].instances(), id, id, c.f.Nodes[i].instances()-1), "name one of them")
		return
	}
	c.unknown(p, "nodes", "node", id, c.nodes)
}

func (c *checker) checkNode(p *path, n *Node) {
	c.optionalName(p.field("datacenter"), n.Datacenter)
	c.optionalName(p.field("class"), n.Class)
	c.checkAmounts(p.field("capacity"), n.Capacity)
	c.checkAmounts(p.field("reserved"), n.Reserved)
	for _, resource := range keys(n.Reserved) { // reserved amounts are rare
		if r, has := n.Reserved[resource], n.Capacity[resource]; r > has && has >= 0 {
			c.add(p.field("reserved").field(resource), fmt.Sprintf("%d reserved exceeds the capacity of %d", r, has), "reserve at most the capacity")
		}
	}
	c.checkPorts(p.field("ports"), n.Ports)
	if d := len(n.Devices); d > maxDevices {
		c.add(p.field("devices"), fmt.Sprintf("%d device groups: expected at most %d", d, maxDevices), "describe devices of the same model as one group")
	}
	seen := map[string]int{}
	for j := range n.Devices {
		c.checkDevice(p.field("devices").item(j), &n.Devices[j], j, seen)
	}
	for _, reserved := range []string{"node.id", "node.class", "node.datacenter"} {
		if _, ok := n.Attributes[reserved]; ok {
			c.add(p.field("attributes").field(reserved), reserved+" is built in and cannot be set as an attribute", "set the node's id, class or datacenter")
		}
	}
	c.noEmptyKey(p.field("attributes"), n.Attributes)
	c.checkTaints(p.field("taints"), n.Taints)
}

func (c *valueChecker) checkDevice(p *path, d *Device, j int, seen map[string]int) {
	parts := strings.SplitN(d.ID, "/", 3)
	if len(parts) != 3 || slices.Contains(parts, "") {
		c.add(p.field("id"), fmt.Sprintf("%.100q is not a valid device group id: expected vendor/type/model", d.ID), "write it as nvidia/gpu/a100")
	} else if first, ok := seen[d.ID]; ok {
		c.add(p.field("id"), fmt.Sprintf("duplicate id %.100q: already used by devices[%d]", d.ID, first), "combine the counts in one entry")
	}
	seen[d.ID] = j
	if d.Count < 0 {
		c.add(p.field("count"), fmt.Sprintf("%d is negative: expected 0 or more", d.Count), "remove the sign")
	}
	c.noEmptyKey(p.field("attributes"), d.Attributes)
}

// noEmptyKey reports an empty key of a mapping.
func (c *valueChecker) noEmptyKey(p *path, m map[string]string) {
	if _, ok := m[""]; ok {
		c.add(p, "one of the names is empty", "write a name before the colon")
	}
}

// checkAmounts checks the names of resources and the bounds of their amounts.
func (c *valueChecker) checkAmounts(p *path, q Quantities) {
	good := true
	for resource, amount := range q {
		good = good && fieldcheck.IsResource(resource) && amount >= 0 && amount <= model.MaxAmount
	}
	if good {
		return
	}
	for _, resource := range keys(q) {
		amount := q[resource]
		c.report(p.field(resource), fieldcheck.Amount(resource, amount))
	}
}

func (c *valueChecker) checkPorts(p *path, ports []uint16) {
	if len(ports) == 0 {
		return
	}
	seen := map[uint16]bool{}
	for i, port := range ports {
		c.report(p.item(i), fieldcheck.Port(int(port), seen[port]))
		seen[port] = true
	}
}

// checkDimensions checks that the number of resource names does not exceed the length
// of a resource vector. It reports the first name beyond it.
func (c *checker) checkDimensions() {
	var root *path
	have := dimensions{}
	for _, name := range model.NewDimensions().Names() {
		have[name] = true
	}
	refuse := func(p *path, name string) {
		c.incomplete["dimensions"] = true
		c.add(p.field(name), fmt.Sprintf("%.100q is the 17th resource: expected at most 16 in one cluster, of which cpu, memory, disk and network are four", name), "omit resources that are never scarce")
	}
	for i := range c.f.Nodes {
		p := root.field("nodes").item(i)
		if name, over := have.add(c.f.Nodes[i].Capacity); over {
			refuse(p.field("capacity"), name)
			return
		}
		if name, over := have.add(c.f.Nodes[i].Reserved); over {
			refuse(p.field("reserved"), name)
			return
		}
	}
	for i := range c.f.Clusters {
		if name, over := have.add(c.f.Clusters[i].Capacity); over {
			refuse(root.field("clusters").item(i).field("capacity"), name)
			return
		}
	}
	for i := range c.f.Bindings {
		if name, over := have.add(c.f.Bindings[i].Resources); over {
			refuse(root.field("bindings").item(i).field("resources"), name)
			return
		}
	}
	for i := range c.f.Jobs {
		for j := range c.f.Jobs[i].Groups {
			if name, over := have.add(c.f.Jobs[i].Groups[j].Resources); over {
				refuse(root.field("jobs").item(i).field("groups").item(j).field("resources"), name)
				return
			}
		}
	}
}

// dimensions is a set of resource names.
type dimensions map[string]bool

// add adds the names of q. It returns the first one, in sorted order, beyond the limit.
func (d dimensions) add(q Quantities) (string, bool) {
	for name := range q {
		if d[name] {
			continue
		}
		for _, name := range keys(q) {
			if d[name] = true; len(d) > model.MaxDimensions {
				return name, true
			}
		}
	}
	return "", false
}

// checkTaints checks the taints of a node; key and effect together must be unique.
func (c *valueChecker) checkTaints(list *path, taints []Taint) {
	type same struct{ key, effect string }
	seen := map[same]int{}
	for i := range taints {
		t, p := &taints[i], list.item(i)
		if t.Key == "" {
			c.add(p.field("key"), "key is missing", "write a key such as gpu")
		}
		if t.Effect == "" {
			c.add(p.field("effect"), "effect is missing", "write NoSchedule, PreferNoSchedule or NoExecute")
		}
		c.checkEffect(p.field("effect"), t.Effect)
		if first, ok := seen[same{t.Key, t.Effect}]; ok {
			c.add(p, fmt.Sprintf("taints[%d] has the same key and effect", first), "remove one of the two")
		}
		seen[same{t.Key, t.Effect}] = i
	}
}

func (c *valueChecker) checkEffect(p *path, effect string) {
	c.oneOf(p, effect, taintEffects...)
}

// checkToleration checks a toleration. Only NoExecute tolerations may have a duration.
func (c *valueChecker) checkToleration(p *path, t *Toleration) {
	c.oneOf(p.field("operator"), t.Operator, valuesOf[Toleration]("operator")...)
	value, key, limit := fieldcheck.Toleration(model.Toleration{
		Key: t.Key, Operator: model.TolerationOperator(t.Operator), Value: t.Value, Effect: model.TaintEffect(t.Effect), For: time.Duration(t.For),
	})
	c.report(p.field("value"), value)
	c.report(p.field("key"), key)
	c.checkEffect(p.field("effect"), t.Effect)
	c.checkDuration(p.field("for"), t.For)
	c.report(p.field("for"), limit)
}
