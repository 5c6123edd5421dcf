// Package cow holds the persistent structures of the state: Vec, a chunked vector;
// Index, a hash index from 32-bit hashes to slots; List, an ordered list of slots;
// and Table, Ordering and SortedList, which combine them. Copying one of these
// structs by value is a snapshot; a write copies only the blocks on its path.
//
// It never interprets the values, takes no lock, and orders nothing by hash. Only
// core/state uses it.
//
// Any number of goroutines may read a value while no goroutine writes it. A write
// names its Owner. Each block records the owner that created it, and that owner may
// change it in place; any other owner copies it first. An Owner belongs to one
// branch and is replaced when a copy of that branch is handed out, so two branches
// of one root never observe each other's writes.
package cow
