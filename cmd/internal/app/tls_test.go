package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/sdk/client"
)

// authority signs certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, file string) *authority {
	t.Helper()
	a := &authority{t: t}
	a.key = newKey(t)
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, file, "CERTIFICATE", raw)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t *testing.T, file, kind string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sign writes a certificate for this machine and its key.
func (a *authority) sign(name, certFile, keyFile string) {
	a.t.Helper()
	key := newKey(a.t)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	if err != nil {
		a.t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	writePEM(a.t, certFile, "CERTIFICATE", raw)
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	writePEM(a.t, keyFile, "EC PRIVATE KEY", der)
}

func TestTLS_MutualAuthenticationAndRenewal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	ca := newAuthority(t, path("ca.pem"))
	ca.sign("first", path("cert.pem"), path("key.pem"))
	file, _ := durable(t, fmt.Sprintf("tls: {cert: %s, key: %s, ca: %s, verify_client: true}\n", path("cert.pem"), path("key.pem"), path("ca.pem")))
	s := start(t, load(t, config.Sources{Files: []string{file}, Environ: asSelf}))
	if !strings.HasPrefix(s.URL(), "https://") {
		t.Fatalf("URL is %s", s.URL())
	}
	var err error
	if s.c, err = client.New(client.Config{Address: s.URL(), CACert: path("ca.pem"), ClientCert: path("cert.pem"), ClientKey: path("key.pem")}); err != nil {
		t.Fatal(err)
	}
	s.register(job("web", 50, 1, 10, "sim", nil))
	s.await("web", "running") // so that the node presents its certificate, too

	bare, err := client.New(client.Config{Address: s.URL(), CACert: path("ca.pem"), Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bare.Status().Leader(t.Context()); err == nil {
		t.Error("a client without a certificate received a response")
	}
	bare.Close()

	served := func() string {
		roots := x509.NewCertPool()
		pem, err := os.ReadFile(path("ca.pem"))
		if err != nil || !roots.AppendCertsFromPEM(pem) {
			t.Fatal(err)
		}
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"), &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if name := served(); name != "first" {
		t.Errorf("certificate is %s", name)
	}
	ca.sign("second", path("cert.pem"), path("key.pem"))
	if _, err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if name := served(); name != "second" {
		t.Errorf("certificate after the renewal is %s", name)
	}
	if err := os.WriteFile(path("key.pem"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "tls.key") {
		t.Errorf("with an invalid key: %v", err)
	}
	if name := served(); name != "second" {
		t.Errorf("certificate after a failed renewal is %s", name)
	}
}

func TestTLS_RejectsOldVersionsAndUnknownClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	ca := newAuthority(t, path("ca.pem"))
	ca.sign("server", path("cert.pem"), path("key.pem"))
	other := newAuthority(t, path("other-ca.pem"))
	other.sign("other", path("other.pem"), path("other-key.pem"))
	certs, err := newCertificates(config.TLS{Cert: path("cert.pem"), Key: path("key.pem"), CA: path("ca.pem"), MinVersion: "1.3"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(certs.wrap(l, true))
	}()
	defer func() { _ = srv.Close(); <-done }()
	get := func(transport *http.Transport) error {
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String())
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	if err := get(certs.transport()); err != nil {
		t.Errorf("certificate of the cluster: %v", err)
	}
	others, err := newCertificates(config.TLS{Cert: path("other.pem"), Key: path("other-key.pem"), CA: path("ca.pem"), MinVersion: "1.3"})
	if err != nil {
		t.Fatal(err)
	}
	if err := get(others.transport()); err == nil {
		t.Error("a certificate of another authority is accepted")
	}
	trusting, err := newCertificates(config.TLS{Cert: path("cert.pem"), Key: path("key.pem"), CA: path("other-ca.pem"), MinVersion: "1.3"})
	if err != nil {
		t.Fatal(err)
	}
	if err := get(trusting.transport()); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("certificate of another authority: %v", err)
	}
	old := certs.transport()
	old.TLSClientConfig.MinVersion, old.TLSClientConfig.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if err := get(old); err == nil {
		t.Error("TLS 1.2 is accepted with min_version 1.3")
	}
}
