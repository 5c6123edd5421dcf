package app

import (
	"crypto/tls"
	"io"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// stream is how servers reach each other for Raft: TCP, encrypted where the
// process has certificates.
type stream struct {
	net.Listener
	advertised net.Addr
	certs      *certificates
}

var _ raft.StreamLayer = (*stream)(nil)

// Dial calls another server.
func (s *stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	d := &net.Dialer{Timeout: timeout}
	if !s.certs.serves() {
		return d.Dial("tcp", string(address))
	}
	return tls.DialWithDialer(d, "tcp", string(address), s.certs.client())
}

// Addr is where others find this server.
func (s *stream) Addr() net.Addr { return s.advertised }

// advertised is an address that need not be one of this machine's.
type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }

// transportTimeout is how long one message between servers may take.
const transportTimeout = 10 * time.Second

// newTransport makes the transport of a server that listens on l.
func newTransport(l net.Listener, advertise string, certs *certificates) *raft.NetworkTransport {
	mutual := certs != nil && certs.now.Load().roots != nil
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:  &stream{Listener: certs.wrap(l, mutual), advertised: advertised(advertise), certs: certs},
		MaxPool: 4, Timeout: transportTimeout,
		Logger: hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off}),
	})
}

// untracked is a log that does not tell Raft what was committed. Raft 1.8 applies
// what it is told of before it looks for the cluster's configuration, and then looks
// only behind it: a server that was stopped cleanly would come back without knowing
// who its servers are, and never lead. Without being told, it replays the log when
// it leads or hears a leader.
type untracked struct{ raft.LogStore }

// IsMonotonic is whether the log has no gaps.
func (u untracked) IsMonotonic() bool {
	m, ok := u.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}
