package replication

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Ids are most of what an entry holds, and most of them are UUIDs: 36
// characters that say 16 bytes. An id is written down as a byte that tells how,
// and the rest.
const (
	idPlain byte = iota
	idUUID
)

const uuidLen = 36

// writer turns values of the model into messages. One writer serves one entry
// or one block of a snapshot.
type writer struct {
	arena []byte // where ids are packed
	// names is what strings that repeat are called by; list is them, packed.
	names map[string]uint32
	list  [][]byte
	jobs  *jobTable
}

// id packs an id; nil for "".
func (w *writer) id(s string) []byte {
	if s == "" {
		return nil
	}
	from := len(w.arena)
	var raw [16]byte
	if parseUUID(s, &raw) {
		w.arena = append(append(w.arena, idUUID), raw[:]...)
	} else {
		w.arena = append(append(w.arena, idPlain), s...)
	}
	return w.arena[from:len(w.arena):len(w.arena)]
}

func (w *writer) ids(list []string) [][]byte {
	if len(list) == 0 {
		return nil
	}
	packed := make([][]byte, len(list))
	for i, s := range list {
		packed[i] = w.id(s)
	}
	return packed
}

// name is what a string that repeats is called: 0 for "".
func (w *writer) name(s string) uint32 {
	if s == "" {
		return 0
	}
	if n, ok := w.names[s]; ok {
		return n
	}
	if w.names == nil {
		w.names = map[string]uint32{}
	}
	w.list = append(w.list, w.id(s))
	n := uint32(len(w.list))
	w.names[s] = n
	return n
}

// parseUUID reads a UUID in the spelling that formatUUID writes; false for any
// other string.
func parseUUID(s string, into *[16]byte) bool {
	if len(s) != uuidLen || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	at := 0
	for i := range into {
		if s[at] == '-' {
			at++
		}
		high, low := digit(s[at]), digit(s[at+1])
		if high|low > 15 {
			return false
		}
		into[i] = high<<4 | low
		at += 2
	}
	return true
}

// digit is the value of a lower-case hexadecimal digit; 255 for all else.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

func formatUUID(raw []byte) string {
	var b [uuidLen]byte
	hex.Encode(b[:8], raw[:4])
	b[8] = '-'
	hex.Encode(b[9:13], raw[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], raw[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], raw[8:10])
	b[23] = '-'
	hex.Encode(b[24:], raw[10:])
	return string(b[:])
}

// reader turns messages into values of the model. It keeps the first thing that
// is wrong and goes on; whoever uses it asks for err at the end.
type reader struct {
	names []string
	jobs  *jobTable
	err   error
	// complete is whether jobs are versions with all there is to them; else they
	// are references.
	complete bool
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) id(b []byte) string {
	switch {
	case len(b) == 0:
		return ""
	case b[0] == idPlain:
		return string(b[1:])
	case b[0] == idUUID && len(b) == 17:
		return formatUUID(b[1:])
	}
	r.fail("id %x is written in a way that is not known", b)
	return ""
}

func (r *reader) ids(list [][]byte) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = r.id(b)
	}
	return out
}

func (r *reader) name(n uint32) string {
	switch {
	case n == 0:
		return ""
	case int(n) > len(r.names):
		r.fail("name %d of %d", n, len(r.names))
		return ""
	}
	return r.names[n-1]
}

// enum checks a number that stands for one of a few things. What is not known
// was written by a newer server.
func (r *reader) enum(what string, v, most uint32) uint32 {
	if v > most {
		r.fail("%s %d is not known to this server: it was written by a newer one", what, v)
		return 0
	}
	return v
}

// hash reads 32 bytes, or none for a hash of zeros.
func (r *reader) hash(b []byte) (h [32]byte) {
	if len(b) != 0 && len(b) != len(h) {
		r.fail("a hash of %d bytes", len(b))
		return h
	}
	copy(h[:], b)
	return h
}

func hashBytes(h *[32]byte) []byte {
	if *h == ([32]byte{}) {
		return nil
	}
	return h[:]
}

// text is s as protobuf takes it: its strings are UTF-8.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func texts(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = text(s)
	}
	return out
}

// textMap is m with keys that protobuf takes, and nil where it is empty.
func textMap[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]V, len(m))
	for k, v := range m {
		out[text(k)] = v
	}
	return out
}

func stringMap(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[text(k)] = text(v)
	}
	return out
}

func countMap(m map[string]int) map[string]int64 {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]int64, len(m))
	for k, v := range m {
		out[text(k)] = int64(v)
	}
	return out
}

func countsOf(m map[string]int64) map[string]int {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]int, len(m))
	for k, v := range m {
		out[k] = int(v)
	}
	return out
}

// emptyNil is m, or nil where it is empty: a message does not tell the two
// apart, so nothing may.
func emptyNil[M ~map[K]V, K comparable, V any](m M) M {
	if len(m) == 0 {
		return nil
	}
	return m
}

// each converts a list; nil where it is empty.
func each[A, B any](list []A, convert func(*A) B) []B {
	if len(list) == 0 {
		return nil
	}
	out := make([]B, len(list))
	for i := range list {
		out[i] = convert(&list[i])
	}
	return out
}

func portNumbers(ports []uint16) []uint32 {
	return each(ports, func(p *uint16) uint32 { return uint32(*p) })
}

func (r *reader) ports(numbers []uint32) []uint16 {
	return each(numbers, func(n *uint32) uint16 { return uint16(r.enum("port", *n, 1<<16-1)) })
}
