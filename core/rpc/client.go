package rpc

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/cede-scheduler/cede/core/rpc/rpcpb"
)

// callTimeout limits calls that wait only for the disk of the other server.
const callTimeout = 10 * time.Second

// serviceConfig makes gRPC retry Status, the only call without side effects. gRPC itself
// retries calls that were never sent. The outcome of any other failed call is unknown.
const serviceConfig = `{"methodConfig": [{
	"name": [{"service": "cede.rpc.v1.Pool", "method": "Status"}],
	"retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.05s", "maxBackoff": "0.5s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}
}]}`

// A Client calls other servers by ID. It holds one connection per server.
type Client struct {
	cfg     Config
	address func(serverID string) (string, bool)

	mu     sync.Mutex
	conns  map[string]*conn
	closed bool
}

type conn struct {
	address string
	grpc    *grpc.ClientConn
	pool    rpcpb.PoolClient
}

// NewClient returns a client. address returns the current address of a server, and false
// if it is unknown.
func NewClient(cfg Config, address func(serverID string) (string, bool)) *Client {
	return &Client{cfg: cfg, address: address, conns: map[string]*conn{}}
}

// Close closes every connection.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for id, old := range c.conns {
		_ = old.grpc.Close()
		delete(c.conns, id)
	}
}

// connTo returns the connection to a server. It reconnects if the address has changed.
func (c *Client) connTo(id string) (rpcpb.PoolClient, error) {
	at, ok := c.address(id)
	if !ok || at == "" {
		return nil, fmt.Errorf("server %s: %w", id, ErrUnknownServer)
	}
	return c.connAt(id, at)
}

func (c *Client) connAt(id, at string) (rpcpb.PoolClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	if old := c.conns[id]; old != nil {
		if old.address == at {
			return old.pool, nil
		}
		_ = old.grpc.Close()
	}
	made, err := grpc.NewClient("passthrough:///"+at,
		// Config.dial performs the TLS handshake.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return c.cfg.dial(ctx, to, protoGRPC) }),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: handshakeTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithDefaultServiceConfig(serviceConfig),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to server %s at %s: %w", id, at, err)
	}
	c.conns[id] = &conn{address: at, grpc: made, pool: rpcpb.NewPoolClient(made)}
	return c.conns[id].pool, nil
}

// Forget closes the connection to a server that was removed.
func (c *Client) Forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.conns[id]; old != nil {
		_ = old.grpc.Close()
		delete(c.conns, id)
	}
}

// invoke makes one call with a timeout.
func invoke[Q, A any](ctx context.Context, c *Client, to string, within time.Duration, call func(rpcpb.PoolClient, context.Context, Q, ...grpc.CallOption) (A, error), q Q) (A, error) {
	pool, err := c.connTo(to)
	if err != nil {
		var none A
		return none, err
	}
	me := c.cfg.ID()
	limited, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(injectTrace(ctx), metaServer, me.ServerID, metaCluster, me.ClusterID), within)
	defer cancel()
	a, err := call(pool, limited, q)
	return a, fromStatus(ctx, to, err)
}

// Status returns the status of a server; bootstrap is as in Handler.
func (c *Client) Status(ctx context.Context, to, bootstrap string) (*Status, error) {
	a, err := invoke(ctx, c, to, callTimeout, rpcpb.PoolClient.Status, &rpcpb.StatusRequest{Begin: bootstrap})
	if err != nil {
		return nil, err
	}
	if a.GetServerId() != to {
		return nil, fmt.Errorf("server %s: %w: its address belongs to server %s", to, ErrUntrusted, a.GetServerId())
	}
	return &Status{
		ServerID: a.GetServerId(), ClusterID: a.GetClusterId(), LastIndex: a.GetLastIndex(), LastTerm: a.GetLastTerm(),
		HasPeers: a.GetHasPeers(), Servers: a.GetServers(), LastContact: time.Duration(a.GetLastContact()), Applied: a.GetApplied(), LeaderID: a.GetLeaderId(),
		Term: a.GetTerm(), Expect: int(a.GetExpect()), Oldest: a.GetOldest(), Newest: a.GetNewest(), Build: a.GetBuild(), Promised: a.GetPromised(),
	}, nil
}

// Dequeue waits at the leader for up to most evaluations, and at most for wait. It returns
// no error if there are none.
func (c *Client) Dequeue(ctx context.Context, to string, most int, wait time.Duration) (*Deliveries, error) {
	a, err := invoke(ctx, c, to, wait+callTimeout, rpcpb.PoolClient.Dequeue, &rpcpb.DequeueRequest{Most: uint32(most), Wait: int64(wait)})
	if err != nil {
		return nil, err
	}
	d := &Deliveries{Evals: a.GetEvals(), Term: a.GetTerm()}
	for _, one := range a.GetDeliveries() {
		d.List = append(d.List, Delivery{Token: one.GetToken(), WaitIndex: one.GetWaitIndex(), Attempt: int(one.GetAttempt()), Trace: one.GetTrace()})
	}
	return d, nil
}

// UpdateDelivery acks, nacks or renews a delivery.
func (c *Client) UpdateDelivery(ctx context.Context, to string, s DeliveryUpdate) error {
	_, err := invoke(ctx, c, to, callTimeout, rpcpb.PoolClient.Settle, &rpcpb.SettleRequest{Verb: rpcpb.SettleRequest_Verb(s.Verb), EvalId: s.EvalID, Token: s.Token, Snapshot: s.Snapshot})
	return err
}

// SubmitPlan has the leader verify and commit a plan, and returns the encoded result.
func (c *Client) SubmitPlan(ctx context.Context, to string, plan []byte) ([]byte, error) {
	a, err := invoke(ctx, c, to, defaultTimeout, rpcpb.PoolClient.SubmitPlan, &rpcpb.PlanRequest{Plan: plan})
	return a.GetResult(), err
}

// WriteEvals has the leader write the results of a delivery.
func (c *Client) WriteEvals(ctx context.Context, to string, e EvalResults) error {
	_, err := invoke(ctx, c, to, defaultTimeout, rpcpb.PoolClient.WriteEvals, &rpcpb.EvalsRequest{Evals: e.Evals, EvalId: e.EvalID, Token: e.Token})
	return err
}

// Apply has the leader write an entry, and returns its index and refusal.
func (c *Client) Apply(ctx context.Context, to string, entry []byte) (Applied, error) {
	a, err := invoke(ctx, c, to, defaultTimeout, rpcpb.PoolClient.Apply, &rpcpb.ApplyRequest{Entry: entry})
	return Applied{Index: a.GetIndex(), RefusalCode: a.GetRefusalCode(), Refusal: a.GetRefusal()}, err
}

// Keyring lists or changes the gossip keys of a server, and returns their digests.
func (c *Client) Keyring(ctx context.Context, to string, verb KeyVerb, key []byte) ([]string, error) {
	a, err := invoke(ctx, c, to, callTimeout, rpcpb.PoolClient.Keyring, &rpcpb.KeyringRequest{Verb: rpcpb.KeyringRequest_Verb(verb), Key: key})
	return a.GetKeys(), err
}
