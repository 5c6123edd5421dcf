package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/worker"
)

// office is where this server's workers get work and hand it in: here while it
// leads, else at the leader. Where that is is looked up at every call. Work of an
// earlier leader is void, as no other knows its tokens, so that nothing is done
// twice; the new one hands it out again.
type office struct{ s *Server }

var (
	_ worker.Broker  = office{}
	_ worker.Leases  = office{}
	_ worker.Planner = office{}
	_ worker.Evals   = office{}
)

// leader is who must be asked; here says that it is this server.
func (o office) leader() (id string, here bool, err error) {
	if o.s.term.Load() != nil || o.s.cfg.Peers == nil {
		return "", true, nil
	}
	id, _ = o.s.cfg.Log.Leader()
	if id == "" || id == o.s.cfg.ID {
		return "", false, &rpc.NotLeaderError{Term: o.s.cfg.Log.Term()}
	}
	return id, false, nil
}

func (o office) settle(here func() error, away rpc.Settlement) error {
	id, isHere, err := o.leader()
	switch {
	case err != nil:
		return err
	case isHere:
		return here()
	}
	return o.s.cfg.Peers.Settle(context.Background(), id, away) // which is bounded in itself
}

// Ack ends a delivery.
func (o office) Ack(evalID string, token broker.Token, snapshot uint64) error {
	return o.settle(func() error { return o.s.broker.Ack(evalID, token, snapshot) },
		rpc.Settlement{Verb: rpc.Ack, EvalID: evalID, Token: uint64(token), Snapshot: snapshot})
}

// Nack gives a delivery back.
func (o office) Nack(evalID string, token broker.Token) error {
	return o.settle(func() error { return o.s.broker.Nack(evalID, token) },
		rpc.Settlement{Verb: rpc.Nack, EvalID: evalID, Token: uint64(token)})
}

// Renew starts a lease anew.
func (o office) Renew(evalID string, token broker.Token) error {
	return o.settle(func() error { return o.s.broker.Renew(evalID, token) },
		rpc.Settlement{Verb: rpc.Renew, EvalID: evalID, Token: uint64(token)})
}

// PauseTimer holds a lease here. The leader does it by itself for plans that come
// from elsewhere: who holds a lease from afar and is gone would hold it for ever.
func (o office) PauseTimer(evalID string, token broker.Token) error {
	if _, here, err := o.leader(); err != nil || !here {
		return err
	}
	return o.s.broker.PauseTimer(evalID, token)
}

// ResumeTimer lets go of a lease.
func (o office) ResumeTimer(evalID string, token broker.Token) error {
	if _, here, err := o.leader(); err != nil || !here {
		return err
	}
	return o.s.broker.ResumeTimer(evalID, token)
}

// Submit has a plan checked and committed.
func (o office) Submit(ctx context.Context, plan *model.Plan) (*model.PlanResult, error) {
	id, here, err := o.leader()
	switch {
	case err != nil:
		return nil, err
	case here:
		return o.s.submit(ctx, plan)
	}
	answer, err := o.s.cfg.Peers.SubmitPlan(ctx, id, codec.EncodePlan(plan))
	if err != nil {
		return nil, err
	}
	result := &model.PlanResult{}
	if err := json.Unmarshal(answer, result); err != nil {
		return nil, fmt.Errorf("what server %s says of the plan: %w", id, err)
	}
	return result, nil
}

// WriteEvals writes what came of a delivery.
func (o office) WriteEvals(ctx context.Context, of broker.Delivery, evals ...*model.Evaluation) error {
	id, here, err := o.leader()
	switch {
	case err != nil:
		return err
	case here:
		return o.s.writeEndings(ctx, of.Eval.ID, of.Token, evals)
	}
	return o.s.cfg.Peers.WriteEvals(ctx, id, rpc.Endings{EvalID: of.Eval.ID, Token: uint64(of.Token), Evals: codec.EncodeEvals(evals)})
}

// atLeader is a log whose entries go to the leader where this server does not lead:
// for what every server tells the cluster of itself.
type atLeader struct {
	Log
	s *Server
}

// Apply has an entry written by whoever leads.
func (l atLeader) Apply(ctx context.Context, e *replication.Entry) (*replication.Result, error) {
	if l.s.cfg.Peers == nil || l.IsLeader() {
		return l.Log.Apply(ctx, e)
	}
	id, _ := l.Leader()
	if id == "" || id == l.s.cfg.ID {
		return nil, &replication.LeaderError{}
	}
	a, err := l.s.cfg.Peers.Apply(ctx, id, codec.Encode(e))
	if err != nil {
		if _, away := errors.AsType[*rpc.NotLeaderError](err); away || errors.Is(err, rpc.ErrUnknownServer) {
			return nil, &replication.LeaderError{}
		}
		return nil, fmt.Errorf("%w: %w", replication.ErrUnknownOutcome, err)
	}
	result := &replication.Result{Index: a.Index}
	if a.RefusalCode != "" {
		result.Err = &replication.Refusal{Code: a.RefusalCode, Message: a.Refusal}
	}
	return result, nil
}
