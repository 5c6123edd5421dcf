package topology_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/topology"
	"github.com/cede-scheduler/cede/core/state"
)

// cluster returns a cluster of 200 nodes, most of them in a zone, a rack or both. Several nodes
// are of one class, and several classes have one value.
func cluster(r *rand.Rand) *state.Store {
	store := state.New()
	txn := store.Begin(1)
	for i := range 200 {
		n := coretest.Node(fmt.Sprintf("n%03d", i), int64(4+r.IntN(9)), int64(6+r.IntN(7)), 0)
		n.Attributes = map[string]string{"version": []string{"1.0", "1.9", "1.10", "2.0", "x"}[r.IntN(5)]}
		if z := r.IntN(4); z > 0 {
			n.Attributes["zone"] = fmt.Sprint("z", z)
		}
		if z := r.IntN(8); z > 0 {
			n.Attributes["rack"] = fmt.Sprint("r", z)
		}
		must(txn.NodeWriter().Upsert(n))
	}
	txn.Commit()
	return store
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// partition looks up the value of every node.
func partition(snap *state.Snapshot, key string, outer *feasible.Domain) (list []*feasible.Domain) {
	byValue := map[string]*feasible.Domain{}
	for _, pos := range snap.NodeOrder() {
		value, ok := snap.NodeAt(pos).Domain(key)
		if !ok || outer != nil && !outer.Contains(snap.NodeAt(pos)) {
			continue
		}
		d := byValue[value]
		if d == nil {
			d = &feasible.Domain{Key: key, Value: value, Outer: outer, Spans: make([]feasible.Span, snap.ChunkCount())}
			byValue[value], list = d, append(list, d)
		}
		s := &d.Spans[pos/state.ChunkSize]
		s.Chunk, s.Nodes = int(pos/state.ChunkSize), s.Nodes|1<<(pos%state.ChunkSize)
	}
	for _, d := range list {
		var spans []feasible.Span
		for _, s := range d.Spans {
			if s.Nodes != 0 {
				spans = append(spans, s)
			}
		}
		d.Spans = spans
	}
	return list
}

// The nodes of a class share a domain, unless domains are single nodes.
func TestPartition_EqualsValuesOfNodes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		snap := cluster(rand.New(rand.NewPCG(3, seed))).Snapshot()
		for _, key := range []string{"zone", "rack", "version", "node.class", model.AttributeNodeID, model.TopologyNode} {
			for _, outer := range append(partition(snap, "zone", nil), nil) {
				got, want := topology.Partition(snap, key, outer, snap.NodeOrder()), partition(snap, key, outer)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d, key %s in %v: %v, want %v", seed, key, outer, got, want)
				}
			}
		}
	}
}
