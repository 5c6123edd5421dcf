package model

import (
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// EquivalenceClass returns a text that determines whether a node can accept one
// more instance of the group, and whether eviction could free the capacity: groups
// of one class fit on the same nodes. If the rules of a group read its own other
// allocations, it has a class of its own.
func (g *Group) EquivalenceClass() string { return g.classes.placement }

func (g *Group) describe() string {
	var b strings.Builder
	j := g.Job
	fmt.Fprintf(&b, "%d %d %q %t %v %v", j.Type, j.Priority, j.Policy, j.NeverPreempts, j.Datacenters, g.Ask.Ports)
	for _, d := range g.Ask.Dims {
		fmt.Fprintf(&b, " %d:%d", d, g.Ask.Vec[d])
	}
	for _, d := range g.drivers {
		fmt.Fprintf(&b, " run %q", d)
	}
	for i := range g.Tolerations {
		fmt.Fprintf(&b, " ~%q", g.Tolerations[i].String())
	}
	own := len(g.Labels)+len(g.Colocate)+len(g.Separate)+len(g.Spread) > 0
	for i := range g.Constraints {
		fmt.Fprintf(&b, " %q", g.Constraints[i].String())
		own = own || g.Constraints[i].Operator.CountsAllocations()
	}
	for i := range g.Devices {
		d := &g.Devices[i]
		fmt.Fprintf(&b, " %s*%d", d.ID, d.Count)
		for c := range d.Constraints {
			fmt.Fprintf(&b, "%q", d.Constraints[c].String())
		}
	}
	// The allocations of an updated job may have a lower priority than the job, and
	// are still not candidates.
	if own || j.ModifyIndex != j.CreateIndex {
		fmt.Fprintf(&b, " %q %q %q %d", j.Namespace, j.ID, g.Name, j.ModifyIndex)
	}
	return b.String()
}

// SeparationClass returns a text that determines separation: groups of a job with
// equal labels and separation terms are separated from the same allocations.
func (g *Group) SeparationClass() string { return g.classes.separation }

func (g *Group) describeApart() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q", g.Labels)
	for i := range g.Separate {
		fmt.Fprintf(&b, " %q %q", g.Separate[i].TopologyKey, g.Separate[i].Labels)
	}
	return b.String()
}

// NameHash returns a hash of the job's key and the group's name, which is the same
// for every version of a group.
func (g *Group) NameHash() uint64 { return g.nameHash }

func (g *Group) hashName() uint64 {
	h := xxhash.New()
	for _, part := range []string{g.Job.Namespace, g.Job.ID, g.Name} {
		_, _ = h.WriteString(part)
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}
