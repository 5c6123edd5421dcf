package app

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// callers is a listener with in-memory connections; the test holds their other ends.
type callers struct {
	queue chan net.Conn
	once  sync.Once
}

func (c *callers) Accept() (net.Conn, error) {
	conn, ok := <-c.queue
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (c *callers) Close() error {
	c.once.Do(func() { close(c.queue) })
	return nil
}

func (c *callers) Addr() net.Addr { return &net.TCPAddr{} }

// from connects from an address; other is the caller's end.
func (c *callers) from(address string) (other net.Conn) {
	here, there := net.Pipe()
	c.queue <- &fromConn{here, &net.TCPAddr{IP: net.ParseIP(address), Port: 1234}}
	return there
}

type fromConn struct {
	net.Conn
	remote net.Addr
}

func (c *fromConn) RemoteAddr() net.Addr { return c.remote }

func TestPerAddress_LimitsConnections(t *testing.T) {
	t.Parallel()
	refused := prometheus.NewCounter(prometheus.CounterOpts{Name: "refused_total", Help: "Connections that were refused."})
	in := &callers{queue: make(chan net.Conn, 32)}
	l := limitPerAddress(in, 2, refused).(*addressLimitListener)
	var others []net.Conn
	for address := range strings.FieldsSeq("10.0.0.1 10.0.0.1 10.0.0.1 ::ffff:10.0.0.1 10.0.0.2 2001:db8::1 2001:db8::2 2001:db8::3 2001:db8:0:1::1 127.0.0.1 127.0.0.1 127.0.0.1 ::1 ::1 ::1") {
		others = append(others, in.from(address))
	}
	_ = in.Close()
	var taken []net.Conn
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			break
		}
		taken = append(taken, conn)
	}
	// Accepted: two connections of 10.0.0.1, one of 10.0.0.2, two of the first /64,
	// one of the second, and all of loopback.
	var counted dto.Metric
	if err := refused.Write(&counted); err != nil {
		t.Fatal(err)
	}
	if n := counted.GetCounter().GetValue(); len(taken) != 12 || n != 3 {
		t.Errorf("%d accepted, %v refused", len(taken), n)
	}
	for _, i := range []int{2, 3, 7} {
		if _, err := others[i].Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d was not refused", i)
		}
	}
	for _, conn := range taken {
		_ = conn.Close()
		_ = conn.Close() // a second Close has no effect
	}
	if len(l.open) != 0 {
		t.Errorf("%v are counted after all connections are closed", l.open)
	}
	again := &callers{queue: make(chan net.Conn, 1)}
	l.Listener = again
	again.from("10.0.0.1")
	if conn, err := l.Accept(); err != nil {
		t.Error("a closed connection still counts against the limit")
	} else {
		_ = conn.Close()
	}
}

// Many clients connect and disconnect at once: a released slot can be reused by any
// of them.
func TestPerAddress_ConcurrentConnections(t *testing.T) {
	t.Parallel()
	in := &callers{queue: make(chan net.Conn)}
	l := limitPerAddress(in, 8, prometheus.NewCounter(prometheus.CounterOpts{Name: "refused_total", Help: "Connections that were refused."})).(*addressLimitListener)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { _ = conn.Close() })
		}
	})
	var come sync.WaitGroup
	for range 16 {
		come.Go(func() {
			for range 100 {
				_ = in.from("10.0.0.1").Close()
			}
		})
	}
	come.Wait()
	_ = in.Close()
	all.Wait()
	if len(l.open) != 0 {
		t.Errorf("%v are counted after all connections are closed", l.open)
	}
}

func TestPerAddress_ZeroReturnsTheListener(t *testing.T) {
	t.Parallel()
	in := &callers{queue: make(chan net.Conn)}
	if l := limitPerAddress(in, 0, nil); l != net.Listener(in) {
		t.Error("0 limits")
	}
}
