package tiebreak

import (
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// An Order breaks ties between IDs. The zero value orders IDs bytewise, ascending.
// Any other seed orders them by a hash of seed and ID, so that a run can be repeated
// with many orders and the results compared.
type Order struct{ Seed uint64 }

// ByID reports whether ties are broken by the ID itself.
func (o Order) ByID() bool { return o.Seed == 0 }

// Compare returns -1, 0 or 1 for two IDs. Equal hashes fall back to the IDs.
func (o Order) Compare(a, b string) int {
	if !o.ByID() {
		if x, y := o.hash(a), o.hash(b); x != y {
			if x < y {
				return -1
			}
			return 1
		}
	}
	return strings.Compare(a, b)
}

func (o Order) hash(id string) uint64 {
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], o.Seed)
	h := xxhash.New()
	_, _ = h.Write(seed[:])
	_, _ = h.WriteString(id)
	return h.Sum64()
}
