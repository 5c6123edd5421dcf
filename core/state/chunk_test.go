package state_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
)

// TestChunk_FittingIsFits compares the scan with model.Fits, for requests of any
// number of dimensions, and nodes that are overcommitted or ineligible.
func TestChunk_FittingIsFits(t *testing.T) {
	t.Parallel()
	checkProperty(t, func(t *rapid.T) {
		names := []string{"cpu", "memory", "disk", "network", "a", "b", "c", "d"}
		amounts := func(r model.Resources, label string) {
			for _, name := range names[:rapid.IntRange(0, len(names)).Draw(t, label+"s")] {
				r[name] = rapid.SampledFrom([]int64{0, 1, 5, 6, 10, model.MaxAmount}).Draw(t, label)
			}
		}
		s := New()
		txn := s.Begin(1)
		defer txn.Abort()
		ask := model.Resources{}
		amounts(ask, "ask")
		j := jobOf("j", 1)
		j.Groups[0].Resources = ask
		if err := txn.JobWriter().Upsert(j); err != nil {
			t.Fatal(err)
		}
		nodes := rapid.IntRange(1, ChunkSize+2).Draw(t, "nodes")
		for i := range nodes {
			n := &model.Node{ID: fmt.Sprintf("n%03d", i), Capacity: model.Resources{}, Ineligible: rapid.IntRange(0, 9).Draw(t, "away") == 0}
			amounts(n.Capacity, "capacity")
			if err := txn.NodeWriter().Upsert(n); err != nil {
				t.Fatal(err)
			}
			for k := range rapid.IntRange(0, 2).Draw(t, "placed") {
				txn.AllocWriter().Upsert(allocOf(txn, fmt.Sprintf("a%d-%d", i, k), "j", n.ID))
			}
		}
		want := &j.Groups[0].Ask
		for pos := range nodes {
			c, i := txn.Chunk(pos/ChunkSize), pos%ChunkSize
			fits := c.Node(i).IsEligible() && model.Fits(c.FreeCapacity(i), want, nil).Kind == model.ShortageNone
			if got := c.Fitting(want)>>i&1 == 1; got != fits {
				t.Fatalf("node %d: %t, want %t for %v", pos, got, fits, want)
			}
		}
		if last := txn.Chunk(txn.ChunkCount() - 1); nodes%ChunkSize != 0 && last.Fitting(want)>>(nodes%ChunkSize) != 0 {
			t.Fatal("positions that are not in use fit")
		}
	})
}

// TestChunk_PreemptibleComparesMinPriority compares the scan with the priority of each node.
func TestChunk_PreemptibleComparesMinPriority(t *testing.T) {
	t.Parallel()
	checkProperty(t, func(t *rapid.T) {
		s := New()
		txn := s.Begin(1)
		defer txn.Abort()
		for i := range rapid.IntRange(1, ChunkSize).Draw(t, "nodes") {
			id := fmt.Sprintf("n%03d", i)
			if err := txn.NodeWriter().Upsert(&model.Node{ID: id}); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "empty") {
				continue
			}
			j := jobOf(id, 1)
			j.Priority = rapid.Int32Range(-2, 2).Draw(t, "priority")
			j.NonPreemptible = rapid.IntRange(0, 3).Draw(t, "stays") == 0
			if err := txn.JobWriter().Upsert(j); err != nil {
				t.Fatal(err)
			}
			txn.AllocWriter().Upsert(allocOf(txn, id, id, id))
		}
		c := txn.Chunk(0)
		for ceiling := int64(-3); ceiling <= 3; ceiling++ {
			for i := range ChunkSize {
				if got, want := c.Preemptible(ceiling)>>i&1 == 1, int64(c.MinPriority(i)) <= ceiling; got != want {
					t.Fatalf("node %d with minimum priority %d: %t up to %d", i, c.MinPriority(i), got, ceiling)
				}
			}
		}
	})
}
