package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/audit"
	"github.com/cede-scheduler/cede/core/server/evalqueue"
	"github.com/cede-scheduler/cede/core/state"
)

// RPCHandler returns the handler of calls from other servers of the pool.
func (s *Server) RPCHandler() rpc.Handler { return rpcHandler{s} }

// rpcHandler handles calls from other servers. Calls about evaluations are those of
// evalqueue.Local, and fail with a *rpc.NotLeaderError on a server that does not lead.
type rpcHandler struct{ s *Server }

var _ rpc.Handler = rpcHandler{}

// notLeader returns the error that names the leader.
func (h rpcHandler) notLeader() error {
	id, _ := h.s.cfg.Log.Leader()
	if id == h.s.cfg.ID {
		id = "" // this server is about to take over or to step down
	}
	return &rpc.NotLeaderError{LeaderID: id, Term: h.s.cfg.Log.Term()}
}

// checkLeader returns an error if this server has not established leadership.
func (h rpcHandler) checkLeader() error {
	if h.s.term.Load() == nil {
		return h.notLeader()
	}
	return nil
}

// translate returns a *rpc.NotLeaderError for errors that mean that this server does not
// lead any more, and rpc.ErrNotWritten for one that the log did not accept. An error of an
// unknown outcome is returned unchanged, although it may wrap either as its reason: if a
// server lost the lead between two parts of an entry, the first part is written.
func (h rpcHandler) translate(err error) error {
	switch {
	case errors.Is(err, replication.ErrUnknownOutcome):
		return err
	case errors.Is(err, replication.ErrBusy):
		return fmt.Errorf("%w: %w", rpc.ErrNotWritten, err)
	}
	for _, over := range []error{broker.ErrDisabled, planner.ErrDisabled, planner.ErrStopped, replication.ErrNotLeader, evalqueue.ErrLeadershipLost} {
		if errors.Is(err, over) {
			return h.notLeader()
		}
	}
	return err
}

// Status implements rpc.Handler.
func (h rpcHandler) Status(ctx context.Context, bootstrap string) (*rpc.Status, error) {
	return h.s.Status(ctx, bootstrap)
}

// Dequeue implements rpc.Handler.
func (h rpcHandler) Dequeue(ctx context.Context, most int, wait time.Duration) (*rpc.Deliveries, error) {
	t := h.s.term.Load()
	if t == nil {
		return nil, h.notLeader()
	}
	list, err := h.s.queue.Local().DequeueBatch(ctx, most, wait)
	if err != nil {
		return nil, h.translate(err)
	}
	return evalqueue.EncodeDeliveries(list, t.number, h.s.traces), nil
}

// UpdateDelivery implements rpc.Handler.
func (h rpcHandler) UpdateDelivery(ctx context.Context, s rpc.DeliveryUpdate) error {
	if err := h.checkLeader(); err != nil {
		return err
	}
	local, token := h.s.queue.Local(), broker.Token(s.Token)
	switch s.Verb {
	case rpc.Ack:
		return h.translate(local.Ack(ctx, s.EvalID, token, s.Snapshot))
	case rpc.Nack:
		return h.translate(local.Nack(ctx, s.EvalID, token))
	case rpc.Renew:
		return h.translate(local.Renew(ctx, s.EvalID, token))
	}
	return fmt.Errorf("unknown verb %d: upgrade this server", s.Verb)
}

// SubmitPlan implements rpc.Handler.
func (h rpcHandler) SubmitPlan(ctx context.Context, plan []byte) ([]byte, error) {
	if err := h.checkLeader(); err != nil {
		return nil, err
	}
	result, err := h.s.queue.Local().SubmitRemote(ctx, plan)
	return result, h.translate(err)
}

