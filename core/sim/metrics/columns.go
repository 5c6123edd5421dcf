package metrics

import (
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// columns names the measured quantities: the resources that at least one node offers,
// then the device kinds (vendor/type). They are fixed at the start of the run,
// because all capacity comes from the initial nodes.
type columns struct {
	names  []string
	dim    []int // by column: the dimension, or -1 for a device kind
	byDim  [model.MaxDimensions]int
	device map[string]int // device group ID (vendor/type/model) -> column
	// kinds lists the device kinds. A request for a type or vendor/type counts for
	// the first matching kind, so that requests can be compared before any is placed.
	kinds []string
}

func newColumns(dims *model.Dimensions, nodes []*model.Node) *columns {
	c := &columns{device: map[string]int{}}
	for d := range c.byDim {
		c.byDim[d] = -1
	}
	for d := range dims.Len() {
		if slices.ContainsFunc(nodes, func(n *model.Node) bool { return n.Avail[d] > 0 }) {
			c.byDim[d] = len(c.names)
			c.names, c.dim = append(c.names, dims.Name(d)), append(c.dim, d)
		}
	}
	var kinds []string
	for _, n := range nodes {
		for i := range n.Devices {
			if _, seen := c.device[n.Devices[i].ID]; !seen {
				c.device[n.Devices[i].ID] = -1
				kinds = append(kinds, n.Devices[i].ID)
			}
		}
	}
	slices.Sort(kinds)
	for _, id := range kinds {
		kind := deviceKind(id)
		at := slices.Index(c.names, kind)
		if at < 0 {
			at = len(c.names)
			c.names, c.dim = append(c.names, kind), append(c.dim, -1)
			c.kinds = append(c.kinds, kind)
		}
		c.device[id] = at
	}
	return c
}

// deviceKind returns the vendor/type part of vendor/type/model.
func deviceKind(id string) string {
	parts := strings.SplitN(id, "/", 3)
	if len(parts) < 3 {
		return id
	}
	return parts[0] + "/" + parts[1]
}

func (c *columns) len() int { return len(c.names) }

// resources converts a vector to columns, without devices.
func (c *columns) resources(out []int64, v *model.Vector) {
	for i, d := range c.dim {
		out[i] = 0
		if d >= 0 {
			out[i] = v[d]
		}
	}
}

// capacity writes the capacity of a node by column.
func (c *columns) capacity(out []int64, n *model.Node) {
	c.resources(out, &n.Avail)
	for i := range n.Devices {
		if at, ok := c.device[n.Devices[i].ID]; ok {
			out[at] += int64(n.Devices[i].Count)
		}
	}
}

// ask writes the request of one instance of g by column, before a device group is
// selected for it.
func (c *columns) ask(out []int64, g *model.Group) {
	c.resources(out, &g.Ask.Vec)
	for i := range g.Ask.Devices {
		if at := c.requested(g.Ask.Devices[i].ID); at >= 0 {
			out[at] += int64(g.Ask.Devices[i].Count)
		}
	}
}

// requested returns the first column that can satisfy a device request, or -1.
func (c *columns) requested(id string) int {
	if at, ok := c.device[id]; ok {
		return at
	}
	for _, kind := range c.kinds {
		if kind == id || strings.HasSuffix(kind, "/"+id) {
			return slices.Index(c.names, kind)
		}
	}
	return -1
}

// typicalRequest returns the median request per column over all instances of all
// jobs. A system job counts one instance per node. Fragmentation is measured against
// it. It depends on the scenario only, so every policy is measured with the same
// value.
func (c *columns) typicalRequest(jobs []*model.Job, nodes int) []int64 {
	type weighted struct{ amount, count int64 }
	asks := make([][]weighted, c.len())
	row := make([]int64, c.len())
	var total int64
	for _, j := range jobs {
		for _, g := range j.Groups {
			count := int64(g.Count)
			if j.Type.PerNode() {
				count *= int64(nodes)
			}
			if count <= 0 {
				continue
			}
			total += count
			c.ask(row, g)
			for i, amount := range row {
				asks[i] = append(asks[i], weighted{amount, count})
			}
		}
	}
	median := make([]int64, c.len())
	for i := range asks {
		slices.SortFunc(asks[i], func(a, b weighted) int { return int(min(max(a.amount-b.amount, -1), 1)) })
		var below int64
		for _, w := range asks[i] {
			below += w.count
			if 2*below >= total {
				median[i] = w.amount
				break
			}
		}
	}
	return median
}
