package replicationtest

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/replication/fsm"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A Server is a state machine without Raft.
type Server struct {
	Store    *state.Store
	Modules  *Modules
	FSM      *fsm.FSM
	Index    uint64                // of the last entry
	Observed []replication.Applied // nil stops recording
	quiet    bool
}

// NewServer returns a server with an empty state.
func NewServer() *Server {
	s := &Server{Store: state.New(), Modules: NewModules()}
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
func (s *Server) Quiet() { s.quiet, s.Observed = true, nil }

// Apply applies an entry at the next index.
func (s *Server) Apply(t rapid.TB, e *replication.Entry) *replication.Result {
	t.Helper()
	return s.ApplyData(t, codec.Encode(e))
}

// ApplyData applies an encoded entry at the next index.
func (s *Server) ApplyData(t rapid.TB, data []byte) *replication.Result {
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

// Do applies a command.
func (s *Server) Do(t rapid.TB, c replication.Command) *replication.Result {
	t.Helper()
	return s.Apply(t, &replication.Entry{Time: int64(s.Index) * 1000, Command: c})
}

// MustDo applies a command that must not be refused.
func (s *Server) MustDo(t rapid.TB, c replication.Command) *replication.Result {
	t.Helper()
	r := s.Do(t, c)
	if r.Err != nil {
		t.Fatalf("%T: %v", c, r.Err)
	}
	return r
}

// Snapshot returns the current state.
func (s *Server) Snapshot() *state.Snapshot { return s.Store.Snapshot() }

// Persist returns a snapshot as Raft writes it.
func (s *Server) Persist(t rapid.TB) []byte {
	t.Helper()
	snap, err := s.FSM.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Release()
	var out Sink
	if err := snap.Persist(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Restore replaces the state by a snapshot.
func (s *Server) Restore(data []byte) error {
	return s.FSM.Restore(io.NopCloser(bytes.NewReader(data)))
}

// A Sink is a raft.SnapshotSink in memory.
type Sink struct{ bytes.Buffer }

// ID implements raft.SnapshotSink.
func (*Sink) ID() string { return "test" }

// Close implements raft.SnapshotSink.
func (*Sink) Close() error { return nil }

// Cancel implements raft.SnapshotSink.
func (*Sink) Cancel() error { return nil }

// WebKey is the key of WebJob.
var WebKey = model.JobKey{Namespace: "default", ID: "web"}

// WebJob returns a job of two instances that use 60 of a node's 100 CPU.
func WebJob(priority int32) *model.Job {
	return &model.Job{Namespace: "default", ID: "web", Priority: priority, Groups: []*model.Group{{
		Name: "g", Count: 2, Resources: model.Resources{"cpu": 60},
	}}}
}

// NumberedJob returns a job with a specification that depends on n.
func NumberedJob(id string, n int) *model.Job {
	return &model.Job{Namespace: "default", ID: id, Meta: map[string]string{"n": fmt.Sprint(n)}, Groups: []*model.Group{{Name: "g"}}}
}

// Node returns a node with 100 of CPU and memory.
func Node(id string) *model.Node {
	return &model.Node{ID: id, Datacenter: "dc1", Capacity: model.Resources{"cpu": 100, "memory": 100}}
}

// Eval returns a pending evaluation.
func Eval(id string, key model.JobKey) *model.Evaluation {
	return &model.Evaluation{ID: id, Namespace: key.Namespace, JobID: key.ID, TriggeredBy: model.TriggerJobRegister}
}

// Batch returns a batch of one plan with all of its commit groups.
func Batch(j *model.Job, groups ...model.CommitGroup) *apply.Batch {
	plan := &model.Plan{EvalID: "e1", Job: j.Key(), Priority: j.Priority, Groups: groups}
	b := &apply.Batch{Now: 77, Plans: []apply.BatchPlan{{Plan: plan}}}
	for i := range groups {
		b.Plans[0].Groups = append(b.Plans[0].Groups, i)
	}
	return b
}

// Placement returns a commit group that places an allocation and evicts victims.
func Placement(j *model.Job, id, node string, victims ...string) model.CommitGroup {
	g := model.CommitGroup{Placements: []*model.Allocation{{ID: id, Job: j, Group: j.Groups[0], NodeID: node, EvalID: "e1"}}}
	for _, v := range victims {
		g.Evictions = append(g.Evictions, model.Eviction{AllocID: v, By: id})
	}
	return g
}
