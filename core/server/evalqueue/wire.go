package evalqueue

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/rpc"
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

// The result of a plan as a protobuf message:
//
//	message PlanResult {
//	  repeated uint32 committed = 1;
//	  repeated Rejection rejected = 2;
//	  uint64 index = 3;
//	  uint64 refresh_index = 4;
//	}
//	message Rejection {
//	  uint32 group = 1;
//	  repeated uint32 places = 2;
//	  bool partial = 3; // places are set, perhaps to none
//	  string node_id = 4;
//	  string reason = 5;
//	}

// EncodePlanResult encodes the result of a plan for the server that submitted it.
func EncodePlanResult(r *model.PlanResult) []byte {
	b := appendInts(nil, 1, r.Committed)
	for i := range r.Rejected {
		rejected := &r.Rejected[i]
		m := appendVarint(nil, 1, uint64(rejected.Group))
		m = appendInts(m, 2, rejected.Places)
		if rejected.Places != nil {
			m = appendVarint(m, 3, 1)
		}
		m = appendString(m, 4, rejected.NodeID)
		m = appendString(m, 5, rejected.Reason)
		b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), m)
	}
	b = appendVarint(b, 3, r.Index)
	return appendVarint(b, 4, r.RefreshIndex)
}

// DecodePlanResult decodes what EncodePlanResult returned. Unknown fields are skipped.
func DecodePlanResult(b []byte) (*model.PlanResult, error) {
	r := &model.PlanResult{}
	err := decodeFields(b, func(n protowire.Number, v uint64, data []byte) (err error) {
		switch n {
		case 1:
			r.Committed, err = decodeInts(data)
		case 2:
			var rejected model.Rejection
			rejected, err = decodeRejection(data)
			r.Rejected = append(r.Rejected, rejected)
		case 3:
			r.Index = v
		case 4:
			r.RefreshIndex = v
		}
		return err
	})
	return r, err
}

func decodeRejection(b []byte) (r model.Rejection, err error) {
	err = decodeFields(b, func(n protowire.Number, v uint64, data []byte) (err error) {
		switch n {
		case 1:
			r.Group = int(v)
		case 2:
			r.Places, err = decodeInts(data)
		case 3:
			if v != 0 && r.Places == nil {
				r.Places = []int{}
			}
		case 4:
			r.NodeID = string(data)
		case 5:
			r.Reason = string(data)
		}
		return err
	})
	return r, err
}

func appendVarint(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func appendString(b []byte, n protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

// appendInts appends a packed repeated field.
func appendInts(b []byte, n protowire.Number, list []int) []byte {
	if len(list) == 0 {
		return b
	}
	var packed []byte
	for _, v := range list {
		packed = protowire.AppendVarint(packed, uint64(v))
	}
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), packed)
}

func decodeInts(packed []byte) ([]int, error) {
	var list []int
	for len(packed) > 0 {
		v, n := protowire.ConsumeVarint(packed)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		list = append(list, int(v))
		packed = packed[n:]
	}
	return list, nil
}

// decodeFields calls f for each field of a message, with its value: v of a varint, data of
// a string, message or packed field.
func decodeFields(b []byte, f func(n protowire.Number, v uint64, data []byte) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var v uint64
		var data []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			data, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(number, v, data); err != nil {
			return err
		}
	}
	return nil
}
