package app

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/rpc"
)

// certificates holds the process's certificate and its trusted authorities. Listeners
// and dialers read them for each connection, so that a reload closes no listener.
type certificates struct{ now atomic.Pointer[keys] }

type keys struct {
	cert  *tls.Certificate
	roots *x509.CertPool // nil: the roots of the system
	min   uint16
}

// newCertificates reads the files. It returns nil if TLS is not configured.
func newCertificates(c config.TLS) (*certificates, error) {
	if c.Cert == "" && c.CA == "" {
		return nil, nil
	}
	s := &certificates{}
	return s, s.load(c)
}

// load reads the files again. If it returns an error, the previous certificates stay.
func (s *certificates) load(c config.TLS) error {
	k := &keys{min: tls.VersionTLS12}
	if c.MinVersion == "1.3" {
		k.min = tls.VersionTLS13
	}
	var errs []error
	if c.Cert != "" {
		cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			errs = append(errs, fmt.Errorf("tls.cert %s with tls.key %s: %w", c.Cert, c.Key, err))
		} else if cert.Leaf != nil && time.Now().After(cert.Leaf.NotAfter) {
			errs = append(errs, fmt.Errorf("tls.cert %s: expired on %s", c.Cert, cert.Leaf.NotAfter.Format(time.DateOnly)))
		}
		k.cert = &cert
	}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		k.roots = x509.NewCertPool()
		if err == nil && !k.roots.AppendCertsFromPEM(pem) {
			err = errors.New("file contains no certificate")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tls.ca %s: %w", c.CA, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.now.Store(k)
	return nil
}

// hasServerCertificate reports whether listeners use TLS.
func (s *certificates) hasServerCertificate() bool { return s != nil && s.now.Load().cert != nil }

// server returns the TLS configuration of a listener; verify requires client certificates.
func (s *certificates) server(verify bool) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			k := s.now.Load()
			c := &tls.Config{MinVersion: k.min, Certificates: []tls.Certificate{*k.cert}, NextProtos: []string{"h2", "http/1.1"}}
			if verify {
				c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, k.roots
			}
			return c, nil
		},
	}
}

// client returns the TLS configuration of clients within the cluster. The authorities
// are read at each handshake, with the same verification as crypto/tls.
func (s *certificates) client() *tls.Config {
	return &tls.Config{
		MinVersion: s.now.Load().min,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if cert := s.now.Load().cert; cert != nil {
				return cert, nil
			}
			return &tls.Certificate{}, nil
		},
		InsecureSkipVerify: true, // VerifyConnection verifies, with authorities that a reload may replace
		VerifyConnection: func(state tls.ConnectionState) error {
			opts := x509.VerifyOptions{DNSName: state.ServerName, Roots: s.now.Load().roots, Intermediates: x509.NewCertPool()}
			for _, c := range state.PeerCertificates[1:] {
				opts.Intermediates.AddCert(c)
			}
			_, err := state.PeerCertificates[0].Verify(opts)
			return err
		},
	}
}

// serverToServer returns the TLS configuration between servers; nil without TLS.
func (s *certificates) serverToServer(c *config.Config) *rpc.Credentials {
	if !s.hasServerCertificate() {
		return nil
	}
	return &rpc.Credentials{
		Certificate: func() *tls.Certificate { return s.now.Load().cert },
		Authority:   func() *x509.CertPool { return s.now.Load().roots },
		Name:        c.TLS.ServerName, MinVersion: s.now.Load().min, NoPeers: !c.Pooled(),
	}
}

// transport returns the HTTP transport to other hosts of the cluster.
func (s *certificates) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 16
	t.Proxy = nil // servers are reached directly
	if s != nil {
		t.TLSClientConfig = s.client()
		t.ForceAttemptHTTP2 = true
	}
	return t
}

// wrap returns a TLS listener if TLS is configured, otherwise l.
func (s *certificates) wrap(l net.Listener, verify bool) net.Listener {
	if !s.hasServerCertificate() {
		return l
	}
	return tls.NewListener(l, s.server(verify))
}

// scheme returns http or https.
func (s *certificates) scheme() string {
	if s.hasServerCertificate() {
		return "https"
	}
	return "http"
}
