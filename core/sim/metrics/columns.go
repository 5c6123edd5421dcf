package metrics

import (
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// columns names what is measured: the resources that some node has, then the
// kinds of devices, vendor/type. They are fixed when the run begins, because
// capacity only comes from the nodes that it begins with.
type columns struct {
	names  []string
	dim    []int // of names: the dimension, or -1 for a kind of device
	byDim  [model.MaxDimensions]int
	device map[string]int // device group id (vendor/type/model) -> column
	// asked is what a request for a type or vendor/type counts as; the first
	// column that serves it, so that asks can be compared before any is placed.
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

// deviceKind is vendor/type of vendor/type/model.
func deviceKind(id string) string {
	parts := strings.SplitN(id, "/", 3)
	if len(parts) < 3 {
		return id
	}
	return parts[0] + "/" + parts[1]
}

func (c *columns) len() int { return len(c.names) }

// resources lays a vector out by column, without devices.
func (c *columns) resources(out []int64, v *model.Vector) {
	for i, d := range c.dim {
		out[i] = 0
		if d >= 0 {
			out[i] = v[d]
		}
	}
}

// capacity is what a node offers.
func (c *columns) capacity(out []int64, n *model.Node) {
	c.resources(out, &n.Avail)
	for i := range n.Devices {
		if at, ok := c.device[n.Devices[i].ID]; ok {
			out[at] += int64(n.Devices[i].Count)
		}
	}
}

// ask is what an instance of g takes before it is known which device group
// serves it.
func (c *columns) ask(out []int64, g *model.Group) {
	c.resources(out, &g.Ask.Vec)
	for i := range g.Ask.Devices {
		if at := c.requested(g.Ask.Devices[i].ID); at >= 0 {
			out[at] += int64(g.Ask.Devices[i].Count)
		}
	}
}

// requested is the first column that may serve a device request, or -1.
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

// typicalAsk is the median ask of each column over all instances of all jobs,
// a system job counting one instance per node. It is the yardstick of
// fragmentation, and known before anything runs, so that every policy is
// measured with the same one.
func (c *columns) typicalAsk(jobs []*model.Job, nodes int) []int64 {
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
