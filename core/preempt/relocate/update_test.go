package relocate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/relocate"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/scheduler/rank"
	"github.com/cede-scheduler/cede/core/state"
)

// After any changes of nodes, the answers are those that a new search gives, also in clusters
// of which only a part is examined.
func TestFinder_UpdateAnswersAsNewSearch(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		snap := fullCluster(r, 200+40*int(seed))
		var order rank.Order
		order.Refresh(snap, tiebreak.Order{})
		setup := relocate.Setup{Snap: snap, Now: 1, Gap: 1, ByRank: order.ByRank}
		if seed%3 == 0 {
			setup.ByRank = nil
		}
		var kept, fresh relocate.Finder
		kept.Start(setup)
		answers(&kept, snap)
		for step := range 25 {
			var positions []int32
			snap, positions = change(r, snap, step)
			kept.Update(snap, positions, nil)
			setup.Snap = snap
			fresh.Start(setup)
			got, want := answers(&kept, snap), answers(&fresh, snap)
			for id := range want {
				if got[id] != want[id] {
					t.Fatalf("seed %d, step %d: %s: %+v, want %+v", seed, step, id, got[id], want[id])
				}
			}
		}
	}
}

// fullCluster returns a cluster whose nodes have little free capacity.
func fullCluster(r *rand.Rand, nodes int) *state.Snapshot {
	store := state.New()
	txn := store.Begin(1)
	var jobs []*model.Job
	for i := range 9 {
		j := coretest.Job(fmt.Sprint("j", i)).Priority(int32(10*(1+i%3))).Ask(int64(4+i%2), int64(4+i%3/2), 0).Count(nodes).Obj()
		if err := txn.JobWriter().Upsert(j); err != nil {
			panic(err)
		}
		jobs = append(jobs, j)
	}
	for i := range nodes {
		number := r.IntN(9)*1000 + i // tie order differs from that of positions
		id := fmt.Sprintf("n%04d", number)
		if err := txn.NodeWriter().Upsert(coretest.Node(id, 10, 10, 0)); err != nil {
			panic(err)
		}
		for k := range 2 {
			a := coretest.Running(fmt.Sprintf("a%d-%d", i, k), jobs[r.IntN(len(jobs))], 0, i, id)
			a.StartTime = int64(number - 10000) // work on later nodes costs less: each that is examined in addition may win
			txn.AllocWriter().Upsert(a)
		}
	}
	return txn.Commit()
}

// change evicts an allocation of one or two nodes, mostly for another one in its place.
func change(r *rand.Rand, snap *state.Snapshot, step int) (next *state.Snapshot, positions []int32) {
	txn := snap.Fork(snap.Index() + 1)
	for k := range 1 + r.IntN(2) {
		pos := int32(r.IntN(snap.NodeCount()))
		positions = append(positions, pos)
		rows := snap.Chunk(int(pos) / state.ChunkSize).Rows(int(pos) % state.ChunkSize)
		if len(rows) == 0 {
			continue
		}
		priority, leaving := int32(5+5*r.IntN(9)), rows[:1]
		if r.IntN(4) == 0 {
			priority, leaving = 90, rows // nothing on the node can be evicted any more
		}
		for x := range leaving {
			gone := *leaving[x].Alloc
			gone.Desired, gone.EndTime = model.DesiredEvict, 1
			txn.AllocWriter().Upsert(&gone)
		}
		if r.IntN(20) == 0 {
			continue // the capacity stays free
		}
		j := coretest.Job(fmt.Sprintf("new-%d-%d", step, k)).Priority(priority).Ask(4*int64(len(leaving)), 4, 0).Obj()
		a := coretest.Running(j.ID, j, 0, 0, snap.NodeAt(pos).ID)
		a.StartTime = -int64(r.IntN(1000))
		txn.AllocWriter().Upsert(a)
	}
	return txn.Snapshot(), positions
}

// answers returns the answer for every allocation.
func answers(f *relocate.Finder, snap *state.Snapshot) map[string]relocate.Answer {
	var view relocate.View
	view.Start(f)
	all := map[string]relocate.Answer{}
	for c := range snap.ChunkCount() {
		chunk := snap.Chunk(c)
		for i := range chunk.Len() {
			rows := chunk.Rows(i)
			for x := range rows {
				all[rows[x].Alloc.ID] = view.Of(&rows[x])
			}
		}
	}
	return all
}
