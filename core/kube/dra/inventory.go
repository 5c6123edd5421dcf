package dra

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// Types of device groups, the second part of their IDs.
const (
	typeDevice    = "device"
	typePartition = "partition"
)

// An Inventory holds the devices of all nodes as device groups of the model.
type Inventory struct {
	// Findings counts what the groups do not express, by subject.
	Findings map[string]int

	nodes       map[string][]model.Device
	places      map[[3]string]place // by driver, pool and name of the device
	definitions map[string]*definition
}

// A place is the group of a device.
type place struct {
	group string
	units int32 // of the group that the device is
}

// New returns the inventory of slices, for the definitions of all classes, claims and
// templates.
func New(o *Objects) *Inventory {
	v := &Inventory{
		Findings: map[string]int{}, nodes: map[string][]model.Device{}, places: map[[3]string]place{},
		definitions: definitionsOf(o),
	}
	names := slices.Sorted(maps.Keys(v.definitions))
	pools := poolsOf(o.Slices)
	for _, key := range slices.SortedFunc(maps.Keys(pools), func(a, b poolKey) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.pool, b.pool))
	}) {
		v.addPool(key, pools[key], names)
	}
	for node := range v.nodes {
		slices.SortFunc(v.nodes[node], func(a, b model.Device) int { return cmp.Compare(a.ID, b.ID) })
	}
	return v
}

// Devices returns the device groups of a node. The caller must not modify them.
func (v *Inventory) Devices(node string) []model.Device { return v.nodes[node] }

// Covers reports whether the inventory was built for all definitions of a claim.
func (v *Inventory) Covers(s *ClaimSpec) bool {
	for i := range s.Devices.Requests {
		for _, r := range s.Devices.Requests[i].alternatives() {
			if v.definitions[r.definition()] == nil {
				return false
			}
		}
	}
	return true
}

type poolKey struct{ driver, pool string }

// A pool is the devices of the latest generation of a pool.
type pool struct {
	generation int64
	devices    []pooledDevice
	counters   map[string]map[string]Amount // by set
}

type pooledDevice struct {
	*Device
	node string
}

// poolsOf merges slices into pools. Slices of older generations are outdated.
func poolsOf(list []*Slice) map[poolKey]*pool {
	pools := map[poolKey]*pool{}
	for _, s := range slices.SortedFunc(slices.Values(list), func(a, b *Slice) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) }) {
		key := poolKey{s.Spec.Driver, s.Spec.Pool.Name}
		p := pools[key]
		if p == nil || s.Spec.Pool.Generation > p.generation {
			p = &pool{generation: s.Spec.Pool.Generation, counters: map[string]map[string]Amount{}}
			pools[key] = p
		}
		if s.Spec.Pool.Generation < p.generation {
			continue
		}
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			p.devices = append(p.devices, pooledDevice{d, cmp.Or(d.NodeName, s.Spec.NodeName)})
		}
		for _, set := range s.Spec.SharedCounters {
			p.counters[set.Name] = set.Counters
		}
	}
	return pools
}

// addPool adds the devices of a pool to the groups of their nodes.
func (v *Inventory) addPool(key poolKey, p *pool, names []string) {
	plain, sets := map[string]map[string][]*Device{}, map[string]map[string][]*Device{} // by node, then by definitions or by counter set
	marks := map[*Device][]string{}
	for _, d := range p.devices {
		fields := d.fields(key.driver)
		for _, name := range names {
			if v.definitions[name].selects(fields) {
				marks[d.Device] = append(marks[d.Device], name)
			}
		}
		switch {
		case len(marks[d.Device]) == 0: // no claim can request it
		case d.node == "":
			v.Findings["devices that belong to several nodes"]++
		case d.isTainted():
			v.Findings["devices with taints"]++
		case len(d.ConsumesCounters) == 1:
			appendTo(sets, d.node, d.ConsumesCounters[0].CounterSet, d.Device)
		default:
			if len(d.ConsumesCounters) > 1 {
				v.Findings["devices that consume several counter sets"]++
			}
			appendTo(plain, d.node, strings.Join(marks[d.Device], "\n"), d.Device)
		}
	}
	for node, groups := range plain {
		for _, definitions := range slices.Sorted(maps.Keys(groups)) {
			v.addGroup(key, node, groups[definitions], strings.Split(definitions, "\n"))
		}
	}
	for node, groups := range sets {
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			v.addPartitions(key, node, name, groups[name], p.counters[name], marks)
		}
	}
}

