package rpc

import (
	"context"
	"crypto/x509"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/cede-scheduler/cede/core/rpc/rpcpb"
)

// countingHandler counts the calls that reach it.
type countingHandler struct{ calls atomic.Int32 }

var _ Handler = (*countingHandler)(nil)

func (g *countingHandler) Status(context.Context, string) (*Status, error) {
	g.calls.Add(1)
	return &Status{}, nil
}

func (g *countingHandler) Dequeue(context.Context, int, time.Duration) (*Deliveries, error) {
	g.calls.Add(1)
	return &Deliveries{}, nil
}

func (g *countingHandler) UpdateDelivery(context.Context, DeliveryUpdate) error {
	g.calls.Add(1)
	return nil
}

func (g *countingHandler) SubmitPlan(context.Context, []byte) ([]byte, error) {
	g.calls.Add(1)
	return nil, nil
}

func (g *countingHandler) WriteEvals(context.Context, EvalResults) error { g.calls.Add(1); return nil }

func (g *countingHandler) Apply(context.Context, []byte) (Applied, error) {
	g.calls.Add(1)
	return Applied{}, nil
}

func (g *countingHandler) Keyring(context.Context, KeyVerb, []byte) ([]string, error) {
	g.calls.Add(1)
	return nil, nil
}

// No call of the service reaches the handler unless its caller is authenticated as a server
// of the cluster. The test covers calls that are added to the service later.
func TestServer_AdmitsNoCallOfUntrustedCallers(t *testing.T) {
	if len(rpcpb.Pool_ServiceDesc.Streams) > 0 {
		t.Fatal("streams are not covered by Server.admit")
	}
	a, other := newAuthority(t), newAuthority(t)
	ours := a.credentials(a.issue("", bothUses...), "")
	client := a.issue("", x509.ExtKeyUsageClientAuth)
	for name, tc := range map[string]struct {
		with *Credentials
		meta metadata.MD
		code codes.Code
	}{
		"no certificate":                    {nil, metadata.Pairs(metaServer, "s1", metaCluster, "c1"), codes.Unavailable},
		"another authority":                 {other.credentials(other.issue("", bothUses...), ""), metadata.Pairs(metaServer, "s1", metaCluster, "c1"), codes.Unavailable},
		"client certificate":                {&Credentials{Certificate: a.credentials(client, "").Certificate, Authority: ours.Authority}, metadata.Pairs(metaServer, "s1", metaCluster, "c1"), codes.Unavailable},
		"server certificate, no metadata":   {ours, nil, codes.PermissionDenied},
		"server certificate, no server ID":  {ours, metadata.Pairs(metaCluster, "c1"), codes.PermissionDenied},
		"server certificate, other cluster": {ours, metadata.Pairs(metaServer, "s1", metaCluster, "c9"), codes.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			h := &countingHandler{}
			s := start(t, two, ours, h, nil)
			caller := Config{Credentials: tc.with}
			conn, err := grpc.NewClient("passthrough:///"+s.listener.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return caller.dial(ctx, to, protoGRPC) }))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			for _, m := range rpcpb.Pool_ServiceDesc.Methods {
				ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(t.Context(), tc.meta), 10*time.Second)
				err := conn.Invoke(ctx, "/"+rpcpb.Pool_ServiceDesc.ServiceName+"/"+m.MethodName, &emptypb.Empty{}, &emptypb.Empty{})
				cancel()
				if status.Code(err) != tc.code {
					t.Errorf("%s: %v, want %v", m.MethodName, err, tc.code)
				}
			}
			if n := h.calls.Load(); n > 0 {
				t.Errorf("%d calls reached the handler", n)
			}
		})
	}
	// With valid credentials and metadata every call reaches the handler.
	h := &countingHandler{}
	s := start(t, two, ours, h, nil)
	caller := Config{Credentials: ours}
	conn, err := grpc.NewClient("passthrough:///"+s.listener.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return caller.dial(ctx, to, protoGRPC) }))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for i, m := range rpcpb.Pool_ServiceDesc.Methods {
		ctx := metadata.AppendToOutgoingContext(t.Context(), metaServer, "s1", metaCluster, two.ClusterID)
		if err := conn.Invoke(ctx, "/"+rpcpb.Pool_ServiceDesc.ServiceName+"/"+m.MethodName, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
			t.Errorf("%s: %v", m.MethodName, err)
		}
		if n := int(h.calls.Load()); n != i+1 {
			t.Errorf("after %s: %d calls reached the handler, want %d", m.MethodName, n, i+1)
		}
	}
}

// A server without peers accepts no certificate: without a name, any certificate of the
// authority with both usages would pass.
func TestListener_WithoutPeersRejectsEveryCertificate(t *testing.T) {
	ca := newAuthority(t)
	caller := ca.credentials(ca.issue("", bothUses...), "")
	alone := *caller
	alone.NoPeers = true
	for _, tc := range []struct {
		server  *Credentials
		trusted bool
	}{{caller, true}, {&alone, false}} {
		a, b := pair(t, one, two, caller, tc.server, &fakeHandler{status: Status{ServerID: "s2", ClusterID: "c1"}})
		if _, err := a.client.Status(t.Context(), "s2", ""); (err == nil) != tc.trusted {
			t.Errorf("a call of a server with NoPeers %v: %v", tc.server.NoPeers, err)
		}
		if tc.trusted {
			if err := raftEcho(a, b); err != nil {
				t.Error(err)
			}
		}
	}
}
