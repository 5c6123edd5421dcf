package abi

import (
	"encoding/binary"
	"errors"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// What can be wrong with a frame.
var (
	ErrShort     = errors.New("the frame is too short")
	ErrAlignment = errors.New("the frame is not aligned")
	ErrMagic     = errors.New("this is no frame")
	ErrMajor     = errors.New("the frame has another major version")
	ErrColumn    = errors.New("a column lies outside of the frame, or has the wrong type or length")
	ErrMissing   = errors.New("a column is missing that the call needs")
	ErrAnswer    = errors.New("the answer has no room")
	ErrOptions   = errors.New("SelectVictims must call Next once for every option")
)

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
func (d *Decoder) Load(frame []byte) (Op, error) {
	le := binary.LittleEndian
	if len(frame) < HeaderLen {
		return 0, ErrShort
	}
	if !aligned(frame) {
		return 0, ErrAlignment
	}
	word := func(at int) int { return int(le.Uint32(frame[at:])) }
	switch {
	case word(offMagic) != Magic:
		return 0, ErrMagic
	case le.Uint16(frame[offMajor:]) != Major:
		return 0, ErrMajor
	case word(offHeaderLen) < HeaderLen || word(offFrameLen) > len(frame) || word(offFrameLen) < HeaderLen:
		return 0, ErrShort
	}
	d.frame = frame[:word(offFrameLen)]
	d.op, d.now = Op(word(offOp)), int64(le.Uint64(frame[offNow:]))
	d.options, d.rows, d.dims, d.requests = word(offOptions), word(offRows), word(offDims), word(offRequests)
	for _, at := range [4]int{offColumns, offColumnsOff, offAnswers, offAnswersOff} {
		if word(at) > len(d.frame) {
			return 0, ErrShort
		}
	}
	if word(offColumnsOff)+word(offColumns)*EntryLen > len(d.frame) || word(offAnswersOff)+word(offAnswers)*EntryLen > len(d.frame) {
		return 0, ErrShort
	}
	// Every row and every option takes at least a byte of the frame, so counts
	// that pass are small enough to be multiplied.
	if d.options > len(d.frame) || d.rows > len(d.frame) || d.dims > 1<<10 || d.requests > 1<<10 {
		return 0, ErrColumn
	}
	return d.op, nil
}

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
		e := entry{
			id: ID(le.Uint32(b)), typ: Type(le.Uint32(b[4:])),
			off: int(le.Uint32(b[8:])), count: int(le.Uint32(b[12:])), at: at,
		}
		size := e.typ.Size()
		if size != 0 && (e.off%8 != 0 || e.off > len(d.frame) || e.count > (len(d.frame)-e.off)/size) {
			return ErrColumn
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
func readColumn[T element](d *Decoder, e entry, t Type, n int, to *[]T) error {
	if e.typ != t || n >= 0 && e.count != n {
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
	if err := readColumn(d, e, t, rows*n, &all); err != nil {
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
