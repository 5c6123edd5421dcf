package tiebreak

import (
	"cmp"
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// An Order breaks ties between IDs. The zero value orders IDs bytewise, ascending.
// Any other seed orders them by a hash of seed and ID, so that a run can be repeated
// with many orders and the results compared. Orders are comparable with ==.
type Order struct {
	Seed  uint64
	ranks *map[string]int // of Listed; nil: without a list
}

// Listed returns the order in which some IDs are listed. All other IDs follow them,
// bytewise ascending.
func Listed(ids []string) Order {
	ranks := make(map[string]int, len(ids))
	for i, id := range ids {
		ranks[id] = i
	}
	return Order{ranks: &ranks}
}

// ByID reports whether ties are broken by the ID itself.
func (o Order) ByID() bool { return o == Order{} }

// Compare returns -1, 0 or 1 for two IDs. Equal hashes fall back to the IDs.
func (o Order) Compare(a, b string) int {
	switch {
	case o.Seed != 0:
		return cmp.Or(cmp.Compare(o.hash(a), o.hash(b)), strings.Compare(a, b))
	case o.ranks != nil:
		return cmp.Or(cmp.Compare(o.rank(a), o.rank(b)), strings.Compare(a, b))
	}
	return strings.Compare(a, b)
}

func (o Order) rank(id string) int {
	if at, ok := (*o.ranks)[id]; ok {
		return at
	}
	return len(*o.ranks)
}

func (o Order) hash(id string) uint64 {
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], o.Seed)
	h := xxhash.New()
	_, _ = h.Write(seed[:])
	_, _ = h.WriteString(id)
	return h.Sum64()
}
