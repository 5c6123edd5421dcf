package codec

import (
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/cede-scheduler/cede/core/model"
)

// IDs make up most of an entry, and most of them are UUIDs: 36 characters for 16
// bytes. An encoded ID is one byte for its form, followed by the ID in that form.
const (
	idPlain byte = iota // the characters
	idUUID              // 16 bytes
)

// Deterministic marshals maps in key order, so that equal values have equal bytes.
var Deterministic = proto.MarshalOptions{Deterministic: true}

// An Encoder converts values of the model to messages. It serves one entry, or one
// block of a snapshot. The zero value is ready. Messages refer to its arena, so the
// encoder must not be reused while a message that it made is in use.
type Encoder struct {
	arena []byte // backs packed IDs
	// names holds the position plus one of every string in list, which are the
	// strings that repeat within the message, packed.
	names map[string]uint32
	list  [][]byte
	jobs  *JobTable
}

// NewEncoder returns an encoder of allocations that refer to jobs of a table.
func NewEncoder(jobs *JobTable) *Encoder { return &Encoder{jobs: jobs} }

// Names returns the strings that the encoded allocations refer to by position.
func (e *Encoder) Names() [][]byte { return e.list }

// id packs an ID. It returns nil for "".
func (e *Encoder) id(s string) []byte {
	if s == "" {
		return nil
	}
	from := len(e.arena)
	var raw [16]byte
	if parseUUID(s, &raw) {
		e.arena = append(append(e.arena, idUUID), raw[:]...)
	} else {
		e.arena = append(append(e.arena, idPlain), s...)
	}
	// The capacity is cut, so that the next ID does not grow into this one.
	return e.arena[from:len(e.arena):len(e.arena)]
}

// ids returns nil for an empty list, which takes no bytes.
func (e *Encoder) ids(list []string) [][]byte {
	if len(list) == 0 {
		return nil
	}
	packed := make([][]byte, len(list))
	for i, s := range list {
		packed[i] = e.id(s)
	}
	return packed
}

// name returns the position plus one of a string in the table of names, and adds
// it if necessary. It returns 0 for "".
func (e *Encoder) name(s string) uint32 {
	if s == "" {
		return 0
	}
	if n, ok := e.names[s]; ok {
		return n
	}
	if e.names == nil {
		e.names = map[string]uint32{}
	}
	e.list = append(e.list, e.id(s))
	n := uint32(len(e.list))
	e.names[s] = n
	return n
}

// marshal panics on an error: Text makes every string valid UTF-8, and a message
// has no other way to fail.
func marshal(o proto.MarshalOptions, m proto.Message) []byte {
	b, err := o.Marshal(m)
	if err != nil {
		panic("replication: " + err.Error())
	}
	return b
}

// HashBytes returns the bytes of a hash, or nil if all are zero.
func HashBytes(h *[32]byte) []byte {
	if *h == ([32]byte{}) {
		return nil
	}
	return h[:]
}

// Text returns s as valid UTF-8, which protobuf requires of strings.
func Text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// texts returns the list as valid UTF-8, or nil if it is empty.
func texts(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Text(s)
	}
	return out
}

// textMap returns m with valid keys, or nil if it is empty.
func textMap[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]V, len(m))
	for k, v := range m {
		out[Text(k)] = v
	}
	return out
}

// stringMap returns m with valid keys and values, or nil if it is empty.
func stringMap(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[Text(k)] = Text(v)
	}
	return out
}

// encodeCounts returns counts with a fixed size, or nil for none.
func encodeCounts(m map[string]int) map[string]int64 {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]int64, len(m))
	for k, v := range m {
		out[Text(k)] = int64(v)
	}
	return out
}

// encodePorts widens port numbers: protobuf has no 16-bit integers.
func encodePorts(ports []uint16) []uint32 {
	if len(ports) == 0 {
		return nil
	}
	out := make([]uint32, len(ports))
	for i, p := range ports {
		out[i] = uint32(p)
	}
	return out
}

// encodeList encodes a repeated field of values. The function gets pointers into the
// list, which saves a copy of each value.
func encodeList[V, M any](list []V, encode func(*V) *M) []*M {
	if len(list) == 0 {
		return nil
	}
	out := make([]*M, len(list))
	for i := range list {
		out[i] = encode(&list[i])
	}
	return out
}

// encodePointers is encodeList for pointers.
func encodePointers[V, M any](list []*V, encode func(*V) *M) []*M {
	if len(list) == 0 {
		return nil
	}
	out := make([]*M, len(list))
	for i, v := range list {
		out[i] = encode(v)
	}
	return out
}

// encodeMap encodes a map field of values. The order of a map does not matter, because
// the bytes are ordered when they are marshaled deterministically.
func encodeMap[V, M any](m map[string]V, encode func(*V) *M) map[string]*M {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]*M, len(m))
	for k, v := range m {
		out[Text(k)] = encode(&v)
	}
	return out
}

// encodePointerMap encodes nil values as empty messages: a message's map has no
// nil values.
func encodePointerMap[V, M any](m map[string]*V, encode func(*V) *M) map[string]*M {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]*M, len(m))
	for k, v := range m {
		if v == nil {
			v = new(V)
		}
		out[Text(k)] = encode(v)
	}
	return out
}

// amounts returns a vector without its trailing zeros.
func amounts(v *model.Vector) []int64 {
	used := len(v)
	for used > 0 && v[used-1] == 0 {
		used--
	}
	return v[:used:used]
}

// encodePreemption omits bindings while preemption is off for them, so that
// servers of a release without bindings can read the rest.
func encodePreemption(on *[model.EvalTypes]bool) []bool {
	if on[model.JobBinding] {
		return on[:]
	}
	return on[:model.JobTypes]
}

// encodeObserve omits the field if nothing is observed, so that servers of a release
// without it can read the rest.
func encodeObserve(on *[model.EvalTypes]bool) []bool {
	if *on == [model.EvalTypes]bool{} {
		return nil
	}
	return on[:]
}
