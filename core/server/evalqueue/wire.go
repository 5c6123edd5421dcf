package evalqueue

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/rpc/rpcpb"
	"github.com/cede-scheduler/cede/core/server/evaltrace"
)

// EncodeDeliveries encodes deliveries of a term for another server.
func EncodeDeliveries(list []broker.Delivery, term uint64, traces *evaltrace.Recorder) *rpc.Deliveries {
	out := &rpc.Deliveries{Term: term}
	if len(list) == 0 {
		return out
	}
	evals := make([]*model.Evaluation, len(list))
	for i, d := range list {
		evals[i] = d.Eval
		out.List = append(out.List, rpc.Delivery{
			Token: uint64(d.Token), WaitIndex: d.WaitIndex, Attempt: d.Attempt, Trace: traces.TraceParent(d.Eval.ID),
		})
	}
	out.Evals = codec.EncodeEvals(evals)
	return out
}

func decodeDeliveries(d *rpc.Deliveries, traces *evaltrace.Recorder) ([]broker.Delivery, error) {
	if len(d.List) == 0 {
		return nil, nil
	}
	evals, err := codec.DecodeEvals(d.Evals)
	if err != nil {
		return nil, err
	}
	if len(evals) != len(d.List) {
		return nil, fmt.Errorf("received %d evaluations with %d deliveries", len(evals), len(d.List))
	}
	list := make([]broker.Delivery, len(evals))
	for i, one := range d.List {
		list[i] = broker.Delivery{Eval: evals[i], Token: broker.Token(one.Token), WaitIndex: one.WaitIndex, Attempt: one.Attempt}
		traces.Adopt(evals[i].ID, one.Trace)
	}
	return list, nil
}

// EncodePlanResult encodes the result of a plan for the server that submitted it.
func EncodePlanResult(r *model.PlanResult) ([]byte, error) {
	m := &rpcpb.PlanResult{Committed: toUint32(r.Committed), Index: r.Index, RefreshIndex: r.RefreshIndex}
	for i := range r.Rejected {
		rejected := &r.Rejected[i]
		m.Rejected = append(m.Rejected, &rpcpb.Rejection{
			Group: uint32(rejected.Group), Places: toUint32(rejected.Places), Partial: rejected.Places != nil,
			NodeId: rejected.NodeID, Reason: rejected.Reason,
		})
	}
	return proto.Marshal(m)
}

// DecodePlanResult decodes the result of EncodePlanResult. Unknown fields are skipped.
func DecodePlanResult(b []byte) (*model.PlanResult, error) {
	m := &rpcpb.PlanResult{}
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, err
	}
	r := &model.PlanResult{Committed: toInt(m.GetCommitted()), Index: m.GetIndex(), RefreshIndex: m.GetRefreshIndex()}
	for _, rejected := range m.GetRejected() {
		places := toInt(rejected.GetPlaces())
		if rejected.GetPartial() && places == nil {
			places = []int{} // nil would mean the whole group
		}
		r.Rejected = append(r.Rejected, model.Rejection{
			Group: int(rejected.GetGroup()), Places: places, NodeID: rejected.GetNodeId(), Reason: rejected.GetReason(),
		})
	}
	return r, nil
}

func toUint32(list []int) (out []uint32) {
	for _, v := range list {
		out = append(out, uint32(v))
	}
	return out
}

func toInt(list []uint32) (out []int) {
	for _, v := range list {
		out = append(out, int(v))
	}
	return out
}
