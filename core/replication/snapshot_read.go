package replication

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state"
)

// restorer reads a stream into a transaction on an empty state, which is
// committed when all of it was read and its checksum held.
type restorer struct {
	begin func(index uint64) *state.Txn
	// keep has a module kept on this server; nil: modules are skipped.
	keep func(digest string, data []byte) error

	txn     *state.Txn
	job     *pb.JobBlock
	jobs    *jobTable // versions of job
	upload  *state.Upload
	module  bytes.Buffer
	modules int
}

// take puts in one record.
func (s *restorer) take(m *pb.Record) error {
	if head := m.GetHead(); head != nil {
		return s.head(head)
	}
	if s.txn == nil {
		return errors.New("it does not start with a head")
	}
	if _, chunk := m.Record.(*pb.Record_UploadChunk); !chunk {
		s.endUpload()
	}
	var r reader
	var err error
	switch c := m.Record.(type) {
	case *pb.Record_Config:
		s.txn.SetConfig(r.config(c.Config))
	case *pb.Record_PriorityClass:
		s.txn.UpsertPriorityClass(classOf(c.PriorityClass))
	case *pb.Record_Budget:
		b := budgetOf(c.Budget)
		s.txn.UpsertBudget(b)
		s.txn.RestoreEvictions(b.Key(), recentOf(c.Budget))
	case *pb.Record_Node:
		if n := r.node(c.Node); r.err == nil {
			err = s.txn.UpsertNode(n)
		}
	case *pb.Record_Job:
		err = s.takeJob(&r, c.Job)
	case *pb.Record_Allocs:
		err = s.takeAllocs(&r, c.Allocs)
	case *pb.Record_Eval:
		if e := r.eval(c.Eval); r.err == nil {
			s.txn.UpsertEvals(e)
		}
	case *pb.Record_Claim:
		if claim := r.claim(c.Claim); r.err == nil {
			s.txn.UpsertClaim(claim)
		}
	case *pb.Record_Dirty:
		s.txn.MarkDirtyAt(keyOf(c.Dirty.GetKey()), c.Dirty.GetIndex())
		s.txn.SetPreemptionHold(keyOf(c.Dirty.GetKey()), state.PreemptionHold{Index: c.Dirty.GetHeld(), Time: c.Dirty.GetHeldAt()})
	default:
		err = s.aside(&r, m)
	}
	return errors.Join(r.err, err)
}

func (s *restorer) aside(r *reader, m *pb.Record) error {
	switch c := m.Record.(type) {
	case *pb.Record_Cluster, *pb.Record_Binding, *pb.Record_Assignment:
		return s.bindings(r, m)
	case *pb.Record_PolicyVersion:
		s.txn.UpsertPolicyVersion(versionOf(c.PolicyVersion))
	case *pb.Record_PolicyState:
		s.txn.UpsertPolicyState(policyStateOf(c.PolicyState))
	case *pb.Record_Upload:
		s.upload = &state.Upload{Digest: c.Upload.GetDigest(), Time: c.Upload.GetTime()}
	case *pb.Record_UploadChunk:
		if s.upload == nil {
			return errors.New("a chunk of nothing")
		}
		s.upload = s.upload.With(s.upload.Time, c.UploadChunk.GetData())
	case *pb.Record_Token:
		s.txn.UpsertToken(r.token(c.Token))
	case *pb.Record_Applied:
		a := c.Applied
		if _, twice := s.txn.IdempotencyRecord(a.GetKey()); twice {
			return fmt.Errorf("idempotency key %q comes twice", a.GetKey())
		}
		s.txn.AddIdempotencyRecord(a.GetKey(), state.IdempotencyRecord{
			Hash: r.hash(a.GetHash()), Index: a.GetIndex(), Time: a.GetTime(), Result: a.GetResult(),
		})
	case *pb.Record_ModuleChunk:
		return s.takeModule(c.ModuleChunk)
	default:
		return fmt.Errorf("%T is not read", m.Record)
	}
	return nil
}

