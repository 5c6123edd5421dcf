package cow

import "math/bits"

const (
	pageEntries = 14 // with its header a page is then 128 bytes
	pageLoad    = 5  // mean entries a page at which the index grows
	pageSparse  = 1  // mean entries a page at which it shrinks
)

// An Index finds slots by the hash of their key. It stores no keys: the caller
// compares them, so an entry costs about 27 bytes that the garbage collector need
// not scan. The zero value is empty.
//
// It is a linear hash table over a Vec: it grows and shrinks by one page at a time,
// so no insertion pays for a rehash of all entries.
type Index struct {
	pages Vec[*page]
	n     int
}

// A page holds the entries of one bucket; ref 0 marks an unused entry. Deleted entries
// leave gaps, which put fills again.
type page struct {
	owner   Owner
	more    *page // overflow page
	entries [pageEntries]entry
}

type entry struct {
	hash uint32
	ref  uint32 // slot + 1
}

// Len returns the number of entries.
func (x *Index) Len() int { return x.n }

// Find returns the slot with this hash that match accepts. Hashes of 32 bits collide,
// so match must compare the keys.
func (x *Index) Find(hash uint32, match func(slot int32) bool) (int32, bool) {
	if x.n == 0 {
		return 0, false
	}
	for p := x.pages.At(bucket(hash, x.pages.Len())); p != nil; p = p.more {
		for i := range p.entries {
			if e := &p.entries[i]; e.hash == hash && e.ref != 0 && match(int32(e.ref-1)) {
				return int32(e.ref - 1), true
			}
		}
	}
	return 0, false
}

// Insert adds a slot, which must not be in the index yet.
func (x *Index) Insert(o Owner, hash uint32, slot int32) {
	if x.pages.Len() == 0 {
		x.pages.Append(o, nil)
	}
	x.put(o, bucket(hash, x.pages.Len()), entry{hash, uint32(slot) + 1})
	x.n++
	if x.n > pageLoad*x.pages.Len() {
		x.split(o)
	}
}

// Delete removes a slot, which must be in the index under this hash. It panics if the
// slot is missing: the table then disagrees with its index.
func (x *Index) Delete(o Owner, hash uint32, slot int32) {
	b := bucket(hash, x.pages.Len())
	want := entry{hash, uint32(slot) + 1}
	for p := x.ownChain(o, b); p != nil; p = p.more {
		for i := range p.entries {
			if p.entries[i] == want {
				p.entries[i] = entry{}
				x.n--
				if n := x.pages.Len(); n > 1 && x.n < pageSparse*n {
					x.merge(o)
				}
				return
			}
		}
	}
	panic("cow: deleted slot is not in the index")
}

// bucket maps a hash to one of n pages: those below the split point of the current
// round use one more bit of the hash than the others.
func bucket(hash uint32, n int) int {
	round := bits.Len(uint(n)) - 1
	b := int(hash & (2<<round - 1))
	if b >= n {
		b -= 1 << round
	}
	return b
}

// split adds a page and moves to it the entries that belong there. The page from which
// they move is the next of the round, whether or not it is the full one: over a round,
// every page is split once.
func (x *Index) split(o Owner) {
	n := x.pages.Len()
	from := n - 1<<(bits.Len(uint(n))-1)
	old := x.pages.At(from)
	x.pages.Set(o, from, nil)
	x.pages.Append(o, nil)
	x.putAll(o, old)
}

// merge removes the last page and returns its entries to the pages they came from.
func (x *Index) merge(o Owner) {
	x.putAll(o, x.pages.Pop(o))
}

func (x *Index) putAll(o Owner, chain *page) {
	for ; chain != nil; chain = chain.more {
		for _, e := range chain.entries {
			if e.ref != 0 {
				x.put(o, bucket(e.hash, x.pages.Len()), e)
			}
		}
	}
}

func (x *Index) put(o Owner, b int, e entry) {
	for p := x.ownChain(o, b); p != nil; p = p.more {
		for i := range p.entries {
			if p.entries[i].ref == 0 {
				p.entries[i] = e
				return
			}
		}
	}
	p := &page{owner: o, more: x.pages.At(b)}
	p.entries[0] = e
	x.pages.Set(o, b, p)
}

// ownChain makes every page of a bucket writable. Chains are rare, so copying all
// of one costs less than searching for the page that will be written.
func (x *Index) ownChain(o Owner, b int) *page {
	first := x.pages.At(b)
	if first != nil && first.owner != o {
		first = first.copyFor(o)
		x.pages.Set(o, b, first)
	}
	for p := first; p != nil; p = p.more {
		if p.more != nil && p.more.owner != o {
			p.more = p.more.copyFor(o)
		}
	}
	return first
}

func (p *page) copyFor(o Owner) *page {
	c := *p
	c.owner = o
	return &c
}
