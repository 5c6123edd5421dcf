package rpc

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cede-scheduler/cede/core/rpc/rpcpb"
)

const (
	// maxMessage limits the size of a message, in bytes: a plan of some 200,000 placements.
	maxMessage = 64 << 20
	// maxHeader limits the size of a call's metadata, in bytes.
	maxHeader = 64 << 10
	// maxWait limits how long Dequeue waits.
	maxWait = 60 * time.Second
	// defaultTimeout limits calls without a deadline.
	defaultTimeout = 60 * time.Second
)

// Keys of the metadata that every call carries.
const (
	metaCluster = "cede-cluster"
	metaServer  = "cede-server"
)

// A Server serves the gRPC calls that arrive at a Listener.
type Server struct {
	rpcpb.UnimplementedPoolServer
	cfg     Config
	handler Handler
	refused *refusals
	grpc    *grpc.Server
	done    chan struct{}
	once    sync.Once
}

// Serve serves the gRPC calls that arrive at the listener, until Close.
func (t *Listener) Serve(h Handler) *Server {
	s := &Server{cfg: t.cfg, handler: h, refused: newRefusals(), done: make(chan struct{})}
	s.grpc = grpc.NewServer(
		// The listener has performed the TLS handshake.
		grpc.Creds(insecure.NewCredentials()),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.ConnectionTimeout(handshakeTimeout), grpc.MaxConcurrentStreams(1024), grpc.MaxHeaderListSize(maxHeader),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 2 * time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.admit),
	)
	rpcpb.RegisterPoolServer(s.grpc, s)
	go func() {
		defer close(s.done)
		_ = s.grpc.Serve(t.grpc) // returns when the listener is closed
	}()
	return s
}

// Close cancels every call and closes every connection.
func (s *Server) Close() {
	s.once.Do(s.grpc.Stop)
	<-s.done
}

// admit refuses callers of other clusters, and sets a deadline if the call has none.
func (s *Server) admit(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	caller := callerIdentity(ctx)
	if caller.ServerID == "" {
		return nil, status.Error(codes.PermissionDenied, "missing server ID in the metadata of the call")
	}
	if err := s.cfg.checkCluster(caller); err != nil {
		s.refused.record(func(count int64) {
			s.cfg.logger().WarnContext(ctx, "call refused", "server", caller.ServerID, "call", info.FullMethod, "err", err, "count", count)
		})
		return nil, status.Error(codes.PermissionDenied, err.Error())
	}
	if _, bounded := ctx.Deadline(); !bounded {
		limited, cancel := context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
		ctx = limited
	}
	out, err := handle(extractTrace(ctx), req)
	return out, toStatus(err)
}

func callerIdentity(ctx context.Context) Identity {
	md, _ := metadata.FromIncomingContext(ctx)
	first := func(key string) string {
		if list := md.Get(key); len(list) > 0 {
			return list[0]
		}
		return ""
	}
	return Identity{ServerID: first(metaServer), ClusterID: first(metaCluster)}
}

// Status implements rpcpb.PoolServer.
func (s *Server) Status(ctx context.Context, r *rpcpb.StatusRequest) (*rpcpb.StatusReply, error) {
	st, err := s.handler.Status(ctx, r.GetBegin())
	if err != nil {
		return nil, err
	}
	return &rpcpb.StatusReply{
		ServerId: st.ServerID, ClusterId: st.ClusterID, LastIndex: st.LastIndex, LastTerm: st.LastTerm, HasPeers: st.HasPeers, Servers: st.Servers,
		LastContact: int64(st.LastContact), Applied: st.Applied, LeaderId: st.LeaderID, Term: st.Term, Expect: int32(st.Expect),
		Oldest: st.Oldest, Newest: st.Newest, Build: st.Build, Promised: st.Promised,
	}, nil
}

// Dequeue implements rpcpb.PoolServer.
func (s *Server) Dequeue(ctx context.Context, r *rpcpb.DequeueRequest) (*rpcpb.DequeueReply, error) {
	wait := min(max(time.Duration(r.GetWait()), time.Millisecond), maxWait)
	d, err := s.handler.Dequeue(ctx, int(min(max(r.GetMost(), 1), 1024)), wait)
	if err != nil {
		return nil, err
	}
	out := &rpcpb.DequeueReply{Evals: d.Evals, Term: d.Term}
	for _, one := range d.List {
		out.Deliveries = append(out.Deliveries, &rpcpb.Delivery{Token: one.Token, WaitIndex: one.WaitIndex, Attempt: uint32(one.Attempt), Trace: one.Trace})
	}
	return out, nil
}

// Settle implements rpcpb.PoolServer.
func (s *Server) Settle(ctx context.Context, r *rpcpb.SettleRequest) (*rpcpb.Done, error) {
	return &rpcpb.Done{}, s.handler.UpdateDelivery(ctx, DeliveryUpdate{
		Verb: DeliveryVerb(r.GetVerb()), EvalID: r.GetEvalId(), Token: r.GetToken(), Snapshot: r.GetSnapshot(),
	})
}

// SubmitPlan implements rpcpb.PoolServer.
func (s *Server) SubmitPlan(ctx context.Context, r *rpcpb.PlanRequest) (*rpcpb.PlanReply, error) {
	result, err := s.handler.SubmitPlan(ctx, r.GetPlan())
	return &rpcpb.PlanReply{Result: result}, err
}

// WriteEvals implements rpcpb.PoolServer.
func (s *Server) WriteEvals(ctx context.Context, r *rpcpb.EvalsRequest) (*rpcpb.Done, error) {
	return &rpcpb.Done{}, s.handler.WriteEvals(ctx, EvalResults{EvalID: r.GetEvalId(), Token: r.GetToken(), Evals: r.GetEvals()})
}

// Apply implements rpcpb.PoolServer.
func (s *Server) Apply(ctx context.Context, r *rpcpb.ApplyRequest) (*rpcpb.ApplyReply, error) {
	a, err := s.handler.Apply(ctx, r.GetEntry())
	return &rpcpb.ApplyReply{Index: a.Index, RefusalCode: a.RefusalCode, Refusal: a.Refusal}, err
}

// Keyring implements rpcpb.PoolServer.
func (s *Server) Keyring(ctx context.Context, r *rpcpb.KeyringRequest) (*rpcpb.KeyringReply, error) {
	keys, err := s.handler.Keyring(ctx, KeyVerb(r.GetVerb()), r.GetKey())
	return &rpcpb.KeyringReply{Keys: keys}, err
}

var _ rpcpb.PoolServer = (*Server)(nil)
