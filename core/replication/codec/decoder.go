package codec

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
)

// A Decoder converts messages to values of the model. It records the first error and
// continues; callers check Err at the end. The zero value is ready. It serves one
// message and one goroutine.
type Decoder struct {
	names []string
	jobs  *JobTable
	err   error
	// complete is set if the jobs of the table are complete versions. Otherwise
	// they are references, which get a group for every name that is looked up.
	complete bool
}

// NewDecoder returns a decoder of allocations that refer to the complete job
// versions of a table, and to names, packed, by position.
func NewDecoder(jobs *JobTable, names [][]byte) *Decoder {
	d := &Decoder{jobs: jobs, complete: true}
	d.names = d.ids(names)
	return d
}

// Err returns the first error, or nil.
func (d *Decoder) Err() error { return d.err }

// fail records the first error. Decoding continues with zero values, so that callers
// check Err once per message.
func (d *Decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// id unpacks an ID, as Encoder.id packed it. It returns a copy, so that the decoded
// value does not retain the bytes of the entry.
func (d *Decoder) id(b []byte) string {
	switch {
	case len(b) == 0:
		return ""
	case b[0] == idPlain:
		return string(b[1:])
	case b[0] == idUUID && len(b) == 17:
		return formatUUID(b[1:])
	}
	d.fail("unknown form of ID %x", b)
	return ""
}

// ids returns nil for an empty list, as decodeList does.
func (d *Decoder) ids(list [][]byte) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = d.id(b)
	}
	return out
}

// name returns a string of the table of names; 0 stands for "".
func (d *Decoder) name(n uint32) string {
	switch {
	case n == 0:
		return ""
	case int(n) > len(d.names):
		d.fail("name %d of %d", n, len(d.names))
		return ""
	}
	return d.names[n-1]
}

// enum checks a value of an enumeration. A value above the limit was written by a
// newer release.
func (d *Decoder) enum(name string, v, limit uint32) uint32 {
	if v > limit {
		d.fail("unknown %s %d: it was written by a newer release", name, v)
		return 0
	}
	return v
}

// Hash returns 32 bytes; no bytes stand for zeros.
func (d *Decoder) Hash(b []byte) [32]byte { return d.hash(b) }

func (d *Decoder) hash(b []byte) (h [32]byte) {
	if len(b) != 0 && len(b) != len(h) {
		d.fail("hash has %d bytes instead of %d", len(b), len(h))
		return h
	}
	copy(h[:], b)
	return h
}

// ports returns port numbers; nil if there are none. A number above 65535 cannot have
// been written by this release, as with enum.
func (d *Decoder) ports(numbers []uint32) []uint16 {
	if len(numbers) == 0 {
		return nil
	}
	out := make([]uint16, len(numbers))
	for i, n := range numbers {
		out[i] = uint16(d.enum("port", n, 1<<16-1))
	}
	return out
}

// vector decodes amounts by dimension. The message is shorter than a vector if the
// last dimensions are zero.
func (d *Decoder) vector(amounts []int64) (v model.Vector) {
	if len(amounts) > len(v) {
		d.fail("vector of %d resource names: this release supports %d", len(amounts), len(v))
	}
	copy(v[:], amounts)
	return v
}

// preemption decodes a flag for each type of evaluation. A shorter message was written
// by a release with fewer types.
func (d *Decoder) preemption(on []bool) (v [model.EvalTypes]bool) {
	if len(on) > len(v) {
		d.fail("preemption for %d job types: this release supports %d", len(on), len(v))
	}
	copy(v[:], on)
	return v
}

// emptyNil returns m, or nil if it is empty. A message does not distinguish the
// two, so that nothing else may.
func emptyNil[M ~map[K]V, K comparable, V any](m M) M {
	if len(m) == 0 {
		return nil
	}
	return m
}

// decodeCounts decodes a map of counts; nil if it is empty.
func decodeCounts(m map[string]int64) map[string]int {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]int, len(m))
	for k, v := range m {
		out[k] = int(v)
	}
	return out
}

// decodeList decodes a repeated field into values. It returns nil for an empty field, as
// the encoder expects, so that a round trip is exact.
func decodeList[M, V any](list []*M, decode func(*M, *V)) []V {
	if len(list) == 0 {
		return nil
	}
	out := make([]V, len(list))
	for i, m := range list {
		decode(m, &out[i])
	}
	return out
}

// decodePointers is decodeList for pointers.
func decodePointers[M, V any](list []*M, decode func(*M) *V) []*V {
	if len(list) == 0 {
		return nil
	}
	out := make([]*V, len(list))
	for i, m := range list {
		out[i] = decode(m)
	}
	return out
}

// decodeMap decodes a map field into values; nil if it is empty.
func decodeMap[M, V any](m map[string]*M, decode func(*M, *V)) map[string]V {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]V, len(m))
	for k, e := range m {
		var v V
		decode(e, &v)
		out[k] = v
	}
	return out
}

// decodePointerMap is decodeMap for pointers.
func decodePointerMap[M, V any](m map[string]*M, decode func(*M) *V) map[string]*V {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]*V, len(m))
	for k, e := range m {
		out[k] = decode(e)
	}
	return out
}
