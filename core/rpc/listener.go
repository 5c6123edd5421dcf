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

// firstWithin is how long a caller may take to say what it wants, and mostGreets how
// many may do so at a time: those beyond are sent away at once. Servers of a pool are
// few, and try again.
const (
	firstWithin = 5 * time.Second
	mostGreets  = 256
)

// firstRaft begins a plain connection of Raft. gRPC begins with the P of HTTP/2.
const (
	firstRaft = 'R'
	firstGRPC = 'P'
)

// Identity is who this server is.
type Identity struct {
	ServerID  string
	ClusterID string // "" while it belongs to none
}

// Config is what a Listener and a Client work with. ID is needed.
type Config struct {
	// ID says who this server is, now.
	ID func() Identity
	// Credentials encrypt; nil: nothing is, which is for loopback and for a try.
	Credentials *Credentials
	Logger      *slog.Logger // nil: nothing is logged
}

func (c *Config) log() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// Listener takes connections and tells Raft's from gRPC's: by the protocol that a
// TLS handshake settles, or without TLS by the first byte.
type Listener struct {
	cfg        Config
	on         net.Listener
	advertised string
	raft, grpc *half

	mu     sync.Mutex
	greets map[net.Conn]struct{} // connections that have not said what they want
	closed bool
	group  sync.WaitGroup
	stop   chan struct{}
}

// Listen takes connections on l until Close. Others reach it at advertised.
func Listen(l net.Listener, advertised string, cfg Config) *Listener {
	if advertised == "" {
		advertised = l.Addr().String()
	}
	t := &Listener{cfg: cfg, on: l, advertised: advertised, greets: map[net.Conn]struct{}{}, stop: make(chan struct{})}
	t.raft, t.grpc = newHalf(t), newHalf(t)
	t.group.Go(t.accept)
	return t
}

// Addr is where others reach this server.
func (t *Listener) Addr() string { return t.advertised }

// Close takes no more connections, and ends those that have not said what they
// want. The others belong to Raft and to the Server.
func (t *Listener) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	close(t.stop)
	for c := range t.greets {
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
				t.group.Go(func() { t.greet(c) })
			}
			continue
		case errors.Is(err, net.ErrClosed):
			return
		}
		// Such as too many open files: it passes.
		wait = min(max(2*wait, 5*time.Millisecond), time.Second)
		t.cfg.log().Warn("a connection was not taken", "err", err)
		select {
		case <-time.After(wait):
		case <-t.stop:
			return
		}
	}
}

// track notes a connection, unless the listener is closed or has its hands full.
func (t *Listener) track(c net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.greets) >= mostGreets {
		_ = c.Close()
		return false
	}
	t.greets[c] = struct{}{}
	return true
}

// greet hands a connection to who it is for.
func (t *Listener) greet(raw net.Conn) {
	c, to, err := t.sort(raw)
	t.mu.Lock()
	delete(t.greets, raw)
	closed := t.closed
	t.mu.Unlock()
	if err != nil || closed {
		if err != nil {
			t.cfg.log().Warn("a caller was sent away", "address", raw.RemoteAddr().String(), "err", err)
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

// sort finds out what a caller wants, and for Raft who it is.
func (t *Listener) sort(raw net.Conn) (net.Conn, *half, error) {
	_ = raw.SetDeadline(time.Now().Add(firstWithin))
	c, isRaft, err := t.protocol(raw)
	if err != nil {
		return nil, nil, err
	}
	to := t.grpc
	if isRaft {
		to = t.raft
		if err := t.hear(c); err != nil {
			return nil, nil, err
		}
	}
	return c, to, raw.SetDeadline(time.Time{})
}

func (t *Listener) protocol(raw net.Conn) (c net.Conn, isRaft bool, err error) {
	if t.cfg.Credentials == nil {
		p := &peeked{Conn: raw, r: bufio.NewReader(raw)}
		first, err := p.r.Peek(1)
		switch {
		case err != nil:
			return nil, false, err
		case first[0] == firstRaft:
			_, _ = p.r.Discard(1) // it is there
			return p, true, nil
		case first[0] == firstGRPC:
			return p, false, nil
		}
		return nil, false, fmt.Errorf("%w: it speaks neither Raft nor gRPC, or TLS, which is off here", ErrStranger)
	}
	secure := tls.Server(raw, t.cfg.Credentials.accepting())
	if err := secure.Handshake(); err != nil {
		return nil, false, handshakeError(err)
	}
	switch secure.ConnectionState().NegotiatedProtocol {
	case protoRaft:
		return secure, true, nil
	case protoGRPC:
		return secure, false, nil
	}
	return nil, false, fmt.Errorf("%w: it speaks neither %s nor %s", ErrStranger, protoRaft, protoGRPC)
}

// peeked is a connection of which something was read already.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// half is the listener of one protocol.
type half struct {
	of    *Listener
	conns chan net.Conn
	once  sync.Once
	stop  chan struct{}

	mu     sync.Mutex
	open   map[*taken]struct{} // connections that were taken
	closed bool
}

// taken is a connection that ends with its half at the latest: Raft leaves those
// that others opened to themselves.
type taken struct {
	net.Conn
	of *half
}

// Close ends the connection.
func (c *taken) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

var _ net.Listener = (*half)(nil)

func newHalf(of *Listener) *half {
	return &half{of: of, conns: make(chan net.Conn), stop: make(chan struct{}), open: map[*taken]struct{}{}}
}

// Accept waits for a connection of the protocol.
func (h *half) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return h.take(c)
	case <-h.stop:
	case <-h.of.stop:
	}
	return nil, net.ErrClosed
}

func (h *half) take(c net.Conn) (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	t := &taken{Conn: c, of: h}
	h.open[t] = struct{}{}
	return t, nil
}

// Close ends Accept and the connections that were taken; the other protocol goes on.
func (h *half) Close() error {
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

// Addr is where others reach this server.
func (h *half) Addr() net.Addr { return address(h.of.advertised) }

// address need not be one of this machine's.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
