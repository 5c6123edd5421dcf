package abi

import (
	"encoding/binary"
	"errors"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// FrameError describes why a frame cannot be decoded. It is a fault of the sender.
type FrameError string

func (e FrameError) Error() string { return string(e) }

// Errors of decoding.
const (
	ErrShort     FrameError = "the frame is too short"
	ErrAlignment FrameError = "the frame is not aligned"
	ErrMagic     FrameError = "the frame has no valid magic number"
	ErrMajor     FrameError = "the frame has another major version"
	ErrColumn    FrameError = "a column lies outside of the frame, or has the wrong type or length"
	ErrMissing   FrameError = "a required column is missing"
	ErrAnswer    FrameError = "the answer area is missing, or has the wrong type or length"
)

// ErrOptions is returned if a policy does not close every option.
var ErrOptions = errors.New("SelectVictims must call Next once for every option")

// Decoder reads requests and writes answers, on the guest's side. Its views point
// into the frame and are valid until the next frame is loaded.
type Decoder struct {
	frame    []byte
	op       Op
	now      int64
	options  int
	rows     int
	dims     int
	requests int

	columns  directory
	strings  []string
	settings settingColumns

	// Results, whose memory is reused from frame to frame.
	preemptor   policy.Preemptor
	candidates  policy.Candidates
	table       policy.Options
	labels      policy.LabelTable
	annotations policy.AnnotationTable
	budgets     policy.BudgetRefs
	shared      policy.Shared
	dimNames    []int32
	devices     int // requests that the frame describes
}

// Load decodes the header of a frame. The frame must not change while it is used.
//
// Values of a frame are compared as 64 bits before they become an int, because an int
// has 32 bits in a guest.
func (d *Decoder) Load(frame []byte) (Op, error) {
	le := binary.LittleEndian
	if len(frame) < HeaderLen {
		return 0, ErrShort
	}
	if !aligned(frame) {
		return 0, ErrAlignment
	}
	word := func(at int) uint64 { return uint64(le.Uint32(frame[at:])) }
	size := word(offFrameLen)
	switch {
	case word(offMagic) != Magic:
		return 0, ErrMagic
	case le.Uint16(frame[offMajor:]) != Major:
		return 0, ErrMajor
	case word(offHeaderLen) < HeaderLen || size < HeaderLen || size > uint64(len(frame)):
		return 0, ErrShort
	case word(offColumnsOff)+EntryLen*word(offColumns) > size || word(offAnswersOff)+EntryLen*word(offAnswers) > size:
		return 0, ErrShort
	// Every row and every option occupies at least one byte of the frame.
	case word(offOptions) > size || word(offRows) > size || word(offDims) > maxColumns || word(offRequests) > maxColumns:
		return 0, ErrColumn
	}
	d.frame = frame[:size]
	d.op, d.now = Op(word(offOp)), int64(le.Uint64(frame[offNow:]))
	d.options, d.rows = int(word(offOptions)), int(word(offRows))
	d.dims, d.requests = int(word(offDims)), int(word(offRequests))
	return d.op, nil
}

// maxColumns is the maximum number of columns of a table.
const maxColumns = 1 << 10

// entry is the directory entry of one column.
type entry struct {
	id         ID
	typ        Type
	off, count int
	at         int // offset of the entry itself
}

// entry decodes the entry at an offset. It returns ErrColumn if the column is not
// inside the frame.
func (d *Decoder) entry(at int) (entry, error) {
	le := binary.LittleEndian
	b := d.frame[at : at+EntryLen]
	off, count := uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[12:]))
	e := entry{id: ID(le.Uint32(b)), typ: Type(le.Uint32(b[4:])), at: at}
	if size := uint64(e.typ.Size()); size != 0 { // 0: a type of a newer host
		if off%8 != 0 || off+count*size > uint64(len(d.frame)) {
			return e, ErrColumn
		}
		e.off, e.count = int(off), int(count)
	}
	return e, nil
}

// entries returns the offset and the number of the entries of columns or answers.
func (d *Decoder) entries(countAt, offAt int) (at, n int) {
	le := binary.LittleEndian
	return int(le.Uint32(d.frame[offAt:])), int(le.Uint32(d.frame[countAt:]))
}

// string returns a string of the table, or "" if the id is out of range.
func (d *Decoder) string(id int32) string {
	if id < 0 || int(id) >= len(d.strings) {
		return ""
	}
	return d.strings[id]
}
