package fit

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// A Check answers whether a group fits on a node while allocations are removed and
// restored. It counts amounts incrementally: as far as amounts go, the group fits
// while no requested dimension is short. Ports and devices go through model.Fits.
type Check struct {
	ask     *model.Ask
	dims    *Dims
	choice  []int16 // device group for each device request
	chunk   *state.Chunk
	index   int32 // of the node in chunk
	simple  bool  // the request contains neither ports nor devices
	short   int   // how many requested dimensions are short
	deficit []int64

	free    model.Vector // scratch of fitsFully
	ports   []uint16
	devices []int32
	// separated counts the rows that the group must not run next to and that are still
	// there, those of remote included.
	separated int32
	remote    []*state.Row
}

// A Setup is the state of a node before anything is removed.
type Setup struct {
	Ask     *model.Ask
	Dims    *Dims
	Deficit []int64 // copied
	Choice  []int16
	// Separated counts the rows that the group must not run next to.
	Separated int32
	// Remote are rows of other nodes that must leave as well, ascending by priority.
	Remote []*state.Row
}

// Reset starts from the state of a node. Ports and devices are copied only if the
// request contains some. The node is not part of the setup, as pointers in the setup
// escape.
func (c *Check) Reset(n *Node, s *Setup) {
	c.ask, c.dims, c.choice, c.chunk, c.index = s.Ask, s.Dims, s.Choice, n.Chunk, n.Index
	c.separated, c.remote = s.Separated, s.Remote
	c.deficit = append(c.deficit[:0], s.Deficit...)
	c.short = c.dims.CountShort(c.deficit)
	c.simple = len(s.Ask.Ports)+len(s.Ask.Devices) == 0
	if !c.simple {
		capacity := n.Capacity()
		c.ports, c.devices = append(c.ports[:0], capacity.Ports...), append(c.devices[:0], capacity.Devices...)
	}
}

// Fits reports whether the group fits now.
func (c *Check) Fits() bool {
	return c.separated <= 0 && c.short <= 0 && (c.simple || c.fitsFully())
}

// fitsFully checks ports and devices, too.
func (c *Check) fitsFully() bool {
	for i, d := range c.ask.Dims {
		c.free[d] = c.ask.Vec[d] - c.deficit[i]
	}
	capacity := model.FreeCapacity{Free: c.free[:], Stride: 1, Ports: c.ports, Devices: c.devices}
	return model.Fits(capacity, c.ask, c.choice).Kind == model.ShortageNone
}

// Score returns the node's rank with the group placed.
func (c *Check) Score(algorithm model.Algorithm) float64 {
	return Score(algorithm, c.chunk.Avail(model.CPU)[c.index], c.chunk.Avail(model.Memory)[c.index],
		-c.deficit[c.dims.cpu], -c.deficit[c.dims.memory])
}

// Remove takes a row off the node. The bits of mustLeave are the SDK's reasons for
// which the row must leave in any case.
func (c *Check) Remove(row *state.Row, mustLeave uint8) {
	if len(c.remote) > 0 && slices.Contains(c.remote, row) {
		c.separated-- // it frees nothing on this node
		return
	}
	held := &row.Group.Ask
	c.short -= c.dims.Release(c.deficit, &held.Vec)
	if mustLeave&sdk.MustLeaveSeparation != 0 {
		c.separated--
	}
	if c.simple {
		return
	}
	if len(c.ask.Ports) > 0 {
		for _, p := range held.Ports {
			if at, ok := slices.BinarySearch(c.ports, p); ok {
				c.ports = slices.Delete(c.ports, at, at+1)
			}
		}
	}
	if len(c.ask.Devices) > 0 {
		c.addDevices(row.Alloc, 1)
	}
}

// Restore undoes Remove.
func (c *Check) Restore(row *state.Row, mustLeave uint8) {
	if len(c.remote) > 0 && slices.Contains(c.remote, row) {
		c.separated++
		return
	}
	held := &row.Group.Ask
	c.short += c.dims.Occupy(c.deficit, &held.Vec)
	if mustLeave&sdk.MustLeaveSeparation != 0 {
		c.separated++
	}
	if c.simple {
		return
	}
	if len(c.ask.Ports) > 0 {
		for _, p := range held.Ports {
			if at, ok := slices.BinarySearch(c.ports, p); !ok {
				c.ports = slices.Insert(c.ports, at, p)
			}
		}
	}
	if len(c.ask.Devices) > 0 {
		c.addDevices(row.Alloc, -1)
	}
}

// addDevices adds an allocation's devices to the free ones, or subtracts them if sign
// is -1.
func (c *Check) addDevices(a *model.Allocation, sign int32) {
	for _, u := range a.Devices {
		if at := c.chunk.Node(int(c.index)).DevicePosition(u.ID); at >= 0 {
			c.devices[at] += sign * u.Count
		}
	}
}