// WriteEvals implements rpc.Handler.
func (h rpcHandler) WriteEvals(ctx context.Context, e rpc.EvalResults) error {
	evals, err := codec.DecodeEvals(e.Evals)
	if err != nil {
		return err
	}
	if err := h.checkLeader(); err != nil {
		return err
	}
	if e.EvalID == "" { // a server of an older release does not send the delivery
		_, err := h.s.updates.Write(ctx, evals...)
		return h.translate(err)
	}
	delivery := broker.Delivery{Eval: &model.Evaluation{ID: e.EvalID}, Token: broker.Token(e.Token)}
	return h.translate(h.s.queue.Local().WriteEvals(ctx, delivery, evals...))
}

// Apply implements rpc.Handler. It accepts only commands that servers issue by themselves:
// requests of users come through the API.
func (h rpcHandler) Apply(ctx context.Context, raw []byte) (rpc.Applied, error) {
	e, err := codec.Decode(raw)
	if err != nil {
		return rpc.Applied{}, err
	}
	switch c := e.Command.(type) {
	case *replication.CheckPolicy, *replication.PutSigner, *replication.ReportShadow:
	case *replication.ChangePolicy:
		if c.Op != replication.OpTrip {
			return rpc.Applied{}, errors.New("the only policy change that other servers may write is to disable a version")
		}
	default:
		return rpc.Applied{}, fmt.Errorf("other servers may not write entries of type %T", c)
	}
	if err := h.checkLeader(); err != nil {
		return rpc.Applied{}, err
	}
	result, err := h.s.writer.ProposeEntry(ctx, e)
	if err != nil {
		return rpc.Applied{}, h.translate(err)
	}
	out := rpc.Applied{Index: result.Index}
	if result.Err != nil {
		out.RefusalCode, out.Refusal = result.Err.Code, result.Err.Message
	}
	return out, nil
}

// Keyring implements rpc.Handler.
func (h rpcHandler) Keyring(_ context.Context, verb rpc.KeyVerb, key []byte) ([]string, error) {
	if h.s.cfg.Membership == nil {
		return nil, errors.New("this server has no gossip")
	}
	return h.s.cfg.Membership.Keyring(verb, key)
}

// An auditedLog adds the audit records to the entries that this
// server proposes.
type auditedLog struct {
	Log
	store *state.Store
}

func newAuditedLog(c *Config) auditedLog { return auditedLog{c.Log, c.Store} }

// Apply writes an entry.
func (l auditedLog) Apply(ctx context.Context, e *replication.Entry) (*replication.Result, error) {
	audit.Stamp(ctx, l.store.Snapshot(), e)
	return l.Log.Apply(ctx, e)
}

// forwardingLog is the log of this server, but forwards entries to the leader if this
// server does not lead. Policies use it for reports of servers about themselves.
type forwardingLog struct {
	Log
	serverID string
	peers    Peers // nil: nothing is forwarded
}

// Apply writes an entry, on the leader.
func (l forwardingLog) Apply(ctx context.Context, e *replication.Entry) (*replication.Result, error) {
	if l.peers == nil || l.IsLeader() {
		return l.Log.Apply(ctx, e)
	}
	id, _ := l.Leader()
	if id == "" || id == l.serverID {
		return nil, &replication.LeaderError{}
	}
	a, err := l.peers.Apply(ctx, id, codec.Encode(e))
	if err != nil {
		if _, notLeader := errors.AsType[*rpc.NotLeaderError](err); notLeader || errors.Is(err, rpc.ErrUnknownServer) {
			return nil, &replication.LeaderError{}
		}
		if errors.Is(err, rpc.ErrNotWritten) {
			return nil, fmt.Errorf("%w: %w", replication.ErrBusy, err)
		}
		return nil, fmt.Errorf("%w: %w", replication.ErrUnknownOutcome, err)
	}
	result := &replication.Result{Index: a.Index}
	if a.RefusalCode != "" {
		result.Err = &replication.Refusal{Code: a.RefusalCode, Message: a.Refusal}
	}
	return result, nil
}
