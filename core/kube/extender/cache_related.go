package extender

import (
	"maps"
	"reflect"
	"slices"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/dra"
)

// A relatedObjects holds the objects that pods refer to: pod groups and resource claims, with the
// devices that claims request. The translation of a pod depends on them.
type relatedObjects struct {
	podGroups map[string]*kube.PodGroup
	claims    map[string]*dra.Claim
	// The translation of all nodes depends on these, which rarely change.
	slices    map[string]*dra.Slice
	classes   map[string]*dra.Class
	templates map[string]*dra.Template
	// users holds the keys of the pods that refer to an object, by "group KEY" or
	// "claim KEY".
	users map[string]map[string]bool
}

func newRelatedObjects() relatedObjects {
	return relatedObjects{
		podGroups: map[string]*kube.PodGroup{}, claims: map[string]*dra.Claim{}, slices: map[string]*dra.Slice{},
		classes: map[string]*dra.Class{}, templates: map[string]*dra.Template{}, users: map[string]map[string]bool{},
	}
}

const (
	toGroup = "group "
	toClaim = "claim "
)

// references returns the objects that a pod refers to, in the form of the keys of users.
func references(p *kube.Pod) (list []string) {
	if g := p.Group(); g != "" {
		list = append(list, toGroup+g)
	}
	for _, c := range p.ClaimKeys() {
		list = append(list, toClaim+c)
	}
	return list
}

func (o *relatedObjects) addUser(k string, p *kube.Pod) {
	for _, to := range references(p) {
		if o.users[to] == nil {
			o.users[to] = map[string]bool{}
		}
		o.users[to][k] = true
	}
}

func (o *relatedObjects) removeUser(k string, p *kube.Pod) {
	for _, to := range references(p) {
		if delete(o.users[to], k); len(o.users[to]) == 0 {
			delete(o.users, to)
		}
	}
}

// feedRelated stores the objects of a dump. The caller must hold mu.
func (c *cache) feedRelated(d *kube.Dump) {
	for _, g := range d.PodGroups {
		if old := c.related.podGroups[g.Key()]; old == nil || !reflect.DeepEqual(old, g) {
			c.related.podGroups[g.Key()] = g
			c.relatedChanged(toGroup+g.Key(), change{podGroup: g, exists: true})
		}
	}
	for _, claim := range d.Devices.Claims {
		k := claim.Metadata.Key()
		if old := c.related.claims[k]; old == nil || !reflect.DeepEqual(old, claim) {
			c.related.claims[k] = claim
			c.relatedChanged(toClaim+k, change{claim: claim, exists: true})
		}
	}
	changed := false
	for _, s := range d.Devices.Slices {
		changed = put(c.related.slices, s.Metadata.Name, s) || changed
	}
	for _, k := range d.Devices.Classes {
		changed = put(c.related.classes, k.Metadata.Name, k) || changed
	}
	for _, t := range d.Devices.Templates {
		changed = put(c.related.templates, t.Metadata.Key(), t) || changed
	}
	if changed {
		c.log.restart() // the devices of all nodes are translated again
	}
}

// put stores an object and reports whether it differs from the previous version.
func put[T any](in map[string]*T, name string, o *T) bool {
	if old := in[name]; old != nil && reflect.DeepEqual(old, o) {
		return false
	}
	in[name] = o
	return true
}

// relatedChanged records a change together with the pods on nodes that it affects. The
// caller must hold mu.
func (c *cache) relatedChanged(to string, n change) {
	c.log.add(n)
	for _, k := range slices.Sorted(maps.Keys(c.related.users[to])) {
		c.log.podAdded(c.pods[k])
	}
}

// removeRelated removes an object that the feed reports as deleted. The caller must hold
// mu.
func (c *cache) removeRelated(deleted any) {
	switch o := deleted.(type) {
	case *kube.PodGroup:
		if last := c.related.podGroups[o.Key()]; last != nil {
			delete(c.related.podGroups, o.Key())
			c.relatedChanged(toGroup+o.Key(), change{podGroup: last})
		}
	case *dra.Claim:
		if last := c.related.claims[o.Metadata.Key()]; last != nil {
			delete(c.related.claims, o.Metadata.Key())
			c.relatedChanged(toClaim+o.Metadata.Key(), change{claim: last})
		}
	case *dra.Slice:
		delete(c.related.slices, o.Metadata.Name)
		c.log.restart()
	case *dra.Class:
		delete(c.related.classes, o.Metadata.Name)
		c.log.restart()
	case *dra.Template:
		delete(c.related.templates, o.Metadata.Key())
		c.log.restart()
	}
}

// retainRelated removes all objects that a full dump does not contain. The caller must
// hold mu.
func (c *cache) retainRelated(d *kube.Dump) {
	keep := map[any]bool{}
	for _, g := range d.PodGroups {
		keep[toGroup+g.Key()] = true
	}
	for _, claim := range d.Devices.Claims {
		keep[toClaim+claim.Metadata.Key()] = true
	}
	for _, s := range d.Devices.Slices {
		keep["slice "+s.Metadata.Name] = true
	}
	for _, k := range d.Devices.Classes {
		keep["class "+k.Metadata.Name] = true
	}
	for _, t := range d.Devices.Templates {
		keep["template "+t.Metadata.Key()] = true
	}
	for k, g := range c.related.podGroups {
		if !keep[toGroup+k] {
			c.removeRelated(g)
		}
	}
	for k, claim := range c.related.claims {
		if !keep[toClaim+k] {
			c.removeRelated(claim)
		}
	}
	for name, s := range c.related.slices {
		if !keep["slice "+name] {
			c.removeRelated(s)
		}
	}
	for name, k := range c.related.classes {
		if !keep["class "+name] {
			c.removeRelated(k)
		}
	}
	for k, t := range c.related.templates {
		if !keep["template "+k] {
			c.removeRelated(t)
		}
	}
}

// addTo adds the objects to a dump.
func (o *relatedObjects) addTo(d *kube.Dump) {
	d.PodGroups = sortedValues(o.podGroups)
	d.Devices = dra.Objects{Slices: sortedValues(o.slices), Classes: sortedValues(o.classes), Claims: sortedValues(o.claims), Templates: sortedValues(o.templates)}
}

func sortedValues[T any](m map[string]*T) (list []*T) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[k])
	}
	return list
}
