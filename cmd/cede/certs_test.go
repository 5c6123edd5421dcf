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

// testAuthority signs certificates, as examples/pool's does, into a folder.
type testAuthority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	made int64
}

func newTestAuthority(t *testing.T, dir string) *testAuthority {
	t.Helper()
	do(t, os.MkdirAll(dir, 0o700))
	a := &testAuthority{t: t, dir: dir}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	do(t, err)
	raw, err := x509.CreateCertificate(rand.Reader, form, form, &a.key.PublicKey, a.key)
	do(t, err)
	a.cert, err = x509.ParseCertificate(raw)
	do(t, err)
	a.write("ca.pem", "CERTIFICATE", raw)
	return a
}

func (a *testAuthority) write(name, kind string, raw []byte) {
	a.t.Helper()
	do(a.t, os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600))
}

// ca is the file of the authority's own certificate.
func (a *testAuthority) ca() string { return filepath.Join(a.dir, "ca.pem") }

// issue writes NAME.pem and NAME-key.pem for a host at an address.
func (a *testAuthority) issue(name, address string, uses ...x509.ExtKeyUsage) (cert, key string) {
	a.t.Helper()
	a.made++
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1 + a.made), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		ExtKeyUsage: uses, IPAddresses: []net.IP{net.ParseIP(address), net.IPv4(127, 0, 0, 1)},
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	do(a.t, err)
	raw, err := x509.CreateCertificate(rand.Reader, form, a.cert, &own.PublicKey, a.key)
	do(a.t, err)
	a.write(name+".pem", "CERTIFICATE", raw)
	raw, err = x509.MarshalECPrivateKey(own)
	do(a.t, err)
	a.write(name+"-key.pem", "EC PRIVATE KEY", raw)
	return filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+"-key.pem")
}

var serverUses = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}

// gossipKey writes a new key of gossip to a file, and gives it as the configuration
// has it.
func gossipKey(t *testing.T, file string) string {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	do(t, os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(key)), 0o600))
	return "file:" + file
}

// tlsOf is what a server's configuration says of a certificate that is made for it.
func tlsOf(by *testAuthority, name, host string, uses ...x509.ExtKeyUsage) string {
	by.t.Helper()
	cert, key := by.issue(name, host, uses...)
	return fmt.Sprintf("tls: {cert: %q, key: %q, ca: %q}\n", cert, key, by.ca())
}

func gossipOf(key string) string { return fmt.Sprintf("gossip: {keys: %q}\n", key) }

// secure gives a pool whose servers have not been made yet what they know each other
// by.
func (p *processPool) secure() {
	p.t.Helper()
	p.authority = newTestAuthority(p.t, filepath.Join(p.dir, "certs"))
	p.key = gossipKey(p.t, filepath.Join(p.dir, "gossip.key"))
}

// secured is the configuration of a server of such a pool.
func (p *processPool) secured(name, host string) string {
	p.t.Helper()
	return tlsOf(p.authority, name, host, serverUses...) + gossipOf(p.key)
}
