package audit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// here returns the live allocations on a node.
func (c *cluster) here(n *node) (list []*alloc) {
	for _, a := range c.order {
		if a.live && a.node == n {
			list = append(list, a)
		}
	}
	return list
}

// overfull returns the resource that a node lacks for the allocations, or "" if they fit.
func overfull(n *node, allocs []*alloc) string {
	used, devices, ports := map[string]int64{}, map[string]int32{}, map[uint16]bool{}
	for _, p := range n.Ports {
		ports[p] = true
	}
	for _, a := range allocs {
		for name, amount := range a.group.Resources {
			used[name] += amount
		}
		for _, d := range a.devices {
			devices[d.ID] += d.Count
		}
		for _, p := range a.group.Ports {
			if ports[p] {
				return fmt.Sprintf("port %d", p)
			}
			ports[p] = true
		}
	}
	for name, amount := range used {
		if amount > n.Capacity[name]-n.Reserved[name] {
			return name
		}
	}
	for id, count := range devices {
		i := slices.IndexFunc(n.Devices, func(d deviceSpec) bool { return d.ID == id })
		if i < 0 || count > n.Devices[i].Count {
			return id
		}
	}
	return ""
}

// wrongDevices returns why the devices of an allocation do not serve its requests, or "".
func wrongDevices(a *alloc) string {
	if len(a.devices) != len(a.group.Devices) {
		return fmt.Sprintf("%d devices for %d requests", len(a.devices), len(a.group.Devices))
	}
	for i, d := range a.devices {
		at := slices.IndexFunc(a.node.Devices, func(s deviceSpec) bool { return s.ID == d.ID })
		if at < 0 || !serves(&a.node.Devices[at], &a.group.Devices[i]) || d.Count != requested(&a.group.Devices[i]) {
			return fmt.Sprintf("%d of %s for request %s", d.Count, d.ID, a.group.Devices[i].ID)
		}
	}
	return ""
}

func requested(r *deviceRequest) int32 {
	if r.Count == nil {
		return 1
	}
	return *r.Count
}

// serves reports whether a device group may serve a request: type, vendor/type or
// vendor/type/model, and the constraints on its attributes.
func serves(d *deviceSpec, r *deviceRequest) bool {
	part, want := strings.Split(d.ID, "/"), strings.Split(r.ID, "/")
	switch len(want) {
	case 1:
		if len(part) < 2 || part[1] != want[0] {
			return false
		}
	default:
		if len(part) < len(want) || !slices.Equal(part[:len(want)], want) {
			return false
		}
	}
	for i := range r.Constraints {
		value, ok := d.Attributes[r.Constraints[i].Attribute]
		if !holds(&r.Constraints[i], value, ok) {
			return false
		}
	}
	return true
}

// holds reports whether a constraint holds for the value of an attribute.
func holds(k *constraint, value string, set bool) bool {
	list := k.Values
	if len(list) == 0 && k.Value != "" {
		for part := range strings.SplitSeq(k.Value, ",") {
			list = append(list, strings.TrimSpace(part))
		}
	}
	switch k.Operator {
	case "is_set":
		return set
	case "is_not_set":
		return !set
	case "!=":
		return !set || value != k.Value
	case "notin":
		return !set || !slices.Contains(list, value)
	case "distinct_hosts", "distinct_property":
		return true
	}
	if !set {
		return false
	}
	switch k.Operator {
	case "=":
		return value == k.Value
	case "in":
		return slices.Contains(list, value)
	case "regexp":
		matched, err := regexp.MatchString(k.Value, value)
		return err == nil && matched
	case "version":
		return compareVersions(value, strings.TrimSpace(strings.TrimPrefix(k.Value, ">="))) >= 0
	}
	order := compareValues(value, k.Value)
	return map[string]bool{"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[k.Operator]
}

// compareValues compares numbers by value, and everything else bytewise.
func compareValues(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	switch {
	case errX != nil || errY != nil:
		return strings.Compare(a, b)
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// compareVersions compares versions of up to three numbers. The checker supports the
// range ">= VERSION" only.
func compareVersions(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		m, n := 0, 0
		if i < len(x) {
			m, _ = strconv.Atoi(x[i])
		}
		if i < len(y) {
			n, _ = strconv.Atoi(y[i])
		}
		if m != n {
			return m - n
		}
	}
	return 0
}

// excludedFrom returns why a node does not admit a group regardless of other allocations,
// or "".
func excludedFrom(n *node, g *group) string {
	if !n.usable() {
		return "the node is not ready"
	}
	return infeasible(n, g)
}

// infeasible is excludedFrom regardless of the node's status.
func infeasible(n *node, g *group) string {
	dc, _ := n.attribute("node.datacenter")
	if len(g.job.Datacenters) > 0 && !slices.Contains(g.job.Datacenters, dc) {
		return "datacenter " + dc
	}
	for i := range g.Constraints {
		k := &g.Constraints[i]
		if value, ok := n.attribute(k.Attribute); !holds(k, value, ok) {
			return k.Attribute + " " + k.Operator + " " + k.Value
		}
	}
	for i := range n.Taints {
		if t := &n.Taints[i]; t.Effect != "PreferNoSchedule" && !tolerated(g, t) {
			return "taint " + t.Key
		}
	}
	return ""
}

func tolerated(g *group, t *taint) bool {
	return slices.ContainsFunc(g.Tolerations, func(o toleration) bool { return tolerates(&o, t) })
}

func tolerates(o *toleration, t *taint) bool {
	if o.Effect != "" && o.Effect != t.Effect {
		return false
	}
	if o.Operator == "Exists" {
		return o.Key == "" || o.Key == t.Key
	}
	return o.Key == t.Key && o.Value == t.Value
}
