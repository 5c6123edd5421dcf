package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/gossip"
)

// pooled starts a server with gossip and returns its gossip address. The settings of
// more override its defaults.
func pooled(t *testing.T, more map[string]string) (*started, string) {
	t.Helper()
	flags := loopback(map[string]string{"server.enabled": "true", "data_dir": t.TempDir(), "listen.gossip": "127.0.0.1:0"})
	var environ []string
	for k, v := range more {
		if k == "gossip.keys" { // secrets cannot be set by flags
			environ = append(environ, "CEDE_GOSSIP__KEYS="+v)
			continue
		}
		flags[k] = v
	}
	s := start(t, load(t, config.Sources{Flags: flags, Environ: environ}))
	return s, s.server.pool.gossip.Addr()
}

func leads(s *started) func() bool { return func() bool { return s.server.log.IsLeader() } }

// voters returns the number of voting servers that s reports.
func voters(s *started) (n int) {
	for _, r := range s.server.log.Stats().Servers {
		if r.Suffrage == 0 {
			n++
		}
	}
	return n
}

func TestPool_RejectsServersOfAnotherCluster(t *testing.T) {
	t.Parallel()
	a, _ := pooled(t, nil)
	b, at := pooled(t, nil)
	eventually(t, "each leads its own cluster", func() bool {
		return a.server.pool.identity().ClusterID != "" && b.server.pool.identity().ClusterID != ""
	})
	_, err := a.server.server.JoinPool(t.Context(), at)
	if err == nil || !strings.Contains(err.Error(), "belongs to cluster") {
		t.Errorf("joining another cluster: error is %v", err)
	}
	if n := len(a.server.pool.Members()); n != 1 {
		t.Errorf("the pool has %d members", n)
	}
}

func TestPool_GossipKeysRejectOthersAndRotate(t *testing.T) {
	t.Parallel()
	const first = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" // 32 bytes
	a, at := pooled(t, map[string]string{"gossip.keys": first})
	outsider, _ := pooled(t, map[string]string{"server.bootstrap_expect": "3"})
	if _, err := outsider.server.server.JoinPool(t.Context(), at); err == nil {
		t.Error("a server without the key joined")
	}
	b, _ := pooled(t, map[string]string{"gossip.keys": first, "server.join": at})
	eventually(t, "both servers list each other", func() bool { return len(a.server.pool.Members()) == 2 && len(b.server.pool.Members()) == 2 })
	eventually(t, "the new server is added to Raft", func() bool { return len(b.server.log.Stats().Servers) == 2 })
	for _, step := range []struct {
		verb rpc.KeyVerb
		key  byte
		keys int
	}{{rpc.KeyInstall, 1, 2}, {rpc.KeyUse, 1, 2}, {rpc.KeyRemove, 0, 1}} {
		key := make([]byte, 32)
		for i := range key {
			key[i] = step.key
		}
		answers, err := b.server.server.Keyring(t.Context(), step.verb, key)
		if err != nil || len(answers) != 2 {
			t.Fatalf("%d servers responded: %v", len(answers), err)
		}
		for _, one := range answers {
			if one.Err != nil || len(one.Keys) != step.keys {
				t.Errorf("server %s after step %d has keys %v: %v", one.Server, step.verb, one.Keys, one.Err)
			}
		}
	}
}

// pki writes an authority and a server's certificate, and returns the flags for it.
func pki(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, raw []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cede"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"server.cede"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := write("cert.pem", "CERTIFICATE", raw)
	return map[string]string{"tls.cert": cert, "tls.ca": cert, "tls.key": write("key.pem", "PRIVATE KEY", secret), "tls.server_name": "server.cede"}
}

func with(a, more map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, a)
	maps.Copy(out, more)
	return out
}

// Over TLS, a new server is added and becomes a voter. If its certificate is of
// another authority, it is visible in gossip and nothing else.
func TestPool_CertificatesAuthenticateServers(t *testing.T) {
	t.Parallel()
	ours := pki(t)
	a, at := pooled(t, ours)
	eventually(t, "the first one leads", leads(a))
	b, _ := pooled(t, with(ours, map[string]string{"server.join": at}))
	eventually(t, "the new server votes", func() bool { return voters(a) == 2 && voters(b) == 2 })
	outsider, _ := pooled(t, with(pki(t), map[string]string{"server.join": at}))
	eventually(t, "the other server is visible in gossip", func() bool { return len(a.server.pool.Members()) == 3 })
	if _, err := a.server.pool.client.Status(t.Context(), outsider.server.id, ""); err == nil {
		t.Error("the server answered a request from outside its pool")
	}
	if _, err := outsider.server.pool.client.Status(t.Context(), a.server.id, ""); err == nil {
		t.Error("the server of another authority received a response")
	}
	if n := len(a.server.log.Stats().Servers); n != 2 {
		t.Errorf("%d servers are in Raft", n)
	}
}

// A policy is active only after every voting server has checked it, whichever server
// loads it.
func TestPool_PolicyWaitsForAllVoters(t *testing.T) {
	t.Parallel()
	a, at := pooled(t, nil)
	eventually(t, "the first one leads", leads(a))
	b, _ := pooled(t, map[string]string{"server.join": at})
	eventually(t, "both vote", func() bool { return voters(a) == 2 && voters(b) == 2 })
	v, err := a.server.server.LoadPolicy(t.Context(), policy.LoadRequest{Builtin: "nomad", Grants: []string{"keepRedundant"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.server.server.ActivatePolicy(t.Context(), v.Name, v.ID); err != nil {
		t.Fatal(err)
	}
	checks := a.server.state.Snapshot().PolicyVersion(v.ID).Checks
	if !checks[a.server.id].OK || !checks[b.server.id].OK {
		t.Errorf("the version is active, and its checks are %+v", checks)
	}
}

// If a server stops gracefully and restarts at other addresses, the pool uses them at
// once, without waiting for failure detection.
func TestPool_RestartedServerIsReachableAtNewAddress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, at := pooled(t, nil)
	eventually(t, "the first one leads", leads(a))
	b, before := pooled(t, map[string]string{"server.join": at, "data_dir": dir})
	eventually(t, "both vote", func() bool { return voters(a) == 2 && voters(b) == 2 })
	id := b.server.id
	b.end()
	began := time.Now()
	c, after := pooled(t, map[string]string{"server.join": at, "data_dir": dir})
	eventually(t, "the other servers have its new address", func() bool {
		m, _ := a.server.pool.member(id)
		return m.Addr == after && m.Status == gossip.Alive
	})
	if took := time.Since(began); took > 8*time.Second { // failure detection takes about ten seconds; package gossip tests it exactly
		t.Errorf("restart took %v", took)
	}
	if c.server.id != id || after == before {
		t.Errorf("server %s restarted with ID %s, at address %s", id, c.server.id, after)
	}
	eventually(t, "both vote", func() bool {
		return voters(a) == 2 && voters(c) == 2 && (a.server.log.IsLeader() || c.server.log.IsLeader())
	})
}
