package client

import "context"

// Map holds all nodes and the allocations that hold capacity on them, in columns: the
// arrays of a struct have one element per row. A page shows a whole cluster
// with one read of it.
type Map struct {
	Index     uint64   // of the state; an event stream from the next index continues it
	Resources []string // names of the amounts in Capacity and Use, ascending
	Nodes     MapNodes
	Groups    []MapGroup
	Allocs    MapAllocs
}

// MapNodes are the nodes of a map, ascending by ID.
type MapNodes struct {
	ID         []string
	Name       []string
	Datacenter []string
	State      []string  // ready, ineligible, draining or down
	Capacity   [][]int64 // available amounts, per resource of the map
}

// MapGroup is a group of a job that has allocations in a map.
type MapGroup struct {
	Namespace string
	JobID     string
	JobType   string
	Version   uint64
	Group     string
	Priority  int
	Use       []int64 // of one instance, per resource of the map
}

// MapAllocs are the allocations of a map.
type MapAllocs struct {
	ID        []string
	Node      []int   // row of Nodes
	Group     []int   // row of Groups
	StartTime []int64 // Unix seconds; 0: not started
}

// Map returns all nodes and the allocations that hold capacity on them.
func (n Nodes) Map(ctx context.Context, q *QueryOptions) (*Map, *QueryMeta, error) {
	out := &Map{}
	meta, err := n.c.get(ctx, q, out, "map")
	return out, meta, err
}
