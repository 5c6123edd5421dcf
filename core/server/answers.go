package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/evalqueue"
)

// Answers is what this server answers other servers of the pool.
func (s *Server) Answers() rpc.Handler { return answers{s} }

type answers struct{ s *Server }

var _ rpc.Handler = answers{}

// away says who leads instead of this server.
func (a answers) away() error {
	id, _ := a.s.cfg.Log.Leader()
	if id == a.s.cfg.ID {
		id = "" // it was, or is about to be
	}
	return &rpc.NotLeaderError{LeaderID: id, Term: a.s.cfg.Log.Term()}
}

// known translates errors that mean that this server does not lead any more.
func (a answers) known(err error) error {
	for _, over := range []error{broker.ErrDisabled, planner.ErrDisabled, planner.ErrStopped, replication.ErrNotLeader, evalqueue.ErrLeadershipLost} {
		if errors.Is(err, over) {
			return a.away()
		}
	}
	return err
}

// Status says how this server stands.
func (a answers) Status(_ context.Context, begin string) (*rpc.Status, error) {
	s := a.s
	snap := s.Snapshot()
	st := &rpc.Status{
		ServerID: s.cfg.ID, ClusterID: snap.Meta().ClusterID, Applied: snap.Index(), Term: s.cfg.Log.Term(),
		Expect: s.cfg.Expect, Oldest: s.cfg.Versions.Oldest, Newest: s.cfg.Versions.Newest, Build: s.cfg.Build, LastContact: -1,
	}
	st.LeaderID, _ = s.cfg.Log.Leader()
	if r := s.cfg.Raft; r != nil {
		told := r.Stats()
		st.LastIndex = r.LastIndex()
		st.LastTerm, _ = strconv.ParseUint(told["last_log_term"], 10, 64)
		st.LastContact = lastContact(told["last_contact"])
		for _, other := range s.servers() {
			st.Servers = append(st.Servers, string(other.ID))
		}
		st.HasPeers = len(st.Servers) > 0
	}
	if begin != "" {
		st.Promised = st.LastIndex == 0 && !st.HasPeers && s.promise.give(begin, s.cfg.Clock.Now())
	}
	return st, nil
}

// lastContact reads how Raft says it: "never", "0" for the leader, or a duration.
func lastContact(text string) time.Duration {
	if text == "0" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return -1
	}
	return d
}

// servers is who belongs to the cluster, as this server knows.
func (s *Server) servers() []raft.Server {
	f := s.cfg.Raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

// Dequeue hands evaluations out to a follower's workers.
func (a answers) Dequeue(ctx context.Context, most int, wait time.Duration) (*rpc.Deliveries, error) {
	t := a.s.term.Load()
	if t == nil {
		return nil, a.away()
	}
	list, err := a.s.broker.DequeueBatch(ctx, nil, most, wait)
	switch {
	case errors.Is(err, broker.ErrNoEvaluation):
		return &rpc.Deliveries{Term: t.number}, nil
	case err != nil:
		return nil, a.known(err)
	}
	if ctx.Err() != nil { // whoever asked is gone
		for _, d := range list {
			_ = a.s.broker.Nack(d.Eval.ID, d.Token) // or its lease ends
		}
		return nil, ctx.Err()
	}
	for i := range list {
		a.s.metrics.delivered(&list[i])
	}
	return a.s.packDeliveries(list, t.number), nil
}

// Settle ends or keeps a delivery of this server.
func (a answers) Settle(_ context.Context, s rpc.Settlement) error {
	if a.s.term.Load() == nil {
		return a.away()
	}
	token := broker.Token(s.Token)
	switch s.Verb {
	case rpc.Ack:
		return a.known(a.s.broker.Ack(s.EvalID, token, s.Snapshot))
	case rpc.Nack:
		return a.known(a.s.broker.Nack(s.EvalID, token))
	case rpc.Renew:
		return a.known(a.s.broker.Renew(s.EvalID, token))
	}
	return fmt.Errorf("verb %d is not known: upgrade this server", s.Verb)
}

// SubmitPlan checks and commits a plan that was made elsewhere, and holds the lease
// of its evaluation meanwhile.
func (a answers) SubmitPlan(ctx context.Context, raw []byte) ([]byte, error) {
	plan, err := codec.DecodePlan(raw)
	if err != nil {
		return nil, err
	}
	if a.s.term.Load() == nil {
		return nil, a.away()
	}
	token, err := broker.ParseToken(plan.EvalToken)
	if err != nil {
		return nil, err
	}
	if err := a.s.broker.PauseTimer(plan.EvalID, token); err != nil {
		return nil, a.known(err)
	}
	defer func() { _ = a.s.broker.ResumeTimer(plan.EvalID, token) }() // a lease that is lost stays lost
	snap, err := patient{store: a.s.cfg.Store}.WaitIndex(ctx, plan.SnapshotIndex)
	if err != nil {
		return nil, err
	}
	if err := codec.BindPlan(plan, snap); err != nil {
		return nil, err
	}
	result, err := a.s.submit(ctx, plan)
	if err != nil {
		return nil, a.known(err)
	}
	return json.Marshal(result)
}

// WriteEvals writes what came of a delivery to a follower's worker.
func (a answers) WriteEvals(ctx context.Context, e rpc.Endings) error {
	evals, err := codec.DecodeEvals(e.Evals)
	if err != nil {
		return err
	}
	if a.s.term.Load() == nil {
		return a.away()
	}
	if e.EvalID == "" { // a server of an older release does not say of which delivery
		_, err := a.s.updates.Write(ctx, evals...)
		return a.known(err)
	}
	return a.known(a.s.writeEndings(ctx, e.EvalID, broker.Token(e.Token), evals))
}

// Apply writes what a server has to say of itself, and nothing else: whatever
// people ask for comes by way of the API.
func (a answers) Apply(ctx context.Context, raw []byte) (rpc.Applied, error) {
	e, err := codec.Decode(raw)
	if err != nil {
		return rpc.Applied{}, err
	}
	switch c := e.Command.(type) {
	case *replication.CheckPolicy:
	case *replication.ChangePolicy:
		if c.Op != replication.OpTrip {
			return rpc.Applied{}, fmt.Errorf("a server changes no policies by itself but to take one out of service")
		}
	default:
		return rpc.Applied{}, fmt.Errorf("entries of kind %T do not come from other servers", c)
	}
	if a.s.term.Load() == nil {
		return rpc.Applied{}, a.away()
	}
	result, err := a.s.writer.ProposeEntry(ctx, e)
	if err != nil {
		return rpc.Applied{}, a.known(err)
	}
	out := rpc.Applied{Index: result.Index}
	if result.Err != nil {
		out.RefusalCode, out.Refusal = result.Err.Code, result.Err.Message
	}
	return out, nil
}

// Keyring changes this server's keys of gossip.
func (a answers) Keyring(_ context.Context, verb rpc.KeyVerb, key []byte) ([]string, error) {
	if a.s.cfg.Membership == nil {
		return nil, errors.New("this server gossips with nobody")
	}
	return a.s.cfg.Membership.Keyring(verb, key)
}
