package gossip_test

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// network connects in-memory transports, so that tests run in virtual time, and can be
// partitioned.
type network struct {
	mu    sync.Mutex
	hosts map[string]*transport
	apart map[string]bool // hosts that only reach each other
}

func newNetwork() *network { return &network{hosts: map[string]*transport{}, apart: map[string]bool{}} }

// cut separates the given hosts from all others. Without arguments it ends the partition.
func (n *network) cut(addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.apart)
	for _, a := range addrs {
		n.apart[a] = true
	}
}

// reach returns the transport at to, or nil if it is not reachable from from.
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
		default: // dropped, as by UDP
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
