package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// testNet is a network of namespaces that hang on one bridge, in a namespace of its
// own. Faults are packets that whom they are for drops. The test itself reaches
// everybody all the time.
type testNet struct {
	t      *testing.T
	prefix string              // of every namespace
	subnet string              // 198.18.N, of the range that is kept for tests of networks
	hosts  map[string]string   // address by name
	drops  map[string][]string // by who drops: nftables' rules
	links  int
}

// netPrefix begins the names of namespaces; the id of the process that made them
// follows, so that another one may remove what a killed one left.
const netPrefix = "cede-test-"

// newTestNet makes a network that goes with the test, or skips it.
func newTestNet(t *testing.T) *testNet {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("namespaces of the network are made for this: run the tests as root")
	}
	for command, pack := range map[string]string{"ip": "iproute2", "nft": "nftables"} {
		if _, err := exec.LookPath(command); err != nil {
			t.Skipf("%s is not installed: apt-get install %s", command, pack)
		}
	}
	removeLeftNamespaces(t)
	var id [3]byte
	_, _ = rand.Read(id[:]) // never fails
	n := &testNet{
		t: t, prefix: fmt.Sprint(netPrefix, os.Getpid(), "-", hex.EncodeToString(id[:])), hosts: map[string]string{}, drops: map[string][]string{},
		subnet: fmt.Sprintf("198.%d.%d", 18+mathrand.IntN(2), mathrand.IntN(256)),
	}
	if out, err := exec.Command("ip", "netns", "add", n.space("hub")).CombinedOutput(); err != nil {
		t.Skipf("namespaces of the network are made for this, and that is not allowed here (%v: %s)", err, out)
	}
	t.Cleanup(n.remove)
	n.ip("-n", n.space("hub"), "link", "add", "bridge", "type", "bridge")
	n.ip("-n", n.space("hub"), "link", "set", "bridge", "up")
	link := "cede-" + hex.EncodeToString(id[:])
	n.ip("link", "add", link, "type", "veth", "peer", "name", "test", "netns", n.space("hub"))
	n.ip("-n", n.space("hub"), "link", "set", "test", "master", "bridge", "up")
	n.ip("addr", "add", n.subnet+".254/24", "dev", link)
	n.ip("link", "set", link, "up")
	return n
}

func (n *testNet) space(name string) string { return n.prefix + "-" + name }

func (n *testNet) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// remove removes the namespaces, and with them the links.
func (n *testNet) remove() {
	for _, name := range append(keysOf(n.hosts), "hub") {
		if out, err := exec.Command("ip", "netns", "del", n.space(name)).CombinedOutput(); err != nil {
			n.t.Errorf("namespace %s: %v: %s", n.space(name), err, out)
		}
	}
}

func keysOf[V any](m map[string]V) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// removeLeftNamespaces removes those of tests that were killed.
func removeLeftNamespaces(t *testing.T) {
	t.Helper()
	left, _ := filepath.Glob("/run/netns/" + netPrefix + "*")
	owner := regexp.MustCompile("^" + netPrefix + `(\d+)-`)
	for _, path := range left {
		m := owner.FindStringSubmatch(filepath.Base(path))
		if m == nil {
			continue
		}
		if pid, err := strconv.Atoi(m[1]); err == nil && syscall.Kill(pid, 0) != nil {
			_ = exec.Command("ip", "netns", "del", filepath.Base(path)).Run() // somebody else may do the same
		}
	}
}

// add gives a host a namespace, and returns its address.
func (n *testNet) add(name string) (address string) {
	n.t.Helper()
	n.links++
	space, port := n.space(name), fmt.Sprint("port", n.links)
	address = fmt.Sprintf("%s.%d", n.subnet, n.links)
	n.ip("netns", "add", space)
	n.hosts[name] = address
	n.ip("-n", n.space("hub"), "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
	n.ip("-n", n.space("hub"), "link", "set", port, "master", "bridge", "up")
	n.ip("-n", space, "addr", "add", address+"/24", "dev", "eth0")
	n.ip("-n", space, "link", "set", "lo", "up")
	n.ip("-n", space, "link", "set", "eth0", "up")
	return address
}

// deaf has who hears drop what comes from others.
func (n *testNet) deaf(hears string, from ...string) {
	for _, f := range from {
		n.drops[hears] = append(n.drops[hears], fmt.Sprintf("ip saddr %s drop", n.hosts[f]))
	}
	n.apply(hears)
}

// part has nobody of one side hear anybody of the other.
func (n *testNet) part(one, other []string) {
	for _, a := range one {
		n.deaf(a, other...)
	}
	for _, b := range other {
		n.deaf(b, one...)
	}
}

// lossy loses so many percent of all packets between hosts.
func (n *testNet) lossy(percent int) {
	for name := range n.hosts {
		for other, address := range n.hosts {
			if other != name {
				n.drops[name] = append(n.drops[name], fmt.Sprintf("ip saddr %s numgen random mod 100 < %d drop", address, percent))
			}
		}
		n.apply(name)
	}
}

// heal ends every fault.
func (n *testNet) heal() {
	for name := range n.drops {
		n.drops[name] = nil
		n.apply(name)
	}
}

func (n *testNet) apply(name string) {
	n.t.Helper()
	rules := fmt.Sprintf("table inet cede\ndelete table inet cede\ntable inet cede { chain in { type filter hook input priority 0; policy accept;\n%s\n}\n}\n",
		strings.Join(n.drops[name], "\n"))
	cmd := exec.Command("ip", "netns", "exec", n.space(name), "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("nft in %s: %v: %s\n%s", n.space(name), err, out, rules)
	}
}

// command runs a program in a host's namespace.
func (n *testNet) command(host, program string) *exec.Cmd {
	return exec.CommandContext(n.t.Context(), "ip", "netns", "exec", n.space(host), program)
}
