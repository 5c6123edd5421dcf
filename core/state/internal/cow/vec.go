package cow

import "iter"

const (
	width    = 64 // values in a leaf, leaves in a directory
	leafBits = 6
	dirBits  = 2 * leafBits
	mask     = width - 1
)

// A Vec is a persistent vector. The zero value is empty.
//
// Three levels suffice: two of 64 entries, and a top that is copied once a
// transaction (4 kB for two million values). A deeper tree would copy less there
// and cost every read another cache miss.
type Vec[T any] struct {
	dirs  []*dir[T]
	owner Owner // of the array behind dirs
	n     int
}

type dir[T any] struct {
	owner  Owner
	leaves [width]*leaf[T]
}

type leaf[T any] struct {
	owner Owner
	vals  [width]T
}

// Len returns the number of values.
func (v *Vec[T]) Len() int { return v.n }

// At returns the value at position i, which must be less than Len.
func (v *Vec[T]) At(i int) T {
	return v.dirs[i>>dirBits].leaves[i>>leafBits&mask].vals[i&mask]
}

// Changed yields the positions of all leaves that v does not share with an older version,
// ascending: every position with another value, and its neighbours.
func (v *Vec[T]) Changed(old *Vec[T]) iter.Seq[int] {
	return func(yield func(int) bool) {
		for d, now := range v.dirs {
			var before *dir[T]
			if d < len(old.dirs) {
				before = old.dirs[d]
			}
			if now == before {
				continue
			}
			for l := range now.leaves {
				from := d<<dirBits | l<<leafBits
				if now.leaves[l] == nil || before != nil && now.leaves[l] == before.leaves[l] {
					continue
				}
				for i := from; i < min(from+width, v.n); i++ {
					if !yield(i) {
						return
					}
				}
			}
		}
	}
}

// Set replaces the value at position i. It copies at most the leaf, its directory and
// the top, each once for each owner.
func (v *Vec[T]) Set(o Owner, i int, x T) { v.leaf(o, i).vals[i&mask] = x }

// Append adds a value at the end and returns its position.
func (v *Vec[T]) Append(o Owner, x T) int {
	i := v.n
	if i&(1<<dirBits-1) == 0 {
		v.ownTop(o)
		v.dirs = append(v.dirs, &dir[T]{owner: o})
	}
	v.n++
	v.leaf(o, i).vals[i&mask] = x
	return i
}

// Pop removes and returns the last value. The vector must not be empty. The value is
// cleared, so that the garbage collector may free it.
func (v *Vec[T]) Pop(o Owner) T {
	i := v.n - 1
	x := v.At(i)
	switch {
	case i&(1<<dirBits-1) == 0:
		v.ownTop(o)
		v.dirs[len(v.dirs)-1] = nil
		v.dirs = v.dirs[:len(v.dirs)-1]
	case i&mask == 0:
		v.dir(o, i).leaves[i>>leafBits&mask] = nil
	default:
		var zero T
		v.leaf(o, i).vals[i&mask] = zero
	}
	v.n--
	return x
}

func (v *Vec[T]) ownTop(o Owner) {
	if v.owner != o {
		v.dirs, v.owner = append(make([]*dir[T], 0, len(v.dirs)+1), v.dirs...), o
	}
}

func (v *Vec[T]) dir(o Owner, i int) *dir[T] {
	d := v.dirs[i>>dirBits]
	if d.owner != o {
		v.ownTop(o)
		d = &dir[T]{owner: o, leaves: d.leaves}
		v.dirs[i>>dirBits] = d
	}
	return d
}

// leaf returns the leaf of position i for writing. It creates or copies it if
// necessary.
func (v *Vec[T]) leaf(o Owner, i int) *leaf[T] {
	l := v.dirs[i>>dirBits].leaves[i>>leafBits&mask]
	if l == nil {
		l = &leaf[T]{owner: o}
		v.dir(o, i).leaves[i>>leafBits&mask] = l
	} else if l.owner != o {
		l = &leaf[T]{owner: o, vals: l.vals}
		v.dir(o, i).leaves[i>>leafBits&mask] = l
	}
	return l
}