func appendTo(to map[string]map[string][]*Device, node, key string, d *Device) {
	if to[node] == nil {
		to[node] = map[string][]*Device{}
	}
	to[node][key] = append(to[node][key], d)
}

func (d *Device) isTainted() bool {
	return slices.ContainsFunc(d.Taints, func(t Taint) bool { return t.Effect == "NoSchedule" || t.Effect == "NoExecute" })
}

// addGroup adds devices that the same definitions select.
func (v *Inventory) addGroup(key poolKey, node string, devices []*Device, definitions []string) {
	group := model.Device{ID: v.unusedID(node, key.driver, typeDevice, ""), Count: int32(len(devices)), Attributes: map[string]string{}}
	for _, name := range definitions {
		group.Attributes[attribute(name)] = "1"
	}
	v.nodes[node] = append(v.nodes[node], group)
	for _, d := range devices {
		v.places[[3]string{key.driver, key.pool, d.Name}] = place{group.ID, 1}
	}
}

// unusedID returns an ID that no other group of the node has: by name, or by a number.
func (v *Inventory) unusedID(node, driver, kind, name string) string {
	prefix := driver + "/" + kind + "/"
	for i := 1; ; i++ {
		id := prefix + name
		switch {
		case name == "":
			id = prefix + strconv.Itoa(i)
		case i > 1:
			id += "-" + strconv.Itoa(i)
		}
		if !slices.ContainsFunc(v.nodes[node], func(d model.Device) bool { return d.ID == id }) {
			return id
		}
	}
}

// addPartitions adds the partitions of one counter set as units of one group. The units
// are those of the counter that every partition consumes, and of which they consume the
// largest share: two partitions fit together if their units do. Positions of partitions
// within a device are not expressed.
func (v *Inventory) addPartitions(key poolKey, node, set string, devices []*Device, counters map[string]Amount, marks map[*Device][]string) {
	counter, unit := dominantCounter(devices, counters)
	if counter == "" {
		v.Findings["partitions without a counter in common"] += len(devices)
		return
	}
	capacity, _ := counters[counter].Value.amount()
	group := model.Device{ID: v.unusedID(node, key.driver, typePartition, set), Count: int32(min(capacity/unit, 1<<30)), Attributes: map[string]string{}}
	for _, d := range devices {
		n, _ := d.ConsumesCounters[0].Counters[counter].Value.amount()
		units := int32(min(n/unit, 1<<30))
		v.places[[3]string{key.driver, key.pool, d.Name}] = place{group.ID, units}
		for _, name := range marks[d] {
			text := strconv.Itoa(int(units))
			if other, ok := group.Attributes[attribute(name)]; ok && other != text {
				text = differs
			}
			group.Attributes[attribute(name)] = text
		}
	}
	v.nodes[node] = append(v.nodes[node], group)
}

// dominantCounter returns the counter that limits the partitions, and the greatest common
// divisor of its amounts. The counter is "" if there is none.
func dominantCounter(devices []*Device, counters map[string]Amount) (best string, unit int64) {
	var most float64
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		capacity, ok := counters[name].Value.amount()
		share, divisor := 0.0, int64(0)
		for _, d := range devices {
			n, valid := d.ConsumesCounters[0].Counters[name].Value.amount()
			if !valid || n == 0 {
				ok = false
				break
			}
			share += float64(n) / float64(max(capacity, 1))
			divisor = gcd(n, divisor)
		}
		if ok && share > most {
			best, unit, most = name, divisor, share
		}
	}
	return best, unit
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
