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

	strings    []string
	stringEnds []int32
	preemptor  policy.Preemptor
	candidates policy.Candidates
	table      policy.Options
	labels     policy.LabelTable
	notes      policy.AnnotationTable
	shared     policy.Shared
	hasShared  bool // the frame has its columns, which may be empty
	label      [2][]int32
	note       struct {
		names  []int32
		values []float64
	}
	deviceIDs, deviceCounts, dimNames, noteNames []int32
	noteValues                                   []float64
	settings                                     settingColumns
	missing                                      error
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

// each visits the columns or the answers.
func (d *Decoder) each(countAt, offAt int, visit func(entry) error) error {
	le := binary.LittleEndian
	n, at := int(le.Uint32(d.frame[countAt:])), int(le.Uint32(d.frame[offAt:]))
	for range n {
		b := d.frame[at:]
		off, count := uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[12:]))
		e := entry{id: ID(le.Uint32(b)), typ: Type(le.Uint32(b[4:])), at: at}
		if size := uint64(e.typ.Size()); size != 0 { // else a type of a newer host
			if off%8 != 0 || off+count*size > uint64(len(d.frame)) {
				return ErrColumn
			}
			e.off, e.count = int(off), int(count)
		}
		if err := visit(e); err != nil {
			return err
		}
		at += EntryLen
	}
	return nil
}

// readColumn reads a column of the given type and number of elements; n < 0 is any
// number.
func readColumn[T element](d *Decoder, e entry, t Type, n int64, to *[]T) error {
	if e.typ != t || n >= 0 && int64(e.count) != n {
		return ErrColumn
	}
	*to = view[T](d.frame[e.off : e.off+e.count*t.Size()])
	return nil
}

// scalar reads a column of one element.
func scalar[T element](d *Decoder, e entry, t Type, to *T) error {
	var c []T
	if err := readColumn(d, e, t, 1, &c); err != nil {
		return err
	}
	*to = c[0]
	return nil
}

// table reads rows columns of n elements each.
func table[T element](d *Decoder, e entry, t Type, rows, n int, to *[][]T) error {
	var all []T
	if err := readColumn(d, e, t, int64(rows)*int64(n), &all); err != nil {
		return err
	}
	*to = (*to)[:0]
	for k := range rows {
		*to = append(*to, all[k*n:(k+1)*n:(k+1)*n])
	}
	return nil
}

// string is a text of the table; what is outside of it is empty.
func (d *Decoder) string(id int32) string {
	if id < 0 || int(id) >= len(d.strings) {
		return ""
	}
	return d.strings[id]
}

// loadStrings reads the table of texts. It comes last in a host's frame, but a
// guest must not rely on any order.
func (d *Decoder) loadStrings() error {
	var ends []int32
	var bytes []uint8
	err := d.each(offColumns, offColumnsOff, func(e entry) error {
		switch e.id {
		case StringEnd:
			return readColumn(d, e, I32, -1, &ends)
		case StringBytes:
			return readColumn(d, e, U8, -1, &bytes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.strings = d.strings[:0]
	from := int32(0)
	for _, end := range ends {
		if end < from || int(end) > len(bytes) {
			return ErrColumn
		}
		d.strings = append(d.strings, text(bytes[from:end]))
		from = end
	}
	return nil
}
