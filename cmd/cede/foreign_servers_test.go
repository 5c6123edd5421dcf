package main

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// foreignServers are servers that lack a credential of the pool, with the log messages
// expected on both sides.
var foreignServers = []struct {
	name string
	make func(p *processPool, s *poolServer)
	own  string // in the log of the foreign server
	pool string // in the log of a server of the pool
}{
	{
		"no gossip key",
		func(p *processPool, s *poolServer) {
			s.extraConfig = tlsConfig(p.ca, s.name, "127.0.0.1", serverUses...)
		},
		"encryption is not configured", "remote state is not encrypted",
	},
	{
		"different gossip key",
		func(p *processPool, s *poolServer) {
			s.extraConfig = tlsConfig(p.ca, s.name, "127.0.0.1", serverUses...) + gossipConfig(gossipKey(p.t, filepath.Join(p.dir, "other.key")))
		},
		"no installed keys could decrypt", "no installed keys could decrypt",
	},
	{
		"different pool name",
		func(p *processPool, s *poolServer) {
			s.extraConfig = tlsConfig(p.ca, s.name, "127.0.0.1", serverUses...) + strings.Replace(gossipConfig(p.gossipKey), "{", "{name: other, ", 1)
		},
		"a pool with another name", "unacceptable label",
	},
	{
		"no certificate",
		func(p *processPool, s *poolServer) { s.extraConfig = gossipConfig(p.gossipKey) },
		"TLS is disabled on this server", "closed the connection during the TLS handshake",
	},
	{
		"certificate of another authority",
		func(p *processPool, s *poolServer) {
			s.extraConfig = tlsConfig(newTestAuthority(p.t, filepath.Join(p.dir, "others")), s.name, "127.0.0.1", serverUses...) + gossipConfig(p.gossipKey)
		},
		"rejected the certificate of this server", "signed by unknown authority",
	},
	{
		"client certificate",
		func(p *processPool, s *poolServer) {
			s.extraConfig = tlsConfig(p.ca, s.name, "127.0.0.1", x509.ExtKeyUsageClientAuth) + gossipConfig(p.gossipKey)
		},
		"rejected the certificate of this server", "incompatible key usage",
	},
	{
		"server of another cluster",
		func(p *processPool, s *poolServer) {
			s.extraConfig = tlsConfig(p.ca, s.name, "127.0.0.1", serverUses...) + gossipConfig(p.gossipKey)
			must(p.t, os.MkdirAll(filepath.Join(p.dir, s.name), 0o700))
			s.standalone = true
			s.start()
			eventually(p.t, "the server leads its own cluster", s.isReadyLeader)
			s.kill()
			s.standalone = false
		},
		"belongs to cluster", "belongs to cluster",
	},
}

// A server without valid credentials is rejected by gossip, Raft and RPC. Both sides log
// the reason.
func TestPool_RejectsForeignServers(t *testing.T) {
	t.Parallel()
	p := newTLSPool(t)
	for _, s := range p.servers {
		s.start()
	}
	p.waitLeader()
	for i, x := range foreignServers {
		t.Run(x.name, func(t *testing.T) {
			logged := map[*poolServer]int{}
			for _, m := range p.servers {
				logged[m] = len(m.log.String())
			}
			s := &poolServer{p: p, name: fmt.Sprint("stranger", i), http: freePort(t), rpc: freePort(t), gossip: freePort(t)}
			x.make(p, s)
			before := len(s.log.String())
			s.start()
			eventually(t, "the foreign server logs the reason", func() bool { return strings.Contains(s.log.String()[before:], x.own) })
			eventually(t, "a server of the pool logs the reason", func() bool {
				return slices.ContainsFunc(p.servers, func(m *poolServer) bool { return strings.Contains(m.log.String()[logged[m]:], x.pool) })
			})
			// The last one has a log and a cluster of its own.
			if st, err := s.status(); err == nil && len(st.Servers) != 1 && (st.LastIndex > 0 || st.LeaderID != "" || len(st.Servers) > 1) {
				t.Errorf("foreign server received data of the pool: %+v", st)
			}
			s.kill()
			// Another server may lead by now: a busy machine delays heartbeats.
			eventually(t, "the pool has a leader and its three servers", func() bool {
				st, err := p.waitLeader().status()
				if err == nil && len(st.Servers) != 3 {
					t.Fatalf("foreign server changed the pool: %+v", st)
				}
				return err == nil && st.State == "Leader"
			})
		})
	}
}

// newTLSPool returns three servers on loopback with certificates and a gossip key. They are
// not started.
func newTLSPool(t *testing.T) *processPool {
	t.Helper()
	p := newProcessPool(t)
	p.enableTLS()
	for _, s := range p.servers {
		s.extraConfig = p.tlsServerConfig(s.name, "127.0.0.1")
	}
	p.dial()
	return p
}
