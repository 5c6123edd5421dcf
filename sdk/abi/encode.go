package abi

import (
	"encoding/binary"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Encoder writes requests and reads answers, on the host's side.
//
// A request is laid out first, which returns its size. Write then copies it to memory
// that the guest has allocated. After the call, the answer is decoded from the same
// memory. The host reads only the answer areas of the frame.
type Encoder struct {
	op       Op
	now      int64
	options  int
	rows     int
	dims     int
	requests int
	columns  []column
	answers  []column
	size     int

	strings   stringTable
	preemptor preemptorColumns
	settings  settingColumns
}

// column is an entry of the frame and its content.
type column struct {
	id    ID
	typ   Type
	count int
	off   int
	// src is the whole column; or parts or ids are its rows, one after the other.
	src   []byte
	parts [][]float64
	ids   [][]int32
}

// reset empties the encoder for a request.
func (e *Encoder) reset(op Op, now int64) {
	e.op, e.now = op, now
	e.options, e.rows, e.dims, e.requests = 0, 0, 0, 0
	e.columns, e.answers = e.columns[:0], e.answers[:0]
	e.strings.reset()
}

func (e *Encoder) bytes(id ID, c []uint8)    { e.add(id, U8, len(c), c) }
func (e *Encoder) int32s(id ID, c []int32)   { e.add(id, I32, len(c), raw(c)) }
func (e *Encoder) int64s(id ID, c []int64)   { e.add(id, I64, len(c), raw(c)) }
func (e *Encoder) floats(id ID, c []float64) { e.add(id, F64, len(c), raw(c)) }
func (e *Encoder) answer(id ID, t Type, n int) {
	e.answers = append(e.answers, column{id: id, typ: t, count: n})
}

func (e *Encoder) add(id ID, t Type, n int, src []byte) {
	e.columns = append(e.columns, column{id: id, typ: t, count: n, src: src})
}

// table adds a column per dimension or request, each of n elements.
func (e *Encoder) table(id ID, rows [][]float64, n int) {
	e.columns = append(e.columns, column{id: id, typ: F64, count: len(rows) * n, parts: rows})
}

func (e *Encoder) idTable(id ID, rows [][]int32, n int) {
	e.columns = append(e.columns, column{id: id, typ: I32, count: len(rows) * n, ids: rows})
}

// layOut assigns offsets and returns the size of the frame.
func (e *Encoder) layOut() int {
	e.int32s(StringEnd, e.strings.ends)
	e.bytes(StringBytes, e.strings.bytes)
	at := HeaderLen + (len(e.columns)+len(e.answers))*EntryLen
	for _, list := range [][]column{e.columns, e.answers} {
		for i := range list {
			list[i].off = at
			at = align(at + list[i].count*list[i].typ.Size())
		}
	}
	e.size = at + 4 + ErrorCap
	return e.size
}

// align rounds up to the alignment of a column.
func align(n int) int { return (n + 7) &^ 7 }

// Size returns the size of the frame in bytes.
func (e *Encoder) Size() int { return e.size }

// Write writes the frame into dst, which must be aligned and Size bytes long.
func (e *Encoder) Write(dst []byte) {
	le := binary.LittleEndian
	clear(dst[:HeaderLen])
	put := func(at, n int) { le.PutUint32(dst[at:], uint32(n)) }
	put(offMagic, Magic)
	le.PutUint16(dst[offMajor:], Major)
	le.PutUint16(dst[offMinor:], Minor)
	put(offHeaderLen, HeaderLen)
	put(offFrameLen, e.size)
	put(offOp, int(e.op))
	le.PutUint64(dst[offNow:], uint64(e.now))
	put(offOptions, e.options)
	put(offRows, e.rows)
	put(offDims, e.dims)
	put(offRequests, e.requests)
	put(offColumns, len(e.columns))
	put(offColumnsOff, HeaderLen)
	put(offAnswers, len(e.answers))
	put(offAnswersOff, HeaderLen+len(e.columns)*EntryLen)
	put(offErrorOff, e.errorOff())
	put(offErrorCap, ErrorCap)
	at := HeaderLen
	for _, list := range [][]column{e.columns, e.answers} {
		for i := range list {
			list[i].writeEntry(dst[at:])
			at += EntryLen
		}
	}
	for i := range e.columns {
		e.columns[i].write(dst)
	}
	for i := range e.answers {
		a := &e.answers[i]
		clear(dst[a.off:align(a.off+a.count*a.typ.Size())])
		if a.id == AnswerGap {
			fill(view[int32](dst[a.off:a.off+4*a.count]), e.preemptor.int32s[1])
		}
	}
	put(e.errorOff(), 0)
}

func (e *Encoder) errorOff() int { return e.size - 4 - ErrorCap }

func fill(column []int32, value int32) {
	for i := range column {
		column[i] = value
	}
}

func (c *column) writeEntry(dst []byte) {
	le := binary.LittleEndian
	le.PutUint32(dst, uint32(c.id))
	le.PutUint32(dst[4:], uint32(c.typ))
	le.PutUint32(dst[8:], uint32(c.off))
	le.PutUint32(dst[12:], uint32(c.count))
}

func (c *column) write(frame []byte) {
	at := c.off + copy(frame[c.off:], c.src)
	for _, part := range c.parts {
		at += copy(frame[at:], raw(part))
	}
	for _, part := range c.ids {
		at += copy(frame[at:], raw(part))
	}
	clear(frame[at:align(at)]) // equal requests have equal bytes
}

// stringTable assigns ids to the strings of a frame. The strings of the policy's
// tables retain their ids; other strings follow.
type stringTable struct {
	ends  []int32
	bytes []byte
}

func (s *stringTable) reset() { s.ends, s.bytes = s.ends[:0], s.bytes[:0] }

// load appends a table. The first string is always empty.
func (s *stringTable) load(table []string) {
	if len(table) == 0 {
		s.ends = append(s.ends, 0)
		return
	}
	for _, text := range table {
		s.id(text)
	}
}

// id appends a string and returns its id.
func (s *stringTable) id(text string) int32 {
	s.bytes = append(s.bytes, text...)
	s.ends = append(s.ends, int32(len(s.bytes)))
	return int32(len(s.ends) - 1)
}

func (s *stringTable) appendIDs(ids []int32, list []string) []int32 {
	for _, text := range list {
		ids = append(ids, s.id(text))
	}
	return ids
}

// preemptorColumns holds the preemptor as columns.
type preemptorColumns struct {
	int32s          [8]int32
	waiting         [1]int64
	dims            []int32
	devices         []int32
	counts          []int32
	labels          [2][]int32
	annotationNames []int32
	annotations     []float64
	names           []int32
}

func (e *Encoder) addPreemptor(p *policy.Preemptor, dims []string, columns policy.Columns) {
	c, s := &e.preemptor, &e.strings
	e.dims, e.requests = len(dims), len(p.Devices)
	c.int32s = [8]int32{
		p.Priority, p.Delta, int32(p.Ports), p.Attempts,
		s.id(p.Namespace), s.id(p.Job), s.id(p.Group), s.id(p.JobType),
	}
	for i, id := range [8]ID{
		PreemptorPriority, PreemptorDelta, PreemptorPorts, PreemptorAttempts,
		PreemptorNamespace, PreemptorJob, PreemptorGroup, PreemptorJobType,
	} {
		e.int32s(id, c.int32s[i:i+1])
	}
	c.waiting[0] = p.Waiting
	e.int64s(PreemptorWaiting, c.waiting[:])
	e.floats(PreemptorAsk, p.Ask)
	c.dims = s.appendIDs(c.dims[:0], dims)
	e.int32s(DimName, c.dims)
	c.devices, c.counts = c.devices[:0], c.counts[:0]
	for i := range p.Devices {
		c.devices = append(c.devices, s.id(p.Devices[i].ID))
		c.counts = append(c.counts, p.Devices[i].Count)
	}
	e.int32s(DeviceAskID, c.devices)
	e.int32s(DeviceAskCount, c.counts)
	if columns.Has(policy.LabelColumns) {
		e.addPreemptorLabels(p)
	}
	if columns.Has(policy.AnnotationColumns) {
		e.addPreemptorAnnotations(p)
	}
}

func (e *Encoder) addPreemptorLabels(p *policy.Preemptor) {
	c, s := &e.preemptor, &e.strings
	c.labels[0], c.labels[1] = c.labels[0][:0], c.labels[1][:0]
	for _, key := range sortedKeys(p.Labels) {
		c.labels[0] = append(c.labels[0], s.id(key))
		c.labels[1] = append(c.labels[1], s.id(p.Labels[key]))
	}
	e.int32s(PreemptorLabelKey, c.labels[0])
	e.int32s(PreemptorLabelValue, c.labels[1])
}

func (e *Encoder) addPreemptorAnnotations(p *policy.Preemptor) {
	c, s := &e.preemptor, &e.strings
	c.annotationNames, c.annotations = c.annotationNames[:0], c.annotations[:0]
	for _, name := range sortedKeys(p.Annotations) {
		c.annotationNames = append(c.annotationNames, s.id(name))
		c.annotations = append(c.annotations, p.Annotations[name])
	}
	e.int32s(PreemptorNoteName, c.annotationNames)
	e.floats(PreemptorNoteValue, c.annotations)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
