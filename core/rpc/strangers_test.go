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

// guarded counts what gets through to it: nothing may.
type guarded struct{ calls atomic.Int32 }

var _ Handler = (*guarded)(nil)

func (g *guarded) Status(context.Context, string) (*Status, error) {
	g.calls.Add(1)
	return &Status{}, nil
}

func (g *guarded) Dequeue(context.Context, int, time.Duration) (*Deliveries, error) {
	g.calls.Add(1)
	return &Deliveries{}, nil
}

func (g *guarded) Settle(context.Context, Settlement) error { g.calls.Add(1); return nil }

func (g *guarded) SubmitPlan(context.Context, []byte) ([]byte, error) {
	g.calls.Add(1)
	return nil, nil
}

func (g *guarded) WriteEvals(context.Context, Endings) error { g.calls.Add(1); return nil }

func (g *guarded) Apply(context.Context, []byte) (Applied, error) {
	g.calls.Add(1)
	return Applied{}, nil
}

func (g *guarded) Keyring(context.Context, KeyVerb, []byte) ([]string, error) {
	g.calls.Add(1)
	return nil, nil
}

// Not one call that there is gets through to a server from who cannot show that it
// belongs to the cluster. Calls that are yet to come are walked as well.
func TestStrangers_GetNoCallThrough(t *testing.T) {
	if len(rpcpb.Pool_ServiceDesc.Streams) > 0 {
		t.Fatal("streams do not pass through what refuses strangers: see Server.admit")
	}
	a, other := newAuthority(t), newAuthority(t)
	ours := a.credentials(a.issue("", bothUses...), "")
	client := a.issue("", x509.ExtKeyUsageClientAuth)
	for name, tc := range map[string]struct {
		with *Credentials
		says metadata.MD
		code codes.Code
	}{
		"no certificate":                       {nil, metadata.Pairs(metaServer, "s1", metaCluster, "c1"), codes.Unavailable},
		"another authority":                    {other.credentials(other.issue("", bothUses...), ""), metadata.Pairs(metaServer, "s1", metaCluster, "c1"), codes.Unavailable},
		"a certificate for clients alone":      {&Credentials{Certificate: a.credentials(client, "").Certificate, Authority: ours.Authority}, metadata.Pairs(metaServer, "s1", metaCluster, "c1"), codes.Unavailable},
		"a server's certificate, and no name":  {ours, nil, codes.PermissionDenied},
		"a server's certificate, half a name":  {ours, metadata.Pairs(metaCluster, "c1"), codes.PermissionDenied},
		"a server's certificate, another pool": {ours, metadata.Pairs(metaServer, "s1", metaCluster, "c9"), codes.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			h := &guarded{}
			s := start(t, two, ours, h, nil)
			caller := Config{Credentials: tc.with}
			conn, err := grpc.NewClient("passthrough:///"+s.listener.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return caller.dial(ctx, to, protoGRPC) }))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			for _, m := range rpcpb.Pool_ServiceDesc.Methods {
				ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(t.Context(), tc.says), 10*time.Second)
				err := conn.Invoke(ctx, "/"+rpcpb.Pool_ServiceDesc.ServiceName+"/"+m.MethodName, &emptypb.Empty{}, &emptypb.Empty{})
				cancel()
				if status.Code(err) != tc.code {
					t.Errorf("%s: %v, want %v", m.MethodName, err, tc.code)
				}
			}
			if n := h.calls.Load(); n > 0 {
				t.Errorf("%d calls got through", n)
			}
		})
	}
	// The guard would notice: with all that is needed each call gets through.
	h := &guarded{}
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
			t.Errorf("after %s %d calls got through", m.MethodName, n)
		}
	}
}
