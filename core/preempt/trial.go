package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// watched are the dimensions that a search follows: those asked, and those that
// rank a node.
type watched struct {
	dims        []uint8
	asked       int // the first so many are asked
	cpu, memory int // where in dims
	others      []uint8
}

func (w *watched) reset(ask *model.Ask, dims int) {
	w.dims, w.asked = append(w.dims[:0], ask.Dims...), len(ask.Dims)
	w.cpu, w.memory = w.position(model.CPU), w.position(model.Memory)
	w.others = w.others[:0]
	for d := range uint8(dims) {
		if !slices.Contains(w.dims, d) {
			w.others = append(w.others, d)
		}
	}
}

func (w *watched) position(d uint8) int {
	at := slices.Index(w.dims, d)
	if at < 0 {
		at, w.dims = len(w.dims), append(w.dims, d)
	}
	return at
}

// appendLacks appends what a place lacks of the ask, by watched dimension; what it
// has to spare is below zero.
func (w *watched) appendLacks(lacks []int64, p *place, ask *model.Ask) []int64 {
	for _, d := range w.dims {
		lacks = append(lacks, ask.Vec[d]-p.free(int(d)))
	}
	return lacks
}

// trial is a node's room while victims are taken off and put back. Amounts are
// counted as they change: the ask fits, as far as they go, while none is short.
// What they do not decide, Fits does.
type trial struct {
	ask    *model.Ask
	watch  *watched
	choice []int16
	chunk  *state.Chunk
	i      int32 // in chunk
	plain  bool  // amounts alone decide
	short  int   // how many dimensions asked lack something
	lacks  []int64

	free    model.Vector // scratch of fits
	ports   []uint16
	devices []int32
	// separated counts rows that exclude the preemptor and are still there, those
	// elsewhere among them.
	separated int32
	elsewhere []*state.Row
}

// reset starts from the room as it is. Ports and devices are copied only when
// the ask looks at them.
func (t *trial) reset(p *place, ask *model.Ask, watch *watched, lacks []int64) {
	t.ask, t.watch, t.choice, t.chunk, t.i = ask, watch, p.choice, p.chunk, p.i
	t.separated, t.short, t.elsewhere = p.separated, 0, p.elsewhere()
	t.lacks = append(t.lacks[:0], lacks...)
	for _, lack := range lacks[:watch.asked] {
		if lack > 0 {
			t.short++
		}
	}
	t.plain = len(ask.Ports)+len(ask.Devices) == 0
	if !t.plain {
		room := p.room()
		t.ports, t.devices = append(t.ports[:0], room.Ports...), append(t.devices[:0], room.Devices...)
	}
}

// fits is whether the ask fits now.
func (t *trial) fits() bool {
	return t.separated <= 0 && t.short <= 0 && (t.plain || t.fitsWhole())
}

func (t *trial) fitsWhole() bool {
	for i, d := range t.ask.Dims {
		t.free[d] = t.ask.Vec[d] - t.lacks[i]
	}
	room := model.FreeCapacity{Free: t.free[:], Stride: 1, Ports: t.ports, Devices: t.devices}
	return model.Fits(room, t.ask, t.choice).Kind == model.ShortageNone
}

// frees takes amounts off what is lacking, and tells how many of the dimensions
// asked are short no more.
func (w *watched) frees(lacks []int64, held *model.Vector) (covered int) {
	lacks = lacks[:len(w.dims)]
	for i, d := range w.dims {
		before := lacks[i]
		lacks[i] = before - held[d%model.MaxDimensions]
		if before > 0 && lacks[i] <= 0 && i < w.asked {
			covered++
		}
	}
	return covered
}

// takes undoes frees.
func (w *watched) takes(lacks []int64, held *model.Vector) (uncovered int) {
	lacks = lacks[:len(w.dims)]
	for i, d := range w.dims {
		before := lacks[i]
		lacks[i] = before + held[d%model.MaxDimensions]
		if before <= 0 && lacks[i] > 0 && i < w.asked {
			uncovered++
		}
	}
	return uncovered
}

// rank is the node's fit with the group placed.
func (t *trial) rank(algorithm model.Algorithm) float64 {
	return fit.Score(algorithm, t.chunk.Avail(model.CPU)[t.i], t.chunk.Avail(model.Memory)[t.i],
		-t.lacks[t.watch.cpu], -t.lacks[t.watch.memory])
}

// remove takes a row off the node; marks say why it must leave.
func (t *trial) remove(row *state.Row, marks uint8) {
	if len(t.elsewhere) > 0 && slices.Contains(t.elsewhere, row) {
		t.separated--
		return
	}
	held := &row.Group.Ask
	t.short -= t.watch.frees(t.lacks, &held.Vec)
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
	if len(t.elsewhere) > 0 && slices.Contains(t.elsewhere, row) {
		t.separated++
		return
	}
	held := &row.Group.Ask
	t.short += t.watch.takes(t.lacks, &held.Vec)
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
