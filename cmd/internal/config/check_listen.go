package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// checkNames checks the name of the process, which occurs in addresses, logs and
// metric names.
func checkNames(c *Config, bad report) {
	for _, n := range []struct{ key, name string }{{"name", c.Name}, {"region", c.Region}, {"datacenter", c.Datacenter}} {
		switch {
		case n.name == "" && n.key == "name":
			bad(n.key, "the host name is unknown: set a value")
		case n.name == "":
			bad(n.key, "must not be empty: remove the key for the default")
		case strings.ContainsAny(n.name, "/ \t\r\n"):
			bad(n.key, "invalid name %q: expected a word without spaces and slashes, such as server-1", n.name)
		}
	}
}

// listener is a listener of the process.
type listener struct{ key, address string }

// listeners returns the listeners of the process, in the order of the keys.
func (c *Config) listeners() []listener {
	list := []listener{{"listen.http", c.Listen.HTTP}}
	if c.Server.Enabled && !c.Dev {
		list = append(list, listener{"listen.rpc", c.Listen.RPC})
	}
	if c.Pooled() {
		list = append(list, listener{"listen.gossip", c.Listen.Gossip})
	}
	return append(list, listener{"listen.metrics", c.Listen.Metrics})
}

func checkListeners(c *Config, bad report) {
	for _, l := range []listener{
		{"listen.http", c.Listen.HTTP},
		{"listen.rpc", c.Listen.RPC},
		{"listen.metrics", c.Listen.Metrics},
		{"listen.gossip", c.Listen.Gossip},
		{"advertise.http", c.Advertise.HTTP},
		{"advertise.rpc", c.Advertise.RPC},
		{"advertise.gossip", c.Advertise.Gossip},
	} {
		needed := l.key == "listen.http" || l.key == "listen.rpc" && c.Server.Enabled
		if problem := addressProblem(l.address, needed); problem != "" {
			bad(l.key, "%s", problem)
		}
	}
	list := c.listeners()
	for i, l := range list {
		for _, before := range list[:i] {
			if sameAddress(l.address, before.address) {
				bad(l.key, "%s is taken by %s, %s: give it a port of its own", l.address, before.key, before.address)
			}
		}
	}
}

// sameAddress reports whether two listeners conflict. Port 0 selects any free port,
// and therefore never conflicts.
func sameAddress(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || strings.Trim(portA, "0") == "" {
		return false
	}
	return hostA == hostB || anyHost(hostA) || anyHost(hostB) || onLoopback(a) && onLoopback(b) && (hostA == "localhost" || hostB == "localhost")
}

func anyHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

func addressProblem(address string, needed bool) string {
	if address == "" {
		if needed {
			return "is required: HOST:PORT"
		}
		return ""
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("invalid address %q: expected HOST:PORT", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Sprintf("invalid address %q: port must be between 0 and 65535", address)
	}
	return ""
}
