package rpc

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// A caller must identify itself within handshakeTimeout, and at most maxHandshakes callers
// may do so at a time. Further connections are closed at once: a pool has few servers, and
// they retry.
const (
	handshakeTimeout = 5 * time.Second
	maxHandshakes    = 256
)

// firstRaft is the first byte of a plain Raft connection. HTTP/2, and so gRPC, starts with P.
const (
	firstRaft = 'R'
	firstGRPC = 'P'
)

// An Identity names a server and its cluster.
type Identity struct {
	ServerID  string
	ClusterID string // "" if it belongs to none
}

// A Config configures a Listener and a Client. ID is required.
type Config struct {
	// ID returns the current identity of this server.
	ID func() Identity
	// Credentials encrypt and authenticate connections. If nil, connections are plain,
	// which is meant for loopback and tests.
	Credentials *Credentials
	Logger      *slog.Logger // nil: no logs
}

func (c *Config) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// A Listener accepts connections and separates Raft from gRPC: by the protocol that the TLS
// handshake negotiates, or by the first byte without TLS.
type Listener struct {
	cfg        Config
	on         net.Listener
	advertised string
	raft, grpc *protocolListener
	refused    *refusals

	mu         sync.Mutex
	handshakes map[net.Conn]struct{} // connections that have not identified themselves
	closed     bool
	group      sync.WaitGroup
	stop       chan struct{}
}

// Listen accepts connections on l until Close. Other servers connect to advertised.
func Listen(l net.Listener, advertised string, cfg Config) *Listener {
	if advertised == "" {
		advertised = l.Addr().String()
	}
	t := &Listener{cfg: cfg, on: l, advertised: advertised, refused: newRefusals(), handshakes: map[net.Conn]struct{}{}, stop: make(chan struct{})}
	t.raft, t.grpc = newProtocolListener(t), newProtocolListener(t)
	t.group.Go(t.accept)
	return t
}

// Addr returns the address that other servers connect to.
func (t *Listener) Addr() string { return t.advertised }

// Close stops accepting connections, and closes those that have not identified themselves.
// The others belong to Raft and to the Server.
func (t *Listener) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	close(t.stop)
	for c := range t.handshakes {
		_ = c.Close()
	}
	t.mu.Unlock()
	err := t.on.Close()
	t.group.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (t *Listener) accept() {
	for wait := time.Duration(0); ; {
		c, err := t.on.Accept()
		switch {
		case err == nil:
			wait = 0
			if t.track(c) {
				t.group.Go(func() { t.dispatch(c) })
			}
			continue
		case errors.Is(err, net.ErrClosed):
			return
		}
		// A temporary error, for example too many open files.
		wait = min(max(2*wait, 5*time.Millisecond), time.Second)
		t.cfg.logger().Warn("failed to accept connection", "err", err)
		select {
		case <-time.After(wait):
		case <-t.stop:
			return
		}
	}
}

// track registers a connection. It closes the connection and returns false if the listener
// is closed or has too many handshakes in progress.
func (t *Listener) track(c net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.handshakes) >= maxHandshakes {
		_ = c.Close()
		return false
	}
	t.handshakes[c] = struct{}{}
	return true
}

// dispatch identifies a connection and passes it to its protocol.
func (t *Listener) dispatch(raw net.Conn) {
	c, to, err := t.identify(raw)
	t.mu.Lock()
	delete(t.handshakes, raw)
	closed := t.closed
	t.mu.Unlock()
	if err != nil || closed {
		if err != nil {
			t.refused.record(func(count int64) {
				t.cfg.logger().Warn("connection refused", "address", raw.RemoteAddr().String(), "err", err, "count", count)
			})
		}
		_ = raw.Close()
		return
	}
	select {
	case to.conns <- c:
	case <-to.stop:
		_ = c.Close()
	case <-t.stop:
		_ = c.Close()
	}
}

// identify returns the protocol of a connection. For Raft it also reads the identity of the
// caller.
func (t *Listener) identify(raw net.Conn) (net.Conn, *protocolListener, error) {
	_ = raw.SetDeadline(time.Now().Add(handshakeTimeout))
	c, isRaft, err := t.protocol(raw)
	if err != nil {
		return nil, nil, err
	}
	to := t.grpc
	if isRaft {
		to = t.raft
		if err := t.readHello(c); err != nil {
			return nil, nil, err
		}
	}
	return c, to, raw.SetDeadline(time.Time{})
}

func (t *Listener) protocol(raw net.Conn) (c net.Conn, isRaft bool, err error) {
	if t.cfg.Credentials == nil {
		p := &peekedConn{Conn: raw, r: bufio.NewReader(raw)}
		first, err := p.r.Peek(1)
		switch {
		case err != nil:
			return nil, false, err
		case first[0] == firstRaft:
			_, _ = p.r.Discard(1) // buffered: cannot fail
			return p, true, nil
		case first[0] == firstGRPC:
			return p, false, nil
		}
		return nil, false, fmt.Errorf("%w: neither Raft nor gRPC; TLS is disabled on this server", ErrUntrusted)
	}
	secure := tls.Server(raw, t.cfg.Credentials.serverConfig())
	if err := secure.Handshake(); err != nil {
		return nil, false, handshakeError(err)
	}
	switch secure.ConnectionState().NegotiatedProtocol {
	case protoRaft:
		return secure, true, nil
	case protoGRPC:
		return secure, false, nil
	}
	return nil, false, fmt.Errorf("%w: neither %s nor %s was negotiated", ErrUntrusted, protoRaft, protoGRPC)
}

// A peekedConn is a connection whose first bytes are buffered.
type peekedConn struct {
	net.Conn
	r *bufio.Reader
}

func (p *peekedConn) Read(b []byte) (int, error) { return p.r.Read(b) }

// A protocolListener is the listener of one protocol.
type protocolListener struct {
	of    *Listener
	conns chan net.Conn
	once  sync.Once
	stop  chan struct{}

	mu     sync.Mutex
	open   map[*trackedConn]struct{} // accepted connections
	closed bool
}

// A trackedConn is closed with its listener at the latest: Raft does not close connections
// that it accepted.
type trackedConn struct {
	net.Conn
	of *protocolListener
}

// Close closes the connection.
func (c *trackedConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

var _ net.Listener = (*protocolListener)(nil)

func newProtocolListener(of *Listener) *protocolListener {
	return &protocolListener{of: of, conns: make(chan net.Conn), stop: make(chan struct{}), open: map[*trackedConn]struct{}{}}
}

// Accept waits for a connection of the protocol.
func (h *protocolListener) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return h.track(c)
	case <-h.stop:
	case <-h.of.stop:
	}
	return nil, net.ErrClosed
}

func (h *protocolListener) track(c net.Conn) (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	t := &trackedConn{Conn: c, of: h}
	h.open[t] = struct{}{}
	return t, nil
}

// Close ends Accept and closes the accepted connections. The other protocol is not affected.
func (h *protocolListener) Close() error {
	h.once.Do(func() { close(h.stop) })
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for c := range h.open {
		_ = c.Conn.Close()
	}
	clear(h.open)
	return nil
}

// Addr returns the address that other servers connect to.
func (h *protocolListener) Addr() net.Addr { return address(h.of.advertised) }

// An address is an advertised address. It may belong to another host, such as a proxy.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
