package app

import (
	"net"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// addressLimitListener lets no address have more than its share of connections: a listener
// takes so many in all, and one caller who is slow, or means harm, could have them
// all. Those beyond are closed at once and cost the others nothing. This machine's own
// are not counted: its nodes and its tests come from one address.
type addressLimitListener struct {
	net.Listener
	limit   int
	refused prometheus.Counter

	mu   sync.Mutex
	open map[netip.Prefix]int // none is 0
}

// limitPerAddress is l with a limit for each address; 0: none.
func limitPerAddress(l net.Listener, most int, refused prometheus.Counter) net.Listener {
	if most == 0 {
		return l
	}
	return &addressLimitListener{Listener: l, limit: most, refused: refused, open: map[netip.Prefix]int{}}
}

// Accept waits for a connection that is not beyond its address's share.
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
		_ = conn.Close() // it is not wanted either way
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

// limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

// Close closes the connection; twice is once.
func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// addressPrefix is whose connection it is: an address, of IPv6 the network of one household,
// which has as many addresses as it likes. This machine's own do not count.
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
