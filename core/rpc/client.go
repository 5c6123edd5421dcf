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

// callWithin bounds calls that wait for nothing but the other server's disk.
const callWithin = 10 * time.Second

// policy tells gRPC to ask again what may be asked again: Status alone. Whatever
// else did not get out of this server is sent by gRPC once more anyway; of what got
// out nobody knows what became.
const policy = `{"methodConfig": [{
	"name": [{"service": "cede.rpc.v1.Pool", "method": "Status"}],
	"retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.05s", "maxBackoff": "0.5s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}
}]}`

// Client asks other servers, by their ids, over one connection for each.
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

// NewClient makes a client; address tells where a server is now.
func NewClient(cfg Config, address func(serverID string) (string, bool)) *Client {
	return &Client{cfg: cfg, address: address, conns: map[string]*conn{}}
}

// Close ends every connection.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for id, old := range c.conns {
		_ = old.grpc.Close()
		delete(c.conns, id)
	}
}

// to is the connection to a server, made anew where it moved.
func (c *Client) to(id string) (rpcpb.PoolClient, error) {
	at, ok := c.address(id)
	if !ok || at == "" {
		return nil, fmt.Errorf("server %s: %w", id, ErrUnknownServer)
	}
	return c.at(id, at)
}

func (c *Client) at(id, at string) (rpcpb.PoolClient, error) {
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
		// The handshake is the dialer's.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return c.cfg.dial(ctx, to, protoGRPC) }),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: firstWithin,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestMessage), grpc.MaxCallSendMsgSize(largestMessage)),
		grpc.WithDefaultServiceConfig(policy),
	)
	if err != nil {
		return nil, fmt.Errorf("server %s at %s: %w", id, at, err)
	}
	c.conns[id] = &conn{address: at, grpc: made, pool: rpcpb.NewPoolClient(made)}
	return c.conns[id].pool, nil
}

// Forget ends the connection to a server that is gone.
func (c *Client) Forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.conns[id]; old != nil {
		_ = old.grpc.Close()
		delete(c.conns, id)
	}
}

// ask makes one call within a time.
func ask[Q, A any](ctx context.Context, c *Client, to string, within time.Duration, call func(rpcpb.PoolClient, context.Context, Q, ...grpc.CallOption) (A, error), q Q) (A, error) {
	pool, err := c.to(to)
	if err != nil {
		var none A
		return none, err
	}
	me := c.cfg.ID()
	limited, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(withTrace(ctx), metaServer, me.ServerID, metaCluster, me.ClusterID), within)
	defer cancel()
	a, err := call(pool, limited, q)
	return a, unwire(ctx, to, err)
}

// Status asks how a server stands; begin is as in Handler.
func (c *Client) Status(ctx context.Context, to, begin string) (*Status, error) {
	a, err := ask(ctx, c, to, callWithin, rpcpb.PoolClient.Status, &rpcpb.StatusRequest{Begin: begin})
	if err != nil {
		return nil, err
	}
	if a.GetServerId() != to {
		return nil, fmt.Errorf("server %s: %w: at its address is %s", to, ErrStranger, a.GetServerId())
	}
	return &Status{
		ServerID: a.GetServerId(), ClusterID: a.GetClusterId(), LastIndex: a.GetLastIndex(), LastTerm: a.GetLastTerm(),
		HasPeers: a.GetHasPeers(), Servers: a.GetServers(), LastContact: time.Duration(a.GetLastContact()), Applied: a.GetApplied(), LeaderID: a.GetLeaderId(),
		Term: a.GetTerm(), Expect: int(a.GetExpect()), Oldest: a.GetOldest(), Newest: a.GetNewest(), Build: a.GetBuild(), Promised: a.GetPromised(),
	}, nil
}

// Dequeue waits at the leader for evaluations, at most most, and not longer than
// wait. None is no error.
func (c *Client) Dequeue(ctx context.Context, to string, most int, wait time.Duration) (*Deliveries, error) {
	a, err := ask(ctx, c, to, wait+callWithin, rpcpb.PoolClient.Dequeue, &rpcpb.DequeueRequest{Most: uint32(most), Wait: int64(wait)})
	if err != nil {
		return nil, err
	}
	d := &Deliveries{Evals: a.GetEvals(), Term: a.GetTerm()}
	for _, one := range a.GetDeliveries() {
		d.List = append(d.List, Delivery{Token: one.GetToken(), WaitIndex: one.GetWaitIndex(), Attempt: int(one.GetAttempt()), Trace: one.GetTrace()})
	}
	return d, nil
}

// Settle ends or keeps a delivery.
func (c *Client) Settle(ctx context.Context, to string, s Settlement) error {
	_, err := ask(ctx, c, to, callWithin, rpcpb.PoolClient.Settle, &rpcpb.SettleRequest{Verb: rpcpb.SettleRequest_Verb(s.Verb), EvalId: s.EvalID, Token: s.Token, Snapshot: s.Snapshot})
	return err
}

// SubmitPlan has the leader check and commit a plan.
func (c *Client) SubmitPlan(ctx context.Context, to string, plan []byte) ([]byte, error) {
	a, err := ask(ctx, c, to, serveWithin, rpcpb.PoolClient.SubmitPlan, &rpcpb.PlanRequest{Plan: plan})
	return a.GetResult(), err
}

// WriteEvals has the leader write what came of a delivery.
func (c *Client) WriteEvals(ctx context.Context, to string, e Endings) error {
	_, err := ask(ctx, c, to, serveWithin, rpcpb.PoolClient.WriteEvals, &rpcpb.EvalsRequest{Evals: e.Evals, EvalId: e.EvalID, Token: e.Token})
	return err
}

// Apply has the leader write an entry.
func (c *Client) Apply(ctx context.Context, to string, entry []byte) (Applied, error) {
	a, err := ask(ctx, c, to, serveWithin, rpcpb.PoolClient.Apply, &rpcpb.ApplyRequest{Entry: entry})
	return Applied{Index: a.GetIndex(), RefusalCode: a.GetRefusalCode(), Refusal: a.GetRefusal()}, err
}

// Keyring reads or changes the keys of gossip of one server.
func (c *Client) Keyring(ctx context.Context, to string, verb KeyVerb, key []byte) ([]string, error) {
	a, err := ask(ctx, c, to, callWithin, rpcpb.PoolClient.Keyring, &rpcpb.KeyringRequest{Verb: rpcpb.KeyringRequest_Verb(verb), Key: key})
	return a.GetKeys(), err
}
