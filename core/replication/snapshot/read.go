package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication/codec"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state"
)

// A Restorer reads a stream into a transaction on an empty state. It serves one stream.
type Restorer struct {
	// Begin starts the transaction at the stream's index.
	Begin func(index uint64) *state.Txn
	// Modules stores a policy module. nil skips modules.
	Modules func(digest string, data []byte) error

	txn     *state.Txn
	job     *pb.JobBlock    // the last one read
	jobs    *codec.JobTable // its versions
	upload  *state.Upload   // its chunks are being read
	module  bytes.Buffer
	modules int // modules read
}

// Read reads a whole stream and verifies it. The caller commits or aborts the
// transaction. On an error, which is an *Error, the transaction was aborted; but
// modules may have been stored.
func (r *Restorer) Read(in io.Reader) (*state.Txn, error) {
	err := readRecords(in, r.record)
	if err == nil && r.txn == nil {
		err = &Error{What: "it is empty"}
	}
	if err != nil {
		if r.txn != nil {
			r.txn.Abort()
		}
		return nil, err
	}
	r.endUpload()
	return r.txn, nil
}

// record adds one record to the transaction. The head must be first, because vectors
// are stored by dimension, and a job must precede its allocations. After a decoding
// error an object is incomplete and must not be added, because the transaction would
// index it.
func (r *Restorer) record(m *pb.Record) error {
	if head := m.GetHead(); head != nil {
		return r.head(head)
	}
	if r.txn == nil {
		return errors.New("it does not start with a head")
	}
	// The chunks of an upload follow its record directly. Any other record ends it.
	if _, chunk := m.Record.(*pb.Record_UploadChunk); !chunk {
		r.endUpload()
	}
	var d codec.Decoder
	var err error
	switch c := m.Record.(type) {
	case *pb.Record_Config:
		r.txn.ConfigWriter().Set(d.SchedulerConfig(c.Config))
	case *pb.Record_PriorityClass:
		r.txn.PriorityClassWriter().Upsert(d.PriorityClass(c.PriorityClass))
	case *pb.Record_Namespace:
		r.txn.NamespaceWriter().Upsert(d.Namespace(c.Namespace))
	case *pb.Record_Budget:
		b := d.Budget(c.Budget)
		r.txn.BudgetWriter().Upsert(b)
		r.txn.BudgetWriter().RestoreEvictions(b.Key(), d.RecentEvictions(c.Budget))
	case *pb.Record_Node:
		if n := d.Node(c.Node); d.Err() == nil {
			err = r.txn.NodeWriter().Upsert(n)
		}
	case *pb.Record_Job:
		err = r.jobBlock(&d, c.Job)
	case *pb.Record_Allocs:
		err = r.allocBlock(c.Allocs)
	case *pb.Record_Eval:
		if e := d.Evaluation(c.Eval); d.Err() == nil {
			r.txn.EvalWriter().Upsert(e)
		}
	case *pb.Record_Claim:
		if claim := d.Claim(c.Claim); d.Err() == nil {
			r.txn.ClaimWriter().Upsert(claim)
		}
	case *pb.Record_Dirty:
		// Restoring the tables above has marked their jobs dirty at the index of the
		// snapshot. This record replaces the mark by the original index.
		key := keyOf(&d, c.Dirty.GetKey())
		r.txn.JobWriter().MarkDirtyAt(key, c.Dirty.GetIndex())
		r.txn.JobWriter().SetPreemptionHold(key, state.PreemptionHold{Index: c.Dirty.GetHeld(), Time: c.Dirty.GetHeldAt()})
	case *pb.Record_Cluster, *pb.Record_Binding, *pb.Record_Assignment:
		err = r.bindingRecord(&d, m)
	default:
		err = r.operatorRecord(&d, m)
	}
	return errors.Join(d.Err(), err)
}

// bindingRecord adds a member cluster, a binding or an assignment. A duplicate would
// replace an assignment without releasing its capacity, so it is an error.
func (r *Restorer) bindingRecord(d *codec.Decoder, m *pb.Record) error {
	switch c := m.Record.(type) {
	case *pb.Record_Cluster:
		if cluster := d.Cluster(c.Cluster); d.Err() == nil {
			return r.txn.ClusterWriter().Upsert(cluster)
		}
	case *pb.Record_Binding:
		if b := d.Binding(c.Binding); d.Err() == nil {
			return r.txn.BindingWriter().Upsert(b)
		}
	case *pb.Record_Assignment:
		if a := d.Assignment(c.Assignment); d.Err() == nil {
			if r.txn.Assignment(a.ID) != nil {
				return fmt.Errorf("duplicate assignment %s", a.ID)
			}
			r.txn.AssignmentWriter().Upsert(a)
		}
	}
	return nil
}

