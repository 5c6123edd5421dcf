package replication

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state"
)

// allocsPerBlock bounds a record of allocations.
const allocsPerBlock = 1000

// writeSnapshot writes the state as a stream. get gives the bytes of a policy
// module; nil leaves modules out.
func writeSnapshot(out io.Writer, sn *state.Snapshot, get func(digest string) ([]byte, error)) error {
	s := newRecords(out)
	s.begin(sn, sn.Index())
	if get != nil {
		if err := s.modules(sn, get); err != nil {
			return err
		}
	}
	s.state(sn)
	return s.end(out)
}

// Hash is of all that servers share: equal on servers with equal state at the
// same index. It costs a walk over everything.
func Hash(sn *state.Snapshot) [32]byte {
	h := sha256.New()
	s := newRecords(h)
	s.begin(sn, 0) // a restore may be at a later index than what it restored
	s.state(sn)
	if err := s.end(h); err != nil {
		panic("replication: hash: " + err.Error())
	}
	return [32]byte(h.Sum(nil))
}

func (s *records) begin(sn *state.Snapshot, index uint64) {
	meta := sn.Meta()
	s.write(&pb.Record{Record: &pb.Record_Head{Head: &pb.SnapshotHead{
		Index: index, Dimensions: sn.Dims().Names(),
		ClusterId: text(meta.ClusterID), ClusterVersion: meta.Version, ClusterKey: hashBytes(&meta.Key),
	}}})
}

// modules come first: a restore keeps them before it replaces the state.
func (s *records) modules(sn *state.Snapshot, get func(string) ([]byte, error)) error {
	var done []string
	for _, v := range sn.PolicyVersions() {
		if v.Kind != model.PolicyWasm || slices.Contains(done, v.Digest) {
			continue
		}
		done = append(done, v.Digest)
		data, err := get(v.Digest)
		if err != nil {
			return fmt.Errorf("module %s: %w", v.Digest, err)
		}
		for offset := 0; offset == 0 || offset < len(data); offset += MaxChunk {
			end := min(offset+MaxChunk, len(data))
			s.write(&pb.Record{Record: &pb.Record_ModuleChunk{ModuleChunk: &pb.ModuleChunk{
				Digest: text(v.Digest), Offset: int64(offset), Data: data[offset:end], Last: end == len(data),
			}}})
		}
	}
	return s.err
}

func (s *records) state(sn *state.Snapshot) {
	s.write(&pb.Record{Record: &pb.Record_Config{Config: configToPB(sn.Config())}})
	for _, c := range sn.PriorityClasses() {
		s.write(&pb.Record{Record: &pb.Record_PriorityClass{PriorityClass: classToPB(c)}})
	}
	for at, b := range sn.Budgets() {
		s.write(&pb.Record{Record: &pb.Record_Budget{Budget: recentToPB(b, sn.RecentEvictions(int32(at)))}})
	}
	for n := range sn.Nodes() {
		var w writer
		s.write(&pb.Record{Record: &pb.Record_Node{Node: w.node(n)}})
	}
	for key := range sn.DirtyIndexes() {
		s.job(sn, key)
	}
	s.bindings(sn)
	for e := range sn.Evals() {
		var w writer
		s.write(&pb.Record{Record: &pb.Record_Eval{Eval: w.eval(e)}})
	}
	for c := range sn.Claims() {
		var w writer
		s.write(&pb.Record{Record: &pb.Record_Claim{Claim: w.claim(c)}})
	}
	for key, index := range sn.DirtyIndexes() {
		held := sn.PreemptionHold(key)
		s.write(&pb.Record{Record: &pb.Record_Dirty{Dirty: &pb.JobKeyDirty{
			Key: keyToPB(key), Index: index, Held: held.Index, HeldAt: held.Time,
		}}})
	}
	s.aside(sn)
}

// job writes the versions of a job, its allocations behind them. They are in
// the order in which they were inserted, which the scheduler can see.
func (s *records) job(sn *state.Snapshot, key model.JobKey) {
	own := sn.JobVersions(key)
	allocs := sn.AppendJobAllocs(nil, key)
	if len(own)+len(allocs) == 0 {
		return // of evaluations alone is known of it
	}
	table := &jobTable{}
	for _, j := range own {
		table.number(j)
	}
	for _, a := range allocs {
		table.number(a.Job)
	}
	block := &pb.JobBlock{Key: keyToPB(key), Own: uint32(len(own))}
	for _, j := range table.list {
		block.Versions = append(block.Versions, jobToPB(j))
	}
	s.write(&pb.Record{Record: &pb.Record_Job{Job: block}})
	for part := range slices.Chunk(allocs, allocsPerBlock) {
		w := writer{jobs: table}
		list, storage := make([]*pb.Allocation, len(part)), make([]pb.Allocation, len(part))
		for i, a := range part {
			w.alloc(a, &storage[i])
			list[i] = &storage[i]
		}
		s.write(&pb.Record{Record: &pb.Record_Allocs{Allocs: &pb.AllocBlock{Names: w.list, Allocs: list}}})
	}
}

// bindings writes member clusters, bindings, and what they have there.
func (s *records) bindings(sn *state.Snapshot) {
	var w writer
	for c := range sn.Clusters() {
		s.write(&pb.Record{Record: &pb.Record_Cluster{Cluster: w.cluster(&c)}})
	}
	for b := range sn.Bindings() {
		s.write(&pb.Record{Record: &pb.Record_Binding{Binding: w.binding(b)}})
	}
	for a := range sn.Assignments() {
		s.write(&pb.Record{Record: &pb.Record_Assignment{Assignment: w.assignment(&a)}})
	}
}

// aside writes what scheduling does not read.
func (s *records) aside(sn *state.Snapshot) {
	for _, v := range sn.PolicyVersions() {
		s.write(&pb.Record{Record: &pb.Record_PolicyVersion{PolicyVersion: versionToPB(v)}})
	}
	for _, p := range sn.PolicyStates() {
		s.write(&pb.Record{Record: &pb.Record_PolicyState{PolicyState: policyStateToPB(p)}})
	}
	for _, u := range sn.Uploads() {
		s.write(&pb.Record{Record: &pb.Record_Upload{Upload: &pb.Upload{Digest: text(u.Digest), Time: u.Time}}})
		for _, c := range u.Chunks {
			s.write(&pb.Record{Record: &pb.Record_UploadChunk{UploadChunk: &pb.UploadChunk{Data: c}}})
		}
	}
	for _, t := range sn.Tokens() {
		s.write(&pb.Record{Record: &pb.Record_Token{Token: tokenToPB(t)}})
	}
	for key, a := range sn.IdempotencyRecords() {
		s.write(&pb.Record{Record: &pb.Record_Applied{Applied: &pb.AppliedKey{
			Key: text(key), Hash: hashBytes(&a.Hash), Index: a.Index, Time: a.Time, Result: a.Result,
		}}})
	}
}
