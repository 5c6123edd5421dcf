// Package cow owns the persistent structures under the state: Vec, a chunked
// vector; Index, a hash index from 32-bit hashes to slots; and List, an ordered
// list of slots. Copying one of these structs by value is a snapshot; a write
// copies only the blocks on its path.
//
// It never looks at what it stores, takes no lock and orders nothing by hash.
// Only core/state uses it.
//
// Concurrency: any number of goroutines may read values that nobody writes. A
// write names its Owner. Blocks remember who made them, and whoever made a
// block may change it in place; everybody else copies it first. An Owner
// belongs to one branch and is given up when a copy of that branch is handed
// out, so two branches of one root can never see each other's writes.
package cow
