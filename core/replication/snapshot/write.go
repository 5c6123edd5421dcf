package snapshot

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state"
)

// allocsPerBlock bounds the size of a record of allocations. Larger blocks share more
// names; smaller ones need less memory at once.
const allocsPerBlock = 1000

// Write writes a state. module returns the bytes of a policy module; nil omits modules.
// It returns the error of module or of out. It costs a walk over the state, and needs
// the memory of one record.
func Write(out io.Writer, sn *state.Snapshot, module func(digest string) ([]byte, error)) error {
	w := newRecordWriter(out)
	w.writeHead(sn, sn.Index())
	if module != nil {
		if err := w.writeModules(sn, module); err != nil {
			return err
		}
	}
	w.writeState(sn)
	return w.end(out)
}

// Hash returns the hash of a state without its index and its modules' bytes. It is
// equal on servers with equal state. It walks the whole state.
func Hash(sn *state.Snapshot) [32]byte {
	h := sha256.New()
	w := newRecordWriter(h)
	w.writeHead(sn, 0) // a restored state may be at a later index than the original
	w.writeState(sn)
	if err := w.end(h); err != nil {
		panic("snapshot: hash: " + err.Error()) // a hash does not fail to write
	}
	return [32]byte(h.Sum(nil))
}

// writeHead writes the dimensions first: vectors mean nothing without them.
func (w *recordWriter) writeHead(sn *state.Snapshot, index uint64) {
	meta := sn.Meta()
	if index == 0 {
		meta.IndexOffset = 0
	}
	w.write(&pb.Record{Record: &pb.Record_Head{Head: &pb.SnapshotHead{
		Index: index, Dimensions: sn.Dims().Names(),
		ClusterId: codec.Text(meta.ClusterID), ClusterVersion: meta.Version, ClusterKey: codec.HashBytes(&meta.Key), IndexOffset: meta.IndexOffset,
	}}})
}

// writeModules precedes the state, so that a restore stores the modules before it
// replaces the state that uses them.
func (w *recordWriter) writeModules(sn *state.Snapshot, module func(string) ([]byte, error)) error {
	var written []string
	for _, v := range sn.PolicyVersions() {
		if !v.HasModule() || slices.Contains(written, v.Digest) {
			continue
		}
		written = append(written, v.Digest)
		data, err := module(v.Digest)
		if err != nil {
			return fmt.Errorf("module %s: %w", v.Digest, err)
		}
		for offset := 0; offset == 0 || offset < len(data); offset += replication.MaxChunk {
			end := min(offset+replication.MaxChunk, len(data))
			w.write(&pb.Record{Record: &pb.Record_ModuleChunk{ModuleChunk: &pb.ModuleChunk{
				Digest: codec.Text(v.Digest), Offset: int64(offset), Data: data[offset:end], Last: end == len(data),
			}}})
		}
	}
	return w.err
}

// writeState writes the tables in an order that does not depend on where their
// rows are in memory. Dirty indexes are last but one: restoring a table marks jobs
// dirty.
func (w *recordWriter) writeState(sn *state.Snapshot) {
	var e codec.Encoder
	w.write(&pb.Record{Record: &pb.Record_Config{Config: e.SchedulerConfig(sn.Config())}})
	for _, c := range sn.PriorityClasses() {
		w.write(&pb.Record{Record: &pb.Record_PriorityClass{PriorityClass: e.PriorityClass(c)}})
	}
	for _, n := range sn.Namespaces() {
		w.write(&pb.Record{Record: &pb.Record_Namespace{Namespace: e.Namespace(n)}})
	}
	for at, b := range sn.Budgets() {
		w.write(&pb.Record{Record: &pb.Record_Budget{Budget: e.BudgetWithEvictions(b, sn.RecentEvictions(int32(at)))}})
	}
	for n := range sn.Nodes() {
		var e codec.Encoder // the arena of IDs lives as long as its encoder
		w.write(&pb.Record{Record: &pb.Record_Node{Node: e.Node(n)}})
	}
	for key := range sn.DirtyIndexes() {
		w.writeJob(sn, key)
	}
	w.writeBindings(sn)
	for ev := range sn.Evals() {
		var e codec.Encoder
		w.write(&pb.Record{Record: &pb.Record_Eval{Eval: e.Evaluation(ev)}})
	}
	for c := range sn.Claims() {
		var e codec.Encoder
		w.write(&pb.Record{Record: &pb.Record_Claim{Claim: e.Claim(c)}})
	}
	for key, index := range sn.DirtyIndexes() {
		held := sn.PreemptionHold(key)
		w.write(&pb.Record{Record: &pb.Record_Dirty{Dirty: &pb.JobKeyDirty{
			Key: e.JobKey(&key), Index: index, Held: held.Index, HeldAt: held.Time,
		}}})
	}
	w.writeOperatorTables(sn)
}

