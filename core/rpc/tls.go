package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
)

// The ALPN protocols by which the listener separates connections.
const (
	protoRaft = "cede-raft"
	protoGRPC = "h2"
)

// Credentials hold the certificate of a server and the authorities of its cluster. Both are
// read at every handshake, so they can change while the server runs.
type Credentials struct {
	Certificate func() *tls.Certificate
	Authority   func() *x509.CertPool
	// Name is the DNS name that every server's certificate holds. If it is empty, a
	// certificate must hold the name or address at which the server is called. The usages
	// of serverUsages are required in both cases.
	Name       string
	MinVersion uint16 // default: TLS 1.2
	// NoPeers rejects every connection: the server is the only one of its cluster. Without
	// a Name, the certificate of a node that lists both usages would otherwise be accepted.
	NoPeers bool
}

func (c *Credentials) base() *tls.Config {
	return &tls.Config{MinVersion: max(c.MinVersion, tls.VersionTLS12)}
}

// serverConfig returns the TLS configuration for incoming connections. It requires a
// server's certificate of the cluster's authority.
func (c *Credentials) serverConfig() *tls.Config {
	conf := c.base()
	conf.NextProtos = []string{protoRaft, protoGRPC}
	conf.ClientAuth = tls.RequireAnyClientCert // verified below, because the authority may change
	conf.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.certificate() }
	conf.VerifyConnection = func(s tls.ConnectionState) error { return c.verify(s, c.Name) }
	return conf
}

// clientConfig returns the TLS configuration for a connection to a host.
func (c *Credentials) clientConfig(host, proto string) *tls.Config {
	conf := c.base()
	conf.NextProtos = []string{proto}
	conf.ServerName = host
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.certificate() }
	conf.InsecureSkipVerify = true // VerifyConnection verifies, because the authority may change
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

// serverUsages are the extended key usages that a server's certificate lists. They are the
// role of its holder: certificates of nodes and operators, which must not call servers,
// lack one of them.
var serverUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}

// missingUsage returns a description of the extended key usages that a server's
// certificate must list and this one does not; "" if there are none. A certificate
// without any usage, or with the usage "any", is valid for every purpose in X.509, so it
// proves no role.
func missingUsage(cert *x509.Certificate) string {
	var missing []string
	for _, u := range serverUsages {
		if !slices.Contains(cert.ExtKeyUsage, u) {
			missing = append(missing, map[x509.ExtKeyUsage]string{x509.ExtKeyUsageServerAuth: "serverAuth", x509.ExtKeyUsageClientAuth: "clientAuth"}[u])
		}
	}
	return strings.Join(missing, " and ")
}

// verify returns an error unless the peer's certificate belongs to a server of the cluster.
func (c *Credentials) verify(s tls.ConnectionState, name string) error {
	if c.NoPeers {
		return fmt.Errorf("%w: this server is not one of a pool (listen.gossip is not set)", ErrUntrusted)
	}
	if len(s.PeerCertificates) == 0 {
		return fmt.Errorf("%w: it sent no certificate", ErrUntrusted)
	}
	leaf := s.PeerCertificates[0]
	opts := x509.VerifyOptions{
		DNSName: name, Roots: c.Authority(), Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, between := range s.PeerCertificates[1:] {
		opts.Intermediates.AddCert(between)
	}
	if _, err := leaf.Verify(opts); err != nil {
		return fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	if missing := missingUsage(leaf); missing != "" {
		return fmt.Errorf("%w: its certificate is not that of a server: it lacks the extended key usage %s", ErrUntrusted, missing)
	}
	return nil
}

// handshakeError adds the probable cause to an error of a TLS handshake: TLS itself reports
// little or nothing.
func handshakeError(err error) error {
	remote, isRemote := errors.AsType[*net.OpError](err)
	switch {
	case isRemote && remote.Op == "remote error":
		return fmt.Errorf("the peer rejected the certificate of this server (%w): it must be signed by an authority that the peer trusts, and allow server and client authentication", err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("the peer closed the connection during the TLS handshake (%w): it may have no certificate", err)
	}
	return err
}

// hostOf returns the host of an address.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
