package fsm_test

import (
	"bytes"
	"log/slog"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/replication/fsm"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A Server is a state machine without Raft. Entries are applied by the caller's
// goroutine, at consecutive indexes.
type server struct {
	Store    *state.Store
	Modules  *replicationtest.Modules
	FSM      *fsm.FSM
	Index    uint64                // of the last entry
	Observed []replication.Applied // nil stops recording
	quiet    bool
}

// newServer returns a server with an empty state.
func newServer() *server {
	s := &server{Store: state.New(), Modules: replicationtest.NewModules()}
	s.FSM = fsm.New(&fsm.Config{
		Store: s.Store, Modules: s.Modules, Versions: replication.Ours(), Logger: slog.New(slog.DiscardHandler),
		Observe: func(applied []replication.Applied) {
			if !s.quiet {
				s.Observed = append(s.Observed, applied...)
			}
		},
	})
	return s
}

// Quiet stops recording what is observed.
func (s *server) Quiet() { s.quiet, s.Observed = true, nil }

// Apply applies an entry at the next index.
func (s *server) Apply(t rapid.TB, e *replication.Entry) *replication.Result {
	t.Helper()
	return s.ApplyData(t, codec.Encode(e))
}

// ApplyData applies an encoded entry at the next index. It fails the test if the FSM
// halts.
func (s *server) ApplyData(t rapid.TB, data []byte) *replication.Result {
	t.Helper()
	s.Index++
	switch response := s.FSM.Apply(&raft.Log{Index: s.Index, Type: raft.LogCommand, Data: data}).(type) {
	case *replication.Result:
		return response
	default:
		t.Fatal(response)
		return nil
	}
}

// Do applies a command. The time of the entry is its index in microseconds, so that
// entries are in order of time.
func (s *server) Do(t rapid.TB, c replication.Command) *replication.Result {
	t.Helper()
	return s.Apply(t, &replication.Entry{Time: int64(s.Index) * 1000, Command: c})
}

// MustDo applies a command that must not be refused.
func (s *server) MustDo(t rapid.TB, c replication.Command) *replication.Result {
	t.Helper()
	r := s.Do(t, c)
	if r.Err != nil {
		t.Fatalf("%T: %v", c, r.Err)
	}
	return r
}

// Snapshot returns the current state.
func (s *server) Snapshot() *state.Snapshot { return s.Store.Snapshot() }

// Persist returns a snapshot as Raft writes it. It takes the path of Raft's snapshots,
// FSM.Snapshot, and not that of an operator's.
func (s *server) Persist(t rapid.TB) []byte {
	t.Helper()
	snap, err := s.FSM.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Release()
	var out sink
	if err := snap.Persist(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A sink is a raft.SnapshotSink in memory.
type sink struct{ bytes.Buffer }

// ID implements raft.SnapshotSink.
func (*sink) ID() string { return "test" }

// Close implements raft.SnapshotSink.
func (*sink) Close() error { return nil }

// Cancel implements raft.SnapshotSink.
func (*sink) Cancel() error { return nil }

// batchOf returns a batch of one plan with all of its commit groups. It counts all
// groups as committed, as if the planner had accepted them.
func batchOf(j *model.Job, groups ...model.CommitGroup) *apply.Batch {
	plan := &model.Plan{EvalID: "e1", Job: j.Key(), Priority: j.Priority, Groups: groups}
	b := &apply.Batch{Now: 77, Plans: []apply.BatchPlan{{Plan: plan}}}
	for i := range groups {
		b.Plans[0].Groups = append(b.Plans[0].Groups, i)
	}
	return b
}

// placement returns a commit group that places an allocation and evicts victims. The
// evictions serve the placement.
func placement(j *model.Job, id, node string, victims ...string) model.CommitGroup {
	g := model.CommitGroup{Placements: []*model.Allocation{{ID: id, Job: j, Group: j.Groups[0], NodeID: node, EvalID: "e1"}}}
	for _, v := range victims {
		g.Evictions = append(g.Evictions, model.Eviction{AllocID: v, By: id})
	}
	return g
}
