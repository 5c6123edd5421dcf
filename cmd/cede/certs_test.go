package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A testAuthority is a certificate authority that writes its files into a folder.
type testAuthority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	made int64
}

func newTestAuthority(t *testing.T, dir string) *testAuthority {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	a := &testAuthority{t: t, dir: dir}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	raw, err := x509.CreateCertificate(rand.Reader, form, form, &a.key.PublicKey, a.key)
	must(t, err)
	a.cert, err = x509.ParseCertificate(raw)
	must(t, err)
	a.write("ca.pem", "CERTIFICATE", raw)
	return a
}

func (a *testAuthority) write(name, kind string, raw []byte) {
	a.t.Helper()
	must(a.t, os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600))
}

// caFile returns the path of the authority's own certificate.
func (a *testAuthority) caFile() string { return filepath.Join(a.dir, "ca.pem") }

// issue writes NAME.pem and NAME-key.pem for a host with the given address.
func (a *testAuthority) issue(name, address string, uses ...x509.ExtKeyUsage) (cert, key string) {
	a.t.Helper()
	a.made++
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1 + a.made), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		ExtKeyUsage: uses, IPAddresses: []net.IP{net.ParseIP(address), net.IPv4(127, 0, 0, 1)},
	}
	if len(uses) > 0 { // certificates without usages are those of nodes and clients
		form.DNSNames = []string{serverName}
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	raw, err := x509.CreateCertificate(rand.Reader, form, a.cert, &own.PublicKey, a.key)
	must(a.t, err)
	a.write(name+".pem", "CERTIFICATE", raw)
	raw, err = x509.MarshalECPrivateKey(own)
	must(a.t, err)
	a.write(name+"-key.pem", "EC PRIVATE KEY", raw)
	return filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+"-key.pem")
}

// serverName is the name that only the certificates of servers contain.
const serverName = "server.cede"

var serverUses = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}

// gossipKey writes a new gossip key to a file and returns its reference as used in a
// configuration.
func gossipKey(t *testing.T, file string) string {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	must(t, os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(key)), 0o600))
	return "file:" + file
}

// tlsConfig issues a certificate and returns the YAML of the tls section that uses it.
func tlsConfig(by *testAuthority, name, host string, uses ...x509.ExtKeyUsage) string {
	by.t.Helper()
	cert, key := by.issue(name, host, uses...)
	return fmt.Sprintf("tls: {cert: %q, key: %q, ca: %q, server_name: %s}\n", cert, key, by.caFile(), serverName)
}

// gossipConfig returns the YAML of a gossip section with a key.
func gossipConfig(key string) string { return fmt.Sprintf("gossip: {keys: %q}\n", key) }

// enableTLS creates the certificate authority and the gossip key of a pool. It must be
// called before its servers are configured.
func (p *processPool) enableTLS() {
	p.t.Helper()
	p.ca = newTestAuthority(p.t, filepath.Join(p.dir, "certs"))
	p.gossipKey = gossipKey(p.t, filepath.Join(p.dir, "gossip.key"))
}

// tlsServerConfig returns the YAML of the tls and gossip sections of a server.
func (p *processPool) tlsServerConfig(name, host string) string {
	p.t.Helper()
	return tlsConfig(p.ca, name, host, serverUses...) + gossipConfig(p.gossipKey)
}
