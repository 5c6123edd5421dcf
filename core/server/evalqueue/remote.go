package evalqueue

import (
	"context"
	"fmt"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/rpc"
)

// remote is the source of evaluations on a server that does not lead: the Local of the
// leader. If this server starts to lead, its own broker rejects the tokens, as any leader
// but the one that delivered would.
type remote struct {
	cfg      Config
	leader   func() (id string, isLocal bool, err error)
	dequeuer *dequeuer
}

func newRemote(c Config, leader func() (string, bool, error)) *remote {
	r := &remote{cfg: c, leader: leader}
	r.dequeuer = &dequeuer{cfg: c, leader: leader, nack: r.Nack}
	return r
}

// peer returns the leader, or an error if there is none but this server.
func (r *remote) peer() (string, error) {
	id, isLocal, err := r.leader()
	if err == nil && isLocal {
		err = &rpc.NotLeaderError{LeaderID: r.cfg.Writer.ServerID, Term: r.cfg.Writer.Log.Term()}
	}
	return id, err
}

// Dequeue waits for an evaluation of the leader. It returns errLeading if this server
// starts to lead.
func (r *remote) Dequeue(ctx context.Context) (broker.Delivery, error) {
	return r.dequeuer.dequeue(ctx)
}

func (r *remote) updateDelivery(ctx context.Context, s rpc.DeliveryUpdate) error {
	id, err := r.peer()
	if err != nil {
		return err
	}
	return r.cfg.Peers.UpdateDelivery(ctx, id, s)
}

// Ack ends a delivery after its results are written.
func (r *remote) Ack(ctx context.Context, evalID string, token broker.Token, snapshot uint64) error {
	return r.updateDelivery(ctx, rpc.DeliveryUpdate{Verb: rpc.Ack, EvalID: evalID, Token: uint64(token), Snapshot: snapshot})
}

// Nack returns a delivery to the leader.
func (r *remote) Nack(ctx context.Context, evalID string, token broker.Token) error {
	return r.updateDelivery(ctx, rpc.DeliveryUpdate{Verb: rpc.Nack, EvalID: evalID, Token: uint64(token)})
}

// Renew starts the lease of a delivery anew.
func (r *remote) Renew(ctx context.Context, evalID string, token broker.Token) error {
	return r.updateDelivery(ctx, rpc.DeliveryUpdate{Verb: rpc.Renew, EvalID: evalID, Token: uint64(token)})
}

// Submit sends a plan to the leader, which verifies it and commits the valid parts.
func (r *remote) Submit(ctx context.Context, plan *model.Plan) (*model.PlanResult, error) {
	id, err := r.peer()
	if err != nil {
		return nil, err
	}
	reply, err := r.cfg.Peers.SubmitPlan(ctx, id, codec.EncodePlan(plan))
	if err != nil {
		return nil, err
	}
	result, err := DecodePlanResult(reply)
	if err != nil {
		return nil, fmt.Errorf("plan result of server %s: %w", id, err)
	}
	return result, nil
}

// WriteEvals sends the results of a delivery to the leader, which writes them.
func (r *remote) WriteEvals(ctx context.Context, of broker.Delivery, evals ...*model.Evaluation) error {
	id, err := r.peer()
	if err != nil {
		return err
	}
	return r.cfg.Peers.WriteEvals(ctx, id, rpc.EvalResults{EvalID: of.Eval.ID, Token: uint64(of.Token), Evals: codec.EncodeEvals(evals)})
}
