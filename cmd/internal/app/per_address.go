package app

import (
	"net"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// fairListener lets no address have more than its share of connections: a listener
// takes so many in all, and one caller who is slow, or means harm, could have them
// all. Those beyond are closed at once and cost the others nothing. This machine's own
// are not counted: its nodes and its tests come from one address.
type fairListener struct {
	net.Listener
	most    int
	refused prometheus.Counter

	mu   sync.Mutex
	open map[netip.Prefix]int // none is 0
}

// perAddress is l with a limit for each address; 0: none.
func perAddress(l net.Listener, most int, refused prometheus.Counter) net.Listener {
	if most == 0 {
		return l
	}
	return &fairListener{Listener: l, most: most, refused: refused, open: map[netip.Prefix]int{}}
}

// Accept waits for a connection that is not beyond its address's share.
func (l *fairListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, counts := origin(conn.RemoteAddr())
		if !counts {
			return conn, nil
		}
		if l.take(from) {
			return &fairConn{Conn: conn, give: sync.OnceFunc(func() { l.give(from) })}, nil
		}
		l.refused.Inc()
		_ = conn.Close() // it is not wanted either way
	}
}

func (l *fairListener) take(from netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from] >= l.most {
		return false
	}
	l.open[from]++
	return true
}

func (l *fairListener) give(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from]--; l.open[from] == 0 {
		delete(l.open, from)
	}
}

// fairConn gives its place back when it is closed.
type fairConn struct {
	net.Conn
	give func()
}

// Close closes the connection; twice is once.
func (c *fairConn) Close() error {
	defer c.give()
	return c.Conn.Close()
}

// origin is whose connection it is: an address, of IPv6 the network of one household,
// which has as many addresses as it likes. This machine's own do not count.
func origin(a net.Addr) (from netip.Prefix, counts bool) {
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
