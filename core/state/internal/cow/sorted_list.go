package cow

import (
	"slices"
	"strings"
)

// A SortedList is a small table: a list, ascending by name, that a write replaces
// as a whole. It suits tables with few rows that rarely change.
type SortedList[T any] []*T

func (l SortedList[T]) find(name string, nameOf func(*T) string) (int, bool) {
	return slices.BinarySearchFunc(l, name, func(x *T, name string) int { return strings.Compare(nameOf(x), name) })
}

// Get returns the row with the name, or nil if there is none.
func (l SortedList[T]) Get(name string, nameOf func(*T) string) *T {
	if at, ok := l.find(name, nameOf); ok {
		return l[at]
	}
	return nil
}

// With returns the list with x, which replaces the row of the same name.
func (l SortedList[T]) With(x *T, nameOf func(*T) string) SortedList[T] {
	at, found := l.find(nameOf(x), nameOf)
	next := slices.Clone(l)
	if found {
		next[at] = x
		return next
	}
	return slices.Insert(next, at, x)
}

// Without returns the list without the row of the name; it returns false if there
// is none.
func (l SortedList[T]) Without(name string, nameOf func(*T) string) (SortedList[T], bool) {
	at, found := l.find(name, nameOf)
	if !found {
		return l, false
	}
	return slices.Delete(slices.Clone(l), at, at+1), true
}

// Ascending reports whether the names ascend without duplicates.
func (l SortedList[T]) Ascending(nameOf func(*T) string) bool {
	for i := 1; i < len(l); i++ {
		if nameOf(l[i-1]) >= nameOf(l[i]) {
			return false
		}
	}
	return true
}
