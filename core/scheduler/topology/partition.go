package topology

import (
	"math/bits"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
)

// Partition returns the domains of a topology key within an outer domain (nil: the cluster),
// in the order of their first node in nodes, which are all nodes in tie order. It costs one
// pass over the nodes, and looks up the value once for each node class.
func Partition(snap *state.Snapshot, key string, outer *feasible.Domain, nodes []int32) (list []*feasible.Domain) {
	inside := masks(snap, outer)
	// The map is only looked up: the order of the list is that of the nodes.
	byValue := map[string]int32{}
	byClass := make([]int32, snap.ClassCount()) // 0: unknown, 1: none, i+2: domain i of the list
	single := key == model.TopologyNode || key == model.AttributeNodeID
	for _, pos := range nodes {
		chunk, bit := int(pos)/state.ChunkSize, uint64(1)<<(pos%state.ChunkSize)
		if inside != nil && inside[chunk]&bit == 0 {
			continue
		}
		class := snap.Chunk(chunk).Class(int(pos) % state.ChunkSize)
		at := byClass[class]
		if at == 0 || single {
			at = 1 // a node without the key is in no domain
			if value, ok := snap.NodeAt(pos).Domain(key); ok {
				if at = byValue[value]; at == 0 {
					list = append(list, &feasible.Domain{Key: key, Value: value, Outer: outer})
					at = int32(len(list) + 1)
					byValue[value] = at
				}
			}
			byClass[class] = at
		}
		if at > 1 {
			add(list[at-2], chunk, bit)
		}
	}
	return list
}

// masks returns the nodes of a domain by chunk, or nil if there is no domain.
func masks(snap *state.Snapshot, d *feasible.Domain) []uint64 {
	if d == nil {
		return nil
	}
	list := make([]uint64, snap.ChunkCount())
	for _, s := range d.Spans {
		list[s.Chunk] = s.Nodes
	}
	return list
}

// add adds a node to the spans of a domain. Nodes in tie order are mostly in the order of
// their positions, so that the last span is nearly always the right one.
func add(d *feasible.Domain, chunk int, bit uint64) {
	at := len(d.Spans)
	for at > 0 && d.Spans[at-1].Chunk > chunk {
		at--
	}
	if at > 0 && d.Spans[at-1].Chunk == chunk {
		d.Spans[at-1].Nodes |= bit
		return
	}
	d.Spans = append(d.Spans, feasible.Span{})
	copy(d.Spans[at+1:], d.Spans[at:])
	d.Spans[at] = feasible.Span{Chunk: chunk, Nodes: bit}
}

// eachNode calls visit with the chunk and the position in it of every node of a domain that
// may be used at all.
func eachNode(snap *state.Snapshot, d *feasible.Domain, visit func(chunk *state.Chunk, c, i int)) {
	for _, s := range d.Spans {
		chunk := snap.Chunk(s.Chunk)
		for left := s.Nodes & chunk.Eligible(); left != 0; left &= left - 1 {
			visit(chunk, s.Chunk, bits.TrailingZeros64(left))
		}
	}
}
