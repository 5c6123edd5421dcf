package tiebreak

import (
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Order orders what no rule decides. The zero value is by id, bytewise
// ascending; any other seed is by a hash of seed and id, so that runs can be
// compared over many orders.
type Order struct{ Seed uint64 }

// ByID is whether ties are broken by id itself.
func (t Order) ByID() bool { return t.Seed == 0 }

// Compare orders two ids.
func (t Order) Compare(a, b string) int {
	if !t.ByID() {
		if x, y := t.hash(a), t.hash(b); x != y {
			if x < y {
				return -1
			}
			return 1
		}
	}
	return strings.Compare(a, b)
}

func (t Order) hash(id string) uint64 {
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], t.Seed)
	h := xxhash.New()
	_, _ = h.Write(seed[:])
	_, _ = h.WriteString(id)
	return h.Sum64()
}
