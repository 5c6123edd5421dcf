package codec

import (
	"bytes"
	"crypto/sha256"

	"google.golang.org/protobuf/proto"

	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

// EncodeJob encodes a job for plan tokens: equal jobs have equal bytes. Derived fields
// are not included.
func EncodeJob(j *model.Job) []byte {
	var e Encoder
	return marshal(Deterministic, e.Job(j))
}

// DecodeJob decodes the result of EncodeJob. The job is not compiled.
func DecodeJob(b []byte) (*model.Job, error) {
	var m pb.Job
	if err := proto.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	var d Decoder
	j := d.Job(&m)
	return j, d.err
}

// JobHash returns the hash of a job's specification: jobs that differ only in version,
// submit time and indexes have equal hashes. It decides whether a registration is a new
// version, so a field that is added to the message must not change the hash of jobs
// that do not use it: protobuf omits zero values.
func JobHash(j *model.Job) [32]byte {
	var e Encoder
	m := e.Job(j)
	m.Version, m.SubmitTime, m.CreateIndex, m.ModifyIndex = 0, 0, 0, 0
	for _, g := range m.Groups {
		g.Since = 0
	}
	return sha256.Sum256(marshal(Deterministic, m))
}

// SameBinding reports whether two bindings differ in nothing but their indexes. Version
// and submit time must have been made equal by the caller.
func SameBinding(x, y *model.Binding) bool {
	var e Encoder
	p, q := e.Binding(x), e.Binding(y)
	p.CreateIndex, p.ModifyIndex = q.CreateIndex, q.ModifyIndex
	return bytes.Equal(marshal(Deterministic, p), marshal(Deterministic, q))
}
