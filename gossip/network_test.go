package gossip_test

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// network joins transports in memory, so that time may be virtual, and can be
// cut in two.
type network struct {
	mu    sync.Mutex
	hosts map[string]*transport
	apart map[string]bool // hosts that reach only one another
}

func newNetwork() *network { return &network{hosts: map[string]*transport{}, apart: map[string]bool{}} }

// cut keeps the hosts from all the others; none: everybody reaches everybody.
func (n *network) cut(addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.apart)
	for _, a := range addrs {
		n.apart[a] = true
	}
}

func (n *network) reach(from, to string) *transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.apart[from] != n.apart[to] {
		return nil
	}
	return n.hosts[to]
}

func (n *network) host(ip string) *transport {
	t := &transport{net: n, addr: ip + ":7946", packets: make(chan *memberlist.Packet, 1024), streams: make(chan net.Conn, 64)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[t.addr] = t
	return t
}

type transport struct {
	net     *network
	addr    string
	packets chan *memberlist.Packet
	streams chan net.Conn
}

type address string

func (address) Network() string  { return "memory" }
func (a address) String() string { return string(a) }

func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	addr, err := net.ResolveTCPAddr("tcp", t.addr)
	if err != nil {
		return nil, 0, err
	}
	return addr.IP, addr.Port, nil
}

func (t *transport) WriteTo(b []byte, to string) (time.Time, error) {
	now := time.Now()
	if peer := t.net.reach(t.addr, to); peer != nil {
		select {
		case peer.packets <- &memberlist.Packet{Buf: append([]byte{}, b...), From: address(t.addr), Timestamp: now}:
		default: // as UDP would
		}
	}
	return now, nil
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

func (t *transport) DialTimeout(to string, _ time.Duration) (net.Conn, error) {
	peer := t.net.reach(t.addr, to)
	if peer == nil {
		return nil, fmt.Errorf("dial %s: no route", to)
	}
	here, there := net.Pipe()
	select {
	case peer.streams <- there:
		return here, nil
	default:
		return nil, fmt.Errorf("dial %s: busy", to)
	}
}

func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

func (t *transport) Shutdown() error {
	t.net.mu.Lock()
	defer t.net.mu.Unlock()
	if t.net.hosts[t.addr] == t {
		delete(t.net.hosts, t.addr)
	}
	return nil
}
