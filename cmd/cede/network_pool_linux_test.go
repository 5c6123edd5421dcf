package main

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cedetest"
)

// newNetPool returns three servers with certificates in namespaces of their own. They are
// not started.
func newNetPool(t *testing.T) *processPool {
	t.Helper()
	n := newTestNet(t)
	p := &processPool{t: t, dir: t.TempDir(), net: n}
	p.enableTLS()
	p.program = cedetest.Program(t)
	for i := range 3 {
		s := &poolServer{p: p, name: fmt.Sprintf("s%d", i+1)}
		host := n.add(s.name)
		s.http, s.rpc, s.gossip = host+":4646", host+":4647", host+":4648"
		s.extraConfig = p.tlsServerConfig(s.name, host)
		p.servers = append(p.servers, s)
	}
	p.dial()
	return p
}
