package state_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// scribble writes random changes to a transaction. Branches share the jobs of the
// snapshot, as they do in the server.
func scribble(r *rand.Rand, t *Txn) {
	nodeID := func() string { return fmt.Sprintf("node-%03d", r.IntN(200)) }
	key := model.JobKey{Namespace: "default", ID: fmt.Sprintf("job-%d", r.IntN(10))}
	for range 1 + r.IntN(20) {
		j := t.Job(key)
		switch op := r.IntN(10); {
		case op == 0:
			_ = t.NodeWriter().Upsert(&model.Node{
				ID: nodeID(), Capacity: model.Resources{"cpu": 1000}, Ports: []uint16{22},
				Attributes: map[string]string{"rack": fmt.Sprint(r.IntN(5))},
			})
		case op == 1:
			t.NodeWriter().Delete(nodeID())
		case op == 2 || j == nil:
			_ = t.JobWriter().Upsert(&model.Job{
				Namespace: key.Namespace, ID: key.ID, Type: model.JobType(r.IntN(model.JobTypes)), Priority: int32(r.IntN(100)),
				Groups: []*model.Group{{Name: "g", Resources: model.Resources{"cpu": 10}, Ports: []uint16{80}}},
			})
		case op == 3:
			apply.NodeStatus(t, 1, []string{nodeID(), nodeID()}, apply.NodeChange{Drain: new(r.IntN(2) == 0)})
		case op == 4:
			t.ClaimWriter().Upsert(&model.Claim{ID: nodeID(), NodeID: nodeID(), Claimant: key})
		case op == 5:
			if as := t.AppendJobAllocs(nil, key); len(as) > 0 {
				t.AllocWriter().Delete(as[r.IntN(len(as))].ID)
			}
		case op == 6:
			for _, a := range t.AppendNodeAllocs(nil, nodeID()) {
				again := *a
				again.Desired = model.DesiredEvict
				t.AllocWriter().Upsert(&again)
			}
		default:
			a := &model.Allocation{ID: fmt.Sprintf("alloc-%d-%d", t.Index(), r.Uint64()), Job: j, Group: j.Groups[0], NodeID: nodeID()}
			t.AllocWriter().Upsert(a)
		}
	}
}

// TestStore_ReadersAndForksBesideTheWriter is for the race detector: one writer
// commits while readers check whole snapshots and planners write to forks of them.
func TestStore_ReadersAndForksBesideTheWriter(t *testing.T) {
	t.Parallel()
	s := New()
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			kept := []*Snapshot{s.Snapshot()}
			for {
				select {
				case <-done:
					return
				default:
				}
				kept = append(kept, s.Snapshot())
				if len(kept) > 5 {
					kept = kept[1:]
				}
				sn := kept[r.IntN(len(kept))]
				if i > 0 {
					fork := sn.Fork(sn.Index() + 1)
					scribble(r, fork)
					first := fork.Snapshot()
					scribble(r, fork)
					kept[0] = first
					sn = fork.Snapshot()
				}
				if err := sn.Check(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(9, 9))
	for i := range soak.Count(300, 30_000) {
		txn := s.Begin(uint64(i + 1))
		scribble(r, txn)
		if i%7 == 0 {
			txn.Abort()
			continue
		}
		txn.Commit()
	}
	close(done)
	wg.Wait()
	if err := s.Snapshot().Check(); err != nil {
		t.Fatal(err)
	}
}
