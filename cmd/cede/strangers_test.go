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

// What a stranger lacks, and what is said of it on both sides.
var strangers = []struct {
	name string
	make func(p *processPool, s *poolServer)
	own  string // in what the stranger says
	pool string // in what a server of the pool says
}{
	{
		"no key of gossip",
		func(p *processPool, s *poolServer) { s.more = tlsOf(p.authority, s.name, "127.0.0.1", serverUses...) },
		"encryption is not configured", "remote state is not encrypted",
	},
	{
		"another key of gossip",
		func(p *processPool, s *poolServer) {
			s.more = tlsOf(p.authority, s.name, "127.0.0.1", serverUses...) + gossipOf(gossipKey(p.t, filepath.Join(p.dir, "other.key")))
		},
		"no installed keys could decrypt", "no installed keys could decrypt",
	},
	{
		"another pool's name",
		func(p *processPool, s *poolServer) {
			s.more = tlsOf(p.authority, s.name, "127.0.0.1", serverUses...) + strings.Replace(gossipOf(p.key), "{", "{name: other, ", 1)
		},
		"a pool of another name", "unacceptable label",
	},
	{
		"no certificate",
		func(p *processPool, s *poolServer) { s.more = gossipOf(p.key) },
		"TLS is disabled on this server", "closed the connection during the TLS handshake",
	},
	{
		"another authority's certificate",
		func(p *processPool, s *poolServer) {
			s.more = tlsOf(newTestAuthority(p.t, filepath.Join(p.dir, "others")), s.name, "127.0.0.1", serverUses...) + gossipOf(p.key)
		},
		"rejected the certificate of this server", "signed by unknown authority",
	},
	{
		"a node's certificate",
		func(p *processPool, s *poolServer) {
			s.more = tlsOf(p.authority, s.name, "127.0.0.1", x509.ExtKeyUsageClientAuth) + gossipOf(p.key)
		},
		"rejected the certificate of this server", "incompatible key usage",
	},
	{
		"a server of another cluster",
		func(p *processPool, s *poolServer) {
			s.more = tlsOf(p.authority, s.name, "127.0.0.1", serverUses...) + gossipOf(p.key)
			do(p.t, os.MkdirAll(filepath.Join(p.dir, s.name), 0o700))
			s.alone = true
			s.start()
			eventually(p.t, "it has a cluster of its own", s.leads)
			s.kill()
			s.alone = false
		},
		"belongs to cluster", "belongs to cluster",
	},
}

// Who cannot show that it belongs to the pool gets nowhere: not into gossip, not
// into Raft, and not to any call; and both sides say why.
func TestStrangers(t *testing.T) {
	p := newTLSPool(t)
	for _, s := range p.servers {
		s.start()
	}
	lead := p.leader()
	for i, x := range strangers {
		t.Run(x.name, func(t *testing.T) {
			said := map[*poolServer]int{}
			for _, m := range p.servers {
				said[m] = len(m.log.String())
			}
			s := &poolServer{p: p, name: fmt.Sprint("stranger", i), http: freePort(t), rpc: freePort(t), gossip: freePort(t)}
			x.make(p, s)
			before := len(s.log.String())
			s.start()
			eventually(t, "the stranger says why", func() bool { return strings.Contains(s.log.String()[before:], x.own) })
			eventually(t, "a server says why", func() bool {
				return slices.ContainsFunc(p.servers, func(m *poolServer) bool { return strings.Contains(m.log.String()[said[m]:], x.pool) })
			})
			// One of them has a log of its own, and a cluster of itself.
			if st, err := s.status(); err == nil && len(st.Servers) != 1 && (st.LastIndex > 0 || st.LeaderID != "" || len(st.Servers) > 1) {
				t.Errorf("the stranger has something of the log: %+v", st)
			}
			s.kill()
			st, err := lead.status()
			do(t, err)
			if st.State != "Leader" || len(st.Servers) != 3 {
				t.Errorf("the pool is another one: %+v", st)
			}
		})
	}
}

// newTLSPool is three servers on loopback with certificates and a key of gossip, that
// are not started yet.
func newTLSPool(t *testing.T) *processPool {
	t.Helper()
	p := newProcessPool(t)
	p.secure()
	for _, s := range p.servers {
		s.more = p.secured(s.name, "127.0.0.1")
	}
	p.dial()
	return p
}