func (s *restorer) bindings(r *reader, m *pb.Record) error {
	switch c := m.Record.(type) {
	case *pb.Record_Cluster:
		if cluster := r.cluster(&c.Cluster); r.err == nil {
			return s.txn.UpsertCluster(cluster)
		}
	case *pb.Record_Binding:
		if b := r.binding(c.Binding); r.err == nil {
			return s.txn.UpsertBinding(b)
		}
	case *pb.Record_Assignment:
		a := r.assignment(&c.Assignment)
		switch {
		case r.err != nil:
		case s.txn.Assignment(a.ID) != nil:
			return fmt.Errorf("assignment %s comes twice", a.ID)
		default:
			s.txn.UpsertAssignment(a)
		}
	}
	return r.err
}

func (s *restorer) head(m *pb.SnapshotHead) error {
	if s.txn != nil {
		return errors.New("a second head")
	}
	s.txn = s.begin(m.Index)
	if m.ClusterId != "" || m.ClusterVersion != 0 {
		var r reader
		s.txn.SetMeta(state.Meta{ClusterID: m.ClusterId, Version: m.ClusterVersion, Key: r.hash(m.ClusterKey)})
		if r.err != nil {
			return r.err
		}
	}
	return s.txn.GrowDimensions(m.Dimensions...)
}

func (s *restorer) takeJob(r *reader, block *pb.JobBlock) error {
	key := keyOf(block.GetKey())
	s.job, s.jobs = block, &jobTable{}
	if int(block.Own) > min(len(block.Versions), state.MaxJobVersions) {
		return fmt.Errorf("job %s: %d versions of its own, of %d", key, block.Own, len(block.Versions))
	}
	for _, m := range block.Versions {
		j := r.job(m)
		if j.Key() != key {
			return fmt.Errorf("job %s has a version of %s", key, j.Key())
		}
		s.jobs.list = append(s.jobs.list, j)
	}
	if r.err != nil || block.Own == 0 {
		return r.err
	}
	if err := s.txn.UpsertJob(s.jobs.list[0]); err != nil {
		return err
	}
	return s.txn.SetOlderVersions(key, s.jobs.list[1:block.Own:block.Own]...)
}

func (s *restorer) takeAllocs(r *reader, block *pb.AllocBlock) error {
	if s.job == nil {
		return errors.New("allocations without a job")
	}
	r.complete, r.jobs = true, s.jobs
	r.names = r.ids(block.Names)
	for _, m := range block.Allocs {
		a := &model.Allocation{}
		if r.alloc(m, a); r.err != nil {
			return r.err
		}
		if s.txn.Alloc(a.ID) != nil {
			return fmt.Errorf("allocation %s comes twice", a.ID)
		}
		s.txn.UpsertAllocs(a)
	}
	return nil
}

// endUpload puts in an upload whose last chunk has come.
func (s *restorer) endUpload() {
	if s.upload != nil {
		s.txn.PutUpload(s.upload)
		s.upload = nil
	}
}

func (s *restorer) takeModule(m *pb.ModuleChunk) error {
	if m.Offset != int64(s.module.Len()) {
		return fmt.Errorf("module %s: a chunk at %d after %d bytes", m.Digest, m.Offset, s.module.Len())
	}
	s.module.Write(m.Data)
	if !m.Last {
		return nil
	}
	defer s.module.Reset()
	s.modules++
	if s.keep == nil {
		return nil
	}
	return s.keep(m.Digest, s.module.Bytes())
}

// read reads a whole stream. The transaction is the caller's to commit or abort.
func (s *restorer) read(in io.Reader) error {
	if err := readRecords(in, s.take); err != nil {
		return err
	}
	if s.txn == nil {
		return &SnapshotError{What: "it is empty"}
	}
	s.endUpload()
	return nil
}
