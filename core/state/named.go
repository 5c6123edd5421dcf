package state

import (
	"slices"
	"strings"
)

// named is a small table: what few of, and rarely written, is kept as a list
// ascending by name that a write replaces whole.
type named[T any] []*T

func (l named[T]) find(name string, nameOf func(*T) string) (int, bool) {
	return slices.BinarySearchFunc(l, name, func(x *T, name string) int { return strings.Compare(nameOf(x), name) })
}

func (l named[T]) get(name string, nameOf func(*T) string) *T {
	if at, ok := l.find(name, nameOf); ok {
		return l[at]
	}
	return nil
}

func (l named[T]) with(x *T, nameOf func(*T) string) named[T] {
	at, found := l.find(nameOf(x), nameOf)
	next := slices.Clone(l)
	if found {
		next[at] = x
		return next
	}
	return slices.Insert(next, at, x)
}

func (l named[T]) without(name string, nameOf func(*T) string) (named[T], bool) {
	at, found := l.find(name, nameOf)
	if !found {
		return l, false
	}
	return slices.Delete(slices.Clone(l), at, at+1), true
}