// operatorRecord adds a policy, an upload, a token, a signer, an idempotency record or a chunk
// of a module. An unknown record is an error: a newer server wrote it, and the state
// would be incomplete without it.
func (r *Restorer) operatorRecord(d *codec.Decoder, m *pb.Record) error {
	switch c := m.Record.(type) {
	case *pb.Record_PolicyVersion:
		r.txn.PolicyWriter().UpsertVersion(d.PolicyVersion(c.PolicyVersion))
	case *pb.Record_PolicyState:
		r.txn.PolicyWriter().UpsertState(d.PolicyState(c.PolicyState))
	case *pb.Record_PolicyTrial:
		r.txn.PolicyWriter().UpsertTrial(d.PolicyTrial(c.PolicyTrial))
	case *pb.Record_Upload:
		r.upload = &state.Upload{Digest: c.Upload.GetDigest(), Time: c.Upload.GetTime()}
	case *pb.Record_UploadChunk:
		if r.upload == nil {
			return errors.New("chunk without an upload")
		}
		r.upload = r.upload.With(r.upload.Time, c.UploadChunk.GetData())
	case *pb.Record_Token:
		r.txn.TokenWriter().Upsert(d.Token(c.Token))
	case *pb.Record_Signer:
		r.txn.SignerWriter().Upsert(d.Signer(c.Signer))
	case *pb.Record_Audit:
		if a := d.AuditRecord(c.Audit); d.Err() == nil {
			if list := r.txn.AuditRecords(); len(list) > 0 && list[len(list)-1].Index >= a.Index {
				return fmt.Errorf("audit record of index %d is out of order", a.Index)
			}
			r.txn.AuditWriter().Append(a)
		}
	case *pb.Record_Applied:
		a := c.Applied
		if _, duplicate := r.txn.IdempotencyRecord(a.GetKey()); duplicate {
			return fmt.Errorf("duplicate idempotency key %q", a.GetKey())
		}
		r.txn.IdempotencyWriter().Add(a.GetKey(), state.IdempotencyRecord{
			Hash: d.Hash(a.GetHash()), Index: a.GetIndex(), Time: a.GetTime(), Result: a.GetResult(),
		})
	case *pb.Record_ModuleChunk:
		return r.moduleChunk(c.ModuleChunk)
	default:
		return fmt.Errorf("unsupported record %T", m.Record)
	}
	return nil
}

// head starts the transaction at the index of the snapshot. The dimensions are
// registered first and in the writer's order, because vectors are stored by position.
func (r *Restorer) head(m *pb.SnapshotHead) error {
	if r.txn != nil {
		return errors.New("second head")
	}
	r.txn = r.Begin(m.Index)
	if m.ClusterId != "" || m.ClusterVersion != 0 {
		var d codec.Decoder
		r.txn.ConfigWriter().SetMeta(state.Meta{ClusterID: m.ClusterId, Version: m.ClusterVersion, Key: d.Hash(m.ClusterKey), IndexOffset: m.IndexOffset})
		if d.Err() != nil {
			return d.Err()
		}
	}
	return r.txn.GrowDimensions(m.Dimensions...)
}

// jobBlock adds a job with its versions. The first Own versions belong to the job;
// further ones are referenced by allocations of earlier versions, which share the
// objects. Allocations follow in blocks of their own, which refer to versions by
// number.
func (r *Restorer) jobBlock(d *codec.Decoder, block *pb.JobBlock) error {
	key := keyOf(d, block.GetKey())
	r.job = block
	if int(block.Own) > min(len(block.Versions), state.MaxJobVersions) {
		return fmt.Errorf("job %s: %d own versions of %d", key, block.Own, len(block.Versions))
	}
	versions := make([]*model.Job, len(block.Versions))
	for i, m := range block.Versions {
		versions[i] = d.Job(m)
		if versions[i].Key() != key {
			return fmt.Errorf("job %s has a version of %s", key, versions[i].Key())
		}
	}
	r.jobs = codec.DecodeJobTable(versions)
	if d.Err() != nil || block.Own == 0 {
		return d.Err()
	}
	if err := r.txn.JobWriter().Upsert(versions[0]); err != nil {
		return err
	}
	return r.txn.JobWriter().SetOlderVersions(key, versions[1:block.Own:block.Own]...)
}

// allocBlock adds allocations of the job block before it. Names that repeat are
// stored once per block, and the decoder shares them.
func (r *Restorer) allocBlock(block *pb.AllocBlock) error {
	if r.job == nil {
		return errors.New("allocations without a job")
	}
	d := codec.NewDecoder(r.jobs, block.Names)
	for _, m := range block.Allocs {
		a := &model.Allocation{}
		if d.DecodeAllocation(m, a); d.Err() != nil {
			return d.Err()
		}
		if r.txn.Alloc(a.ID) != nil {
			return fmt.Errorf("duplicate allocation %s", a.ID)
		}
		r.txn.AllocWriter().Upsert(a)
	}
	return d.Err()
}

// endUpload adds an upload after its last chunk. An upload without chunks is added as
// well: its client has only begun.
func (r *Restorer) endUpload() {
	if r.upload != nil {
		r.txn.UploadWriter().Put(r.upload)
		r.upload = nil
	}
}

// moduleChunk gathers a policy module and stores it after its last chunk. Modules
// precede the state, so that they are stored before a state that uses them is
// committed. A reader that needs the state only, such as an inspection, skips them.
func (r *Restorer) moduleChunk(m *pb.ModuleChunk) error {
	if m.Offset != int64(r.module.Len()) {
		return fmt.Errorf("module %s: chunk at %d after %d bytes", m.Digest, m.Offset, r.module.Len())
	}
	r.module.Write(m.Data)
	if !m.Last {
		return nil
	}
	defer r.module.Reset()
	r.modules++
	if r.Modules == nil {
		return nil
	}
	return r.Modules(m.Digest, r.module.Bytes())
}

// keyOf returns the zero key for nil.
func keyOf(d *codec.Decoder, m *pb.JobKey) (key model.JobKey) {
	if k := d.JobKey(m); k != nil {
		key = *k
	}
	return key
}
