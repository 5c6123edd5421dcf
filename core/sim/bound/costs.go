package bound

import (
	"math/bits"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// Costs converts lost work to one number: the metric wastedWork with every resource as a
// share of the cluster, in nanoseconds of the whole cluster. It is the wasted work of the
// metric goodput while all nodes are ready.
type Costs struct {
	dims    int
	cluster model.Vector
	devices map[string]int64 // number in the cluster, by kind (vendor/type)
}

// NewCosts returns the costs in the cluster of a snapshot.
func NewCosts(snap *state.Snapshot) *Costs {
	c := &Costs{dims: snap.Dims().Len(), devices: map[string]int64{}}
	for n := range snap.Nodes() {
		for d := range c.dims {
			c.cluster[d] += max(0, n.Avail[d])
		}
		for i := range n.Devices {
			c.devices[deviceKind(n.Devices[i].ID)] += int64(n.Devices[i].Count)
		}
	}
	return c
}

// deviceKind returns the vendor/type part of vendor/type/model.
func deviceKind(id string) string {
	if parts := strings.SplitN(id, "/", 3); len(parts) == 3 {
		return parts[0] + "/" + parts[1]
	}
	return id
}

// Of returns the cost of evicting an allocation at a time in Unix nanoseconds.
func (c *Costs) Of(a *model.Allocation, now int64) int64 {
	return c.ofWork(a, a.Group.LostWork(a.Age(now)))
}

// ofWork returns the cost of losing nanoseconds of an allocation's work, rounded down.
func (c *Costs) ofWork(a *model.Allocation, lost int64) (cost int64) {
	for _, d := range a.Group.Ask.Dims {
		if int(d) < c.dims {
			cost += share(a.Group.Ask.Vec[d], c.cluster[d], lost)
		}
	}
	for _, u := range a.Devices {
		cost += share(int64(u.Count), c.devices[deviceKind(u.ID)], lost)
	}
	return cost
}

// share returns part/whole of an amount. A part above the whole counts as the whole, and
// a resource that the cluster lacks as nothing.
func share(part, whole, amount int64) int64 {
	if whole <= 0 || part <= 0 || amount <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(min(part, whole)), uint64(amount))
	quotient, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(quotient)
}
