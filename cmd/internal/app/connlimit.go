package app

import (
	"net"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// addressLimitListener limits the connections of each address, so that one client cannot
// use up the total limit of a listener. Connections above the limit are closed at once.
// Loopback connections are not counted. netutil.LimitListener of golang.org/x/net limits
// the total only, which is why this is written by hand.
type addressLimitListener struct {
	net.Listener
	limit   int
	refused prometheus.Counter

	mu   sync.Mutex
	open map[netip.Prefix]int // absent if 0
}

// limitPerAddress returns l with a limit for each address; 0: no limit.
func limitPerAddress(l net.Listener, most int, refused prometheus.Counter) net.Listener {
	if most == 0 {
		return l
	}
	return &addressLimitListener{Listener: l, limit: most, refused: refused, open: map[netip.Prefix]int{}}
}

// Accept returns the next connection that is within the limit of its address.
func (l *addressLimitListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, counts := addressPrefix(conn.RemoteAddr())
		if !counts {
			return conn, nil
		}
		if l.acquire(from) {
			return &limitedConn{Conn: conn, release: sync.OnceFunc(func() { l.release(from) })}, nil
		}
		l.refused.Inc()
		_ = conn.Close() // the connection is dropped in any case
	}
}

func (l *addressLimitListener) acquire(from netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from] >= l.limit {
		return false
	}
	l.open[from]++
	return true
}

func (l *addressLimitListener) release(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from]--; l.open[from] == 0 {
		delete(l.open, from)
	}
}

// limitedConn releases its slot when it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

// Close closes the connection. Further calls have no effect.
func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// addressPrefix returns the address that a connection is counted for: of IPv6 the /64
// network, because a host can use all addresses of it. Loopback connections are not
// counted.
func addressPrefix(a net.Addr) (from netip.Prefix, counts bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}, false
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	from, err := ip.Prefix(bits)
	return from, err == nil && !ip.IsLoopback()
}
