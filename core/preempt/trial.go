package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// trial is a node's room while victims are taken off and put back. Amounts are
// counted as they change: the ask fits, as far as they go, while none is short.
// What they do not decide, Fits does.
type trial struct {
	ask    *model.Ask
	choice []int16
	chunk  *state.Chunk
	i      int32        // in chunk
	plain  bool         // amounts alone decide
	free   model.Vector // of the dimensions asked
	short  int          // how many of them do not cover the ask

	cpu, memory int64 // free, for the rank

	ports   []uint16
	devices []int32
	// separated counts rows that exclude the preemptor and are still there.
	separated int32
}

// reset starts from the room as it is. Ports and devices are copied only when
// the ask looks at them.
func (t *trial) reset(p *place, ask *model.Ask) {
	t.ask, t.choice, t.chunk, t.i = ask, p.choice, p.chunk, p.i
	t.separated, t.short = p.separated, 0
	for _, d := range ask.Dims {
		t.free[d] = p.free(int(d))
		if t.free[d] < ask.Vec[d] {
			t.short++
		}
	}
	t.cpu, t.memory = p.free(model.CPU), p.free(model.Memory)
	t.plain = len(ask.Ports)+len(ask.Devices) == 0
	if !t.plain {
		room := p.room()
		t.ports, t.devices = append(t.ports[:0], room.Ports...), append(t.devices[:0], room.Devices...)
	}
}

// fits is whether the ask fits now.
func (t *trial) fits() bool {
	if t.separated > 0 || t.short > 0 {
		return false
	}
	if t.plain {
		return true
	}
	room := model.Room{Free: t.free[:], Stride: 1, Ports: t.ports, Devices: t.devices}
	return model.Fits(room, t.ask, t.choice).Kind == model.LackNothing
}

// remove takes a row off the node; marks say why it must leave.
func (t *trial) remove(row *state.Row, marks uint8) {
	held := &row.Group.Ask
	for _, d := range t.ask.Dims {
		before, need := t.free[d], t.ask.Vec[d]
		t.free[d] = before + held.Vec[d]
		if before < need && t.free[d] >= need {
			t.short--
		}
	}
	t.cpu, t.memory = t.cpu+held.Vec[model.CPU], t.memory+held.Vec[model.Memory]
	if marks&sdk.MustLeaveSeparation != 0 {
		t.separated--
	}
	if t.plain {
		return
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
	for _, d := range t.ask.Dims {
		before, need := t.free[d], t.ask.Vec[d]
		t.free[d] = before - held.Vec[d]
		if before >= need && t.free[d] < need {
			t.short++
		}
	}
	t.cpu, t.memory = t.cpu-held.Vec[model.CPU], t.memory-held.Vec[model.Memory]
	if marks&sdk.MustLeaveSeparation != 0 {
		t.separated++
	}
	if t.plain {
		return
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
		if at := t.chunk.Node(int(t.i)).DevicePosition(u.ID); at >= 0 {
			t.devices[at] += sign * u.Count
		}
	}
}
