package abi

import (
	"encoding/binary"
	"errors"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// FrameError says why a frame cannot be read: the fault of whoever sent it.
type FrameError string

func (e FrameError) Error() string { return string(e) }

// What can be wrong with a frame.
const (
	ErrShort     FrameError = "the frame is too short"
	ErrAlignment FrameError = "the frame is not aligned"
	ErrMagic     FrameError = "this is no frame"
	ErrMajor     FrameError = "the frame has another major version"
	ErrColumn    FrameError = "a column lies outside of the frame, or has the wrong type or length"
	ErrMissing   FrameError = "a column is missing that the call needs"
	ErrAnswer    FrameError = "the answer has no room"
)

// ErrOptions is a policy's mistake.
var ErrOptions = errors.New("SelectVictims must call Next once for every option")

// Decoder reads requests and writes answers: the guest's side. Its views point
// into the frame and are valid until the next one.
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

	// What is handed out, whose memory is used again.
	preemptor  policy.Preemptor
	candidates policy.Candidates
	table      policy.Options
	labels     policy.LabelTable
	notes      policy.AnnotationTable
	budgets    policy.BudgetRefs
	shared     policy.Shared
	dimNames   []int32
	devices    int // requests that were told of
}

// Load reads the header of a frame. The frame must not change while it is used.
//
// Here and below, what a frame says is compared as 64 bits before it becomes an
// int, which in a guest has 32.
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
	// Every row and every option takes at least a byte of the frame.
	case word(offOptions) > size || word(offRows) > size || word(offDims) > maxColumns || word(offRequests) > maxColumns:
		return 0, ErrColumn
	}
	d.frame = frame[:size]
	d.op, d.now = Op(word(offOp)), int64(le.Uint64(frame[offNow:]))
	d.options, d.rows = int(word(offOptions)), int(word(offRows))
	d.dims, d.requests = int(word(offDims)), int(word(offRequests))
	return d.op, nil
}

// maxColumns is how many columns a table has at most.
const maxColumns = 1 << 10

// entry is what a frame says of one column.
type entry struct {
	id         ID
	typ        Type
	off, count int
	at         int // of the entry itself
}

// entry reads the entry at a place, and checks that what it speaks of is inside
// the frame.
func (d *Decoder) entry(at int) (entry, error) {
	le := binary.LittleEndian
	b := d.frame[at : at+EntryLen]
	off, count := uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[12:]))
	e := entry{id: ID(le.Uint32(b)), typ: Type(le.Uint32(b[4:])), at: at}
	if size := uint64(e.typ.Size()); size != 0 { // else a type of a newer host
		if off%8 != 0 || off+count*size > uint64(len(d.frame)) {
			return e, ErrColumn
		}
		e.off, e.count = int(off), int(count)
	}
	return e, nil
}

// entries are where the columns or the answers are told of, and how many.
func (d *Decoder) entries(countAt, offAt int) (at, n int) {
	le := binary.LittleEndian
	return int(le.Uint32(d.frame[offAt:])), int(le.Uint32(d.frame[countAt:]))
}

// string is a text of the table; what is outside of it is empty.
func (d *Decoder) string(id int32) string {
	if id < 0 || int(id) >= len(d.strings) {
		return ""
	}
	return d.strings[id]
}
