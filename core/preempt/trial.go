package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// trial is a node's room while victims are taken off and put back.
type trial struct {
	ask     *model.Ask
	choice  []int16
	node    *model.Node
	free    model.Vector
	ports   []uint16
	devices []int32
	// separated counts rows that exclude the preemptor and are still there.
	separated int

	availCPU, availMemory int64
}

// reset starts from the room as it is. Ports and devices are copied only when
// the ask looks at them.
func (t *trial) reset(p *place, ask *model.Ask, dims int) {
	t.ask, t.choice, t.node, t.separated = ask, p.choice, p.node, p.separated
	t.availCPU, t.availMemory = p.availCPU, p.availMemory
	for d := range dims {
		t.free[d] = p.room.Free[d*p.room.Stride]
	}
	if len(ask.Ports) > 0 {
		t.ports = append(t.ports[:0], p.room.Ports...)
	}
	if len(ask.Devices) > 0 {
		t.devices = append(t.devices[:0], p.room.Devices...)
	}
}

// fits is whether the ask fits now.
func (t *trial) fits() bool {
	if t.separated > 0 {
		return false
	}
	room := model.Room{Free: t.free[:], Stride: 1, Ports: t.ports, Devices: t.devices}
	return model.Fits(room, t.ask, t.choice).Kind == model.LackNothing
}

// remove takes a row off the node; marks say why it must leave.
func (t *trial) remove(row *state.Row, marks uint8) {
	held := &row.Group.Ask
	for _, d := range held.Dims {
		t.free[d] += held.Vec[d]
	}
	if marks&sdk.MustLeaveSeparation != 0 {
		t.separated--
	}
	if len(t.ask.Ports) > 0 {
		for _, p := range held.Ports {
			if at, ok := slices.BinarySearch(t.ports, p); ok {
				t.ports = slices.Delete(t.ports, at, at+1)
			}
		}
	}
	if len(t.ask.Devices) > 0 {
		t.addDevices(row.Alloc, 1)
	}
}

// restore puts a row back.
func (t *trial) restore(row *state.Row, marks uint8) {
	held := &row.Group.Ask
	for _, d := range held.Dims {
		t.free[d] -= held.Vec[d]
	}
	if marks&sdk.MustLeaveSeparation != 0 {
		t.separated++
	}
	if len(t.ask.Ports) > 0 {
		for _, p := range held.Ports {
			if at, ok := slices.BinarySearch(t.ports, p); !ok {
				t.ports = slices.Insert(t.ports, at, p)
			}
		}
	}
	if len(t.ask.Devices) > 0 {
		t.addDevices(row.Alloc, -1)
	}
}

func (t *trial) addDevices(a *model.Allocation, sign int32) {
	for _, u := range a.Devices {
		if at := t.node.DevicePosition(u.ID); at >= 0 {
			t.devices[at] += sign * u.Count
		}
	}
}
