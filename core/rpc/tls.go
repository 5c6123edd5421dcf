package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// The protocols that the listener tells apart in a TLS handshake.
const (
	protoRaft = "cede-raft"
	protoGRPC = "h2"
)

// Credentials are a server's certificate and the authority of its cluster, asked
// for anew at every handshake, so that they may change while the server runs.
type Credentials struct {
	Certificate func() *tls.Certificate
	Authority   func() *x509.CertPool
	// Name is what every server's certificate bears, beside addresses; "": the name
	// or address that a server is called at.
	Name       string
	MinVersion uint16 // default: TLS 1.2
}

func (c *Credentials) base() *tls.Config {
	return &tls.Config{MinVersion: max(c.MinVersion, tls.VersionTLS12)}
}

// accepting asks who calls: a certificate of the authority that is a server's. One
// that is good for clients alone is a node's or an operator's, who have no business
// among servers.
func (c *Credentials) accepting() *tls.Config {
	conf := c.base()
	conf.NextProtos = []string{protoRaft, protoGRPC}
	conf.ClientAuth = tls.RequireAnyClientCert // verified below, by an authority that may change
	conf.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.certificate() }
	conf.VerifyConnection = func(s tls.ConnectionState) error { return c.verify(s, c.Name) }
	return conf
}

// calling is how the server at a host is called.
func (c *Credentials) calling(host, proto string) *tls.Config {
	conf := c.base()
	conf.NextProtos = []string{proto}
	conf.ServerName = host
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.certificate() }
	conf.InsecureSkipVerify = true // VerifyConnection does it, by an authority that may change
	name := host
	if c.Name != "" {
		name = c.Name
	}
	conf.VerifyConnection = func(s tls.ConnectionState) error { return c.verify(s, name) }
	return conf
}

func (c *Credentials) certificate() (*tls.Certificate, error) {
	cert := c.Certificate()
	if cert == nil {
		return nil, errors.New("this server has no certificate")
	}
	return cert, nil
}

// verify is whether the other side's certificate is of a server of the cluster.
func (c *Credentials) verify(s tls.ConnectionState, name string) error {
	if len(s.PeerCertificates) == 0 {
		return fmt.Errorf("%w: it shows no certificate", ErrStranger)
	}
	opts := x509.VerifyOptions{
		DNSName: name, Roots: c.Authority(), Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, between := range s.PeerCertificates[1:] {
		opts.Intermediates.AddCert(between)
	}
	if _, err := s.PeerCertificates[0].Verify(opts); err != nil {
		return fmt.Errorf("%w: %w", ErrStranger, err)
	}
	return nil
}

// handshakeError says what the other side may have meant by ending a handshake: TLS
// has few words for it, or none.
func handshakeError(err error) error {
	remote, told := errors.AsType[*net.OpError](err)
	switch {
	case told && remote.Op == "remote error":
		return fmt.Errorf("the other side refuses this server's certificate (%w): it must be signed by an authority of theirs, and be good for servers", err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("the other side hung up during the TLS handshake (%w): it may have no certificate of its own", err)
	}
	return err
}

// hostOf is the host of an address.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
