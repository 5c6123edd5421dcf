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

// dependsOnOtherNodes reports whether the feasibility of a node for the pod depends on other
// nodes, by its own rules or by those of its pod group.
func dependsOnOtherNodes(c *cache, p *kube.Pod) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	g := c.related.podGroups[p.Group()]
	return p.DependsOnOtherNodes() || g != nil && g.DependsOnOtherNodes()
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

// feed stores the objects of a dump, and reports each change of a pod group or claim. It
// returns whether the devices of all nodes must be translated again.
func (o *relatedObjects) feed(d *kube.Dump, changed func(to string, n change)) (restart bool) {
	for _, g := range d.PodGroups {
		if put(o.podGroups, g.Key(), g) {
			changed(toGroup+g.Key(), change{podGroup: g, exists: true})
		}
	}
	for _, claim := range d.Devices.Claims {
		if k := claim.Metadata.Key(); put(o.claims, k, claim) {
			changed(toClaim+k, change{claim: claim, exists: true})
		}
	}
	for _, s := range d.Devices.Slices {
		restart = put(o.slices, s.Metadata.Name, s) || restart
	}
	for _, k := range d.Devices.Classes {
		restart = put(o.classes, k.Metadata.Name, k) || restart
	}
	for _, t := range d.Devices.Templates {
		restart = put(o.templates, t.Metadata.Key(), t) || restart
	}
	return restart
}

// put stores an object and reports whether it differs from the previous version.
func put[T any](in map[string]*T, name string, o *T) bool {
	if old := in[name]; old != nil && reflect.DeepEqual(old, o) {
		return false
	}
	in[name] = o
	return true
}

// changeRecorder returns a function that records a change of a related object together with
// the pods on nodes that it affects. The caller of the function must hold mu.
func changeRecorder(c *cache) func(to string, n change) {
	return func(to string, n change) {
		c.log.add(n)
		for _, k := range slices.Sorted(maps.Keys(c.related.users[to])) {
			c.log.podAdded(c.pods[k])
		}
	}
}

// remove removes an object that the feed reports as deleted. It reports and returns what
// feed does.
func (o *relatedObjects) remove(deleted any, changed func(to string, n change)) (restart bool) {
	switch d := deleted.(type) {
	case *kube.PodGroup:
		if last := o.podGroups[d.Key()]; last != nil {
			delete(o.podGroups, d.Key())
			changed(toGroup+d.Key(), change{podGroup: last})
		}
	case *dra.Claim:
		if last := o.claims[d.Metadata.Key()]; last != nil {
			delete(o.claims, d.Metadata.Key())
			changed(toClaim+d.Metadata.Key(), change{claim: last})
		}
	case *dra.Slice:
		delete(o.slices, d.Metadata.Name)
		return true
	case *dra.Class:
		delete(o.classes, d.Metadata.Name)
		return true
	case *dra.Template:
		delete(o.templates, d.Metadata.Key())
		return true
	}
	return false
}

// missing returns the objects that a full dump does not contain.
func (o *relatedObjects) missing(d *kube.Dump) (list []any) {
	list = appendMissing(list, o.podGroups, d.PodGroups, (*kube.PodGroup).Key)
	list = appendMissing(list, o.claims, d.Devices.Claims, func(c *dra.Claim) string { return c.Metadata.Key() })
	list = appendMissing(list, o.slices, d.Devices.Slices, func(s *dra.Slice) string { return s.Metadata.Name })
	list = appendMissing(list, o.classes, d.Devices.Classes, func(k *dra.Class) string { return k.Metadata.Name })
	return appendMissing(list, o.templates, d.Devices.Templates, func(t *dra.Template) string { return t.Metadata.Key() })
}

// appendMissing appends the stored objects that are not in a dump.
func appendMissing[T any](list []any, stored map[string]*T, dump []*T, key func(*T) string) []any {
	present := map[string]bool{}
	for _, o := range dump {
		present[key(o)] = true
	}
	for _, k := range slices.Sorted(maps.Keys(stored)) {
		if !present[k] {
			list = append(list, stored[k])
		}
	}
	return list
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
