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

// A testNet is a bridge that connects network namespaces, one per host. Faults are
// nftables rules that drop packets at their receiver. The test process itself can reach
// every host at any time.
type testNet struct {
	t      *testing.T
	prefix string              // of every namespace
	subnet string              // 198.18.N or 198.19.N, reserved for network tests
	hosts  map[string]string   // address by host name
	drops  map[string][]string // nftables rules by host name
	links  int
}

// netPrefix is the prefix of namespace names. It is followed by the ID of the process that
// created them, so that later runs can remove the namespaces of a killed test.
const netPrefix = "cede-test-"

// newTestNet creates a network that is removed after the test. It skips the test if
// namespaces are not available.
func newTestNet(t *testing.T) *testNet {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("requires root to create network namespaces")
	}
	for command, pack := range map[string]string{"ip": "iproute2", "nft": "nftables"} {
		if _, err := exec.LookPath(command); err != nil {
			t.Skipf("%s is not installed: apt-get install %s", command, pack)
		}
	}
	removeStaleNamespaces(t)
	var id [3]byte
	_, _ = rand.Read(id[:]) // never fails
	n := &testNet{
		t: t, prefix: fmt.Sprint(netPrefix, os.Getpid(), "-", hex.EncodeToString(id[:])), hosts: map[string]string{}, drops: map[string][]string{},
		subnet: fmt.Sprintf("198.%d.%d", 18+mathrand.IntN(2), mathrand.IntN(256)),
	}
	if out, err := exec.Command("ip", "netns", "add", n.namespace("hub")).CombinedOutput(); err != nil {
		t.Skipf("cannot create network namespaces: %v: %s", err, out)
	}
	t.Cleanup(n.remove)
	n.ip("-n", n.namespace("hub"), "link", "add", "bridge", "type", "bridge")
	n.ip("-n", n.namespace("hub"), "link", "set", "bridge", "up")
	link := "cede-" + hex.EncodeToString(id[:])
	n.ip("link", "add", link, "type", "veth", "peer", "name", "test", "netns", n.namespace("hub"))
	n.ip("-n", n.namespace("hub"), "link", "set", "test", "master", "bridge", "up")
	n.ip("addr", "add", n.subnet+".254/24", "dev", link)
	n.ip("link", "set", link, "up")
	return n
}

func (n *testNet) namespace(name string) string { return n.prefix + "-" + name }

// ip runs the ip command and fails the test if it fails.
func (n *testNet) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// remove removes the namespaces and thereby their links.
func (n *testNet) remove() {
	for _, name := range append(sortedKeys(n.hosts), "hub") {
		if out, err := exec.Command("ip", "netns", "del", n.namespace(name)).CombinedOutput(); err != nil {
			n.t.Errorf("namespace %s: %v: %s", n.namespace(name), err, out)
		}
	}
}

func sortedKeys[V any](m map[string]V) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// removeStaleNamespaces removes the namespaces of test processes that no longer exist.
func removeStaleNamespaces(t *testing.T) {
	t.Helper()
	left, _ := filepath.Glob("/run/netns/" + netPrefix + "*")
	owner := regexp.MustCompile("^" + netPrefix + `(\d+)-`)
	for _, path := range left {
		m := owner.FindStringSubmatch(filepath.Base(path))
		if m == nil {
			continue
		}
		if pid, err := strconv.Atoi(m[1]); err == nil && syscall.Kill(pid, 0) != nil {
			_ = exec.Command("ip", "netns", "del", filepath.Base(path)).Run() // a concurrent test may remove it first
		}
	}
}

// add creates the namespace of a host and returns the address of the host.
func (n *testNet) add(name string) (address string) {
	n.t.Helper()
	n.links++
	space, port := n.namespace(name), fmt.Sprint("port", n.links)
	address = fmt.Sprintf("%s.%d", n.subnet, n.links)
	n.ip("netns", "add", space)
	n.hosts[name] = address
	n.ip("-n", n.namespace("hub"), "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
	n.ip("-n", n.namespace("hub"), "link", "set", port, "master", "bridge", "up")
	n.ip("-n", space, "addr", "add", address+"/24", "dev", "eth0")
	n.ip("-n", space, "link", "set", "lo", "up")
	n.ip("-n", space, "link", "set", "eth0", "up")
	return address
}

// dropFrom makes a host drop all packets from other hosts.
func (n *testNet) dropFrom(host string, from ...string) {
	for _, f := range from {
		n.drops[host] = append(n.drops[host], fmt.Sprintf("ip saddr %s drop", n.hosts[f]))
	}
	n.apply(host)
}

// partition drops all packets between two sets of hosts.
func (n *testNet) partition(one, other []string) {
	for _, a := range one {
		n.dropFrom(a, other...)
	}
	for _, b := range other {
		n.dropFrom(b, one...)
	}
}

// dropPercent drops a percentage of all packets between hosts at random.
func (n *testNet) dropPercent(percent int) {
	for name := range n.hosts {
		for other, address := range n.hosts {
			if other != name {
				n.drops[name] = append(n.drops[name], fmt.Sprintf("ip saddr %s numgen random mod 100 < %d drop", address, percent))
			}
		}
		n.apply(name)
	}
}

// heal removes all faults.
func (n *testNet) heal() {
	for name := range n.drops {
		n.drops[name] = nil
		n.apply(name)
	}
}

// apply replaces the nftables rules of a host.
func (n *testNet) apply(name string) {
	n.t.Helper()
	rules := fmt.Sprintf("table inet cede\ndelete table inet cede\ntable inet cede { chain in { type filter hook input priority 0; policy accept;\n%s\n}\n}\n",
		strings.Join(n.drops[name], "\n"))
	cmd := exec.Command("ip", "netns", "exec", n.namespace(name), "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("nft in %s: %v: %s\n%s", n.namespace(name), err, out, rules)
	}
}

// command returns a command that runs a program in the namespace of a host.
func (n *testNet) command(host, program string) *exec.Cmd {
	return exec.CommandContext(n.t.Context(), "ip", "netns", "exec", n.namespace(host), program)
}