// writeJob writes the versions of a job, followed by its allocations. Allocations
// are in order of insertion, which the scheduler can observe.
func (w *recordWriter) writeJob(sn *state.Snapshot, key model.JobKey) {
	own := sn.JobVersions(key)
	allocs := sn.AppendJobAllocs(nil, key)
	if len(own)+len(allocs) == 0 {
		return // only evaluations refer to it
	}
	table := codec.NewJobTable(own...)
	for _, a := range allocs {
		table.Add(a.Job)
	}
	var e codec.Encoder
	block := &pb.JobBlock{Key: e.JobKey(&key), Own: uint32(len(own))}
	for _, j := range table.Versions() {
		block.Versions = append(block.Versions, e.Job(j))
	}
	w.write(&pb.Record{Record: &pb.Record_Job{Job: block}})
	for part := range slices.Chunk(allocs, allocsPerBlock) {
		e := codec.NewEncoder(table)
		list := e.EncodeAllocations(part)
		w.write(&pb.Record{Record: &pb.Record_Allocs{Allocs: &pb.AllocBlock{Names: e.Names(), Allocs: list}}})
	}
}

// writeBindings writes member clusters, bindings and assignments. Assignments come
// last, since they refer to both.
func (w *recordWriter) writeBindings(sn *state.Snapshot) {
	var e codec.Encoder
	for c := range sn.Clusters() {
		w.write(&pb.Record{Record: &pb.Record_Cluster{Cluster: e.Cluster(c)}})
	}
	for b := range sn.Bindings() {
		w.write(&pb.Record{Record: &pb.Record_Binding{Binding: e.Binding(b)}})
	}
	for a := range sn.Assignments() {
		w.write(&pb.Record{Record: &pb.Record_Assignment{Assignment: e.Assignment(a)}})
	}
}

// writeOperatorTables writes the tables that the scheduler does not read.
func (w *recordWriter) writeOperatorTables(sn *state.Snapshot) {
	var e codec.Encoder
	for _, v := range sn.PolicyVersions() {
		w.write(&pb.Record{Record: &pb.Record_PolicyVersion{PolicyVersion: e.PolicyVersion(v)}})
	}
	for _, p := range sn.PolicyStates() {
		w.write(&pb.Record{Record: &pb.Record_PolicyState{PolicyState: e.PolicyState(p)}})
	}
	for _, t := range sn.PolicyTrials() {
		w.write(&pb.Record{Record: &pb.Record_PolicyTrial{PolicyTrial: e.PolicyTrial(t)}})
	}
	for _, u := range sn.Uploads() {
		w.write(&pb.Record{Record: &pb.Record_Upload{Upload: &pb.Upload{Digest: codec.Text(u.Digest), Time: u.Time}}})
		for _, c := range u.Chunks {
			w.write(&pb.Record{Record: &pb.Record_UploadChunk{UploadChunk: &pb.UploadChunk{Data: c}}})
		}
	}
	for _, t := range sn.Tokens() {
		w.write(&pb.Record{Record: &pb.Record_Token{Token: e.Token(t)}})
	}
	for _, s := range sn.Signers() {
		w.write(&pb.Record{Record: &pb.Record_Signer{Signer: e.Signer(s)}})
	}
	for _, r := range sn.AuditRecords() {
		w.write(&pb.Record{Record: &pb.Record_Audit{Audit: e.AuditRecord(r)}})
	}
	for key, a := range sn.IdempotencyRecords() {
		w.write(&pb.Record{Record: &pb.Record_Applied{Applied: &pb.AppliedKey{
			Key: codec.Text(key), Hash: codec.HashBytes(&a.Hash), Index: a.Index, Time: a.Time, Result: a.Result,
		}}})
	}
}
