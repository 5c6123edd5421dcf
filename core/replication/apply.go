package replication

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// applier is one entry on its way into the state. What it does follows from the
// transaction and the entry alone: no clock, no chance, no order of a map.
type applier struct {
	entry  *Entry
	now    int64
	txn    *state.Txn
	result *Result

	modules []*state.Upload // to be kept before the commit
	unused  []string        // digests of modules to be dropped after it
}

// run does what the entry says, or nothing.
func (a *applier) run() *Refusal {
	switch c := a.entry.Command.(type) {
	case *Bootstrap:
		return a.bootstrap(c)
	case *SetVersion:
		return a.setVersion(c)
	case *RegisterJob:
		return a.registerJob(c)
	case *StopJob:
		return a.stopJob(c)
	case *StopAllocs:
		return a.stopAllocs(c)
	case *WriteEvals:
		return a.writeEvals(c.Evals)
	case *ApplyPlans:
		return a.applyPlans(c)
	case *RegisterNodes:
		return a.registerNodes(c)
	case *ChangeNodes:
		return a.changeNodes(c)
	case *DeleteNodes:
		return a.deleteNodes(c)
	case *UpdateAllocs:
		return a.updateAllocs(c)
	case *SetConfig:
		return a.setConfig(c)
	case *UpsertPriorityClass:
		return a.upsertPriorityClass(c)
	case *DeletePriorityClass:
		return a.deletePriorityClass(c)
	case *UpsertBudget:
		return a.upsertBudget(c.Budget)
	case *DeleteBudget:
		return a.deleteBudget(c.Key)
	case *UpsertClusters:
		return a.upsertClusters(c.Clusters)
	case *ChangeClusters:
		return a.changeClusters(c.Changes)
	case *DeleteCluster:
		return a.deleteCluster(c)
	case *UpsertBinding:
		return a.upsertBinding(c)
	case *StopBinding:
		return a.stopBinding(c)
	case *DeleteBinding:
		return a.deleteBinding(c.Key)
	case *EndAssignments:
		return a.endAssignments(c.IDs)
	case *UpdateAssignments:
		return a.updateAssignments(c.Updates)
	case *StopAssignments:
		return a.stopAssignments(c)
	case *Collect:
		return a.collect(c)
	case *PutChunk:
		return a.putChunk(c)
	case *LoadPolicy:
		return a.loadPolicy(c.Version)
	case *CheckPolicy:
		return a.checkPolicy(c)
	case *ChangePolicy:
		return a.changePolicy(c)
	case *PutToken:
		return a.putToken(c)
	case *DeleteToken:
		return a.deleteToken(c)
	}
	panic(fmt.Sprintf("replication: %T is not applied", a.entry.Command))
}

// replay answers a request that was answered before; false when it was not.
// Another request under the same key is refused.
func (a *applier) replay() bool {
	if a.entry.Key == "" {
		return false
	}
	a.txn.ExpireIdempotencyRecords(a.now)
	was, ok := a.txn.IdempotencyRecord(a.entry.Key)
	if !ok {
		return false
	}
	if was.Hash != a.entry.Hash {
		a.result.Err = refuse(CodeConflict, "idempotency key %q was used for another request, at index %d", a.entry.Key, was.Index)
		return true
	}
	a.result = a.recall(was)
	return true
}

// remember keeps what became of the entry under its key.
func (a *applier) remember() {
	e := a.entry
	if e.Key == "" {
		return
	}
	a.txn.ExpireIdempotencyRecords(a.now)
	var w writer
	m := &pb.Result{}
	if r := a.result.Err; r != nil {
		m.Code, m.Message = text(r.Code), text(r.Message)
	}
	for _, ev := range a.result.Evals {
		m.Evals = append(m.Evals, w.id(ev.ID))
		m.EvalJobs = append(m.EvalJobs, keyToPB(ev.JobKey()))
	}
	for _, d := range a.result.Dropped {
		m.Dropped = append(m.Dropped, uint32(d.Plan), uint32(d.Group))
	}
	a.txn.AddIdempotencyRecord(e.Key, state.IdempotencyRecord{
		Hash: e.Hash, Index: a.result.Index, Time: a.now, Result: mustMarshal(sorted, m),
	})
}

// recall is the result that remember kept. Evaluations are as they are now; of
// those that are gone the id and the job are left.
func (a *applier) recall(was state.IdempotencyRecord) *Result {
	var m pb.Result
	if err := proto.Unmarshal(was.Result, &m); err != nil {
		panic("replication: remembered result: " + err.Error())
	}
	var r reader
	result := &Result{Index: was.Index, Replayed: true}
	if m.Code != "" {
		result.Err = &Refusal{Code: m.Code, Message: m.Message}
	}
	for i, packed := range m.Evals {
		id, key := r.id(packed), keyOf(m.EvalJobs[i])
		ev := a.txn.Eval(id)
		if ev == nil {
			ev = &model.Evaluation{ID: id, Namespace: key.Namespace, JobID: key.ID}
		}
		result.Evals = append(result.Evals, ev)
	}
	for i := 0; i+1 < len(m.Dropped); i += 2 {
		result.Dropped = append(result.Dropped, apply.DroppedGroup{Plan: int(m.Dropped[i]), Group: int(m.Dropped[i+1])})
	}
	return result
}

// derived notes evaluations that followed from the entry.
func (a *applier) derived(evals []*model.Evaluation) {
	a.result.Evals = append(a.result.Evals, evals...)
}
