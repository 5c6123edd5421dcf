package codec

import (
	"google.golang.org/protobuf/proto"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// EncodeResult encodes the part of a result that is stored under an idempotency key:
// the refusal, the evaluations' IDs and jobs, the dropped commit groups, and the
// ModifyIndex unless it is the index of the entry. It is part of the state, so that its
// bytes are deterministic. The parts for observers (freed nodes, snapshots) are not
// stored: a repeated request must not be published a second time.
func EncodeResult(r *replication.Result) []byte {
	var e Encoder
	m := &pb.Result{}
	if r.Err != nil {
		m.Code, m.Message = Text(r.Err.Code), Text(r.Err.Message)
	}
	for _, ev := range r.Evals {
		m.Evals = append(m.Evals, e.id(ev.ID))
		m.EvalJobs = append(m.EvalJobs, e.JobKey(new(ev.JobKey())))
	}
	for _, d := range r.Dropped {
		m.Dropped = append(m.Dropped, uint32(d.Plan), uint32(d.Group))
	}
	if r.ModifyIndex != r.Index {
		m.ModifyIndex = r.ModifyIndex
	}
	return marshal(Deterministic, m)
}

// DecodeResult decodes the result of EncodeResult. Evaluations hold only their ID and
// job. ModifyIndex is 0 if it is the index of the entry. It returns an error only if the
// bytes are damaged.
func DecodeResult(b []byte) (*replication.Result, error) {
	var m pb.Result
	if err := proto.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	var d Decoder
	r := &replication.Result{ModifyIndex: m.ModifyIndex}
	if m.Code != "" {
		r.Err = &replication.Refusal{Code: m.Code, Message: m.Message}
	}
	for i, packed := range m.Evals {
		key := m.EvalJobs[i]
		r.Evals = append(r.Evals, &model.Evaluation{ID: d.id(packed), Namespace: key.GetNamespace(), JobID: key.GetId()})
	}
	for i := 0; i+1 < len(m.Dropped); i += 2 {
		r.Dropped = append(r.Dropped, apply.DroppedGroup{Plan: int(m.Dropped[i]), Group: int(m.Dropped[i+1])})
	}
	return r, d.err
}
