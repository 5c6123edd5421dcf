package config

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// dev makes the defaults those of a try on one machine.
func (l *Loaded) dev() {
	c := &l.Config
	c.Dev = true
	c.Server.Enabled, c.Client.Enabled = true, true
	c.Client.Drivers.Sim.Enabled = true
	c.Client.Drivers.Exec.DeniedUsers = nil
	c.Log.Level = "warn"
}

// fill completes what follows from other values.
func (c *Config) fill() {
	if c.Name == "" {
		c.Name, _ = os.Hostname() // checkNames says what it means that there is none
	}
	if c.Listen.Gossip == "" && !c.Dev && c.Server.Enabled && (len(c.Server.Join) > 0 || c.Server.BootstrapExpect > 1) {
		c.Listen.Gossip = "127.0.0.1:4648"
	}
	if c.ACL.BootstrapFile == "" && c.DataDir != "" {
		c.ACL.BootstrapFile = filepath.Join(c.DataDir, "bootstrap.token")
	}
	if c.Client.Drivers.Exec.User == "" && !c.Dev && os.Geteuid() == 0 {
		c.Client.Drivers.Exec.User = "nobody"
	}
}

// check says everything that makes no sense; look: also of the files that are named.
func (c *Config) check(look bool) (found []Problem) {
	bad := func(key, format string, args ...any) {
		found = append(found, Problem{Key: key, Text: fmt.Sprintf(format, args...)})
	}
	switch {
	case !c.Server.Enabled && !c.Client.Enabled && !c.Member.Enabled:
		bad("server.enabled", "the process has nothing to do: enable server, client, member or several of them (`cede agent --dev` is for a try)")
	case c.DataDir == "" && !c.Dev:
		bad("data_dir", "is needed: an absolute path that outlives restarts (`cede agent --dev` is for a try)")
	case c.DataDir != "" && !filepath.IsAbs(c.DataDir):
		bad("data_dir", "%s is no absolute path", c.DataDir)
	}
	checkNames(c, bad)
	checkListeners(c, bad)
	checkTLS(c, bad)
	if look {
		checkFiles(c, bad)
	}
	checkServer(c, bad)
	checkPool(c, bad)
	checkClient(c, bad)
	checkMember(c, bad)
	checkPolicy(c, bad)
	checkLimits(c, bad)
	checkTelemetry(c, bad)
	return found
}

type report func(key, format string, args ...any)

func checkTLS(c *Config, bad report) {
	t := &c.TLS
	if (t.Cert == "") != (t.Key == "") {
		bad("tls.cert", "a certificate and its key go together: set tls.cert and tls.key, or neither")
	}
	if t.VerifyClient && t.CA == "" {
		bad("tls.verify_client", "needs tls.ca: who signs the callers' certificates")
	}
	if t.VerifyClient && t.Cert == "" {
		bad("tls.verify_client", "needs tls.cert: without TLS nobody shows a certificate")
	}
	if t.MinVersion != "1.2" && t.MinVersion != "1.3" {
		bad("tls.min_version", "%q is none: want 1.2 or 1.3", t.MinVersion)
	}
}

func checkServer(c *Config, bad report) {
	s := &c.Server
	if s.BootstrapExpect < 1 {
		bad("server.bootstrap_expect", "%d servers are no cluster", s.BootstrapExpect)
	}
	if s.BootstrapExpect > 1 && s.BootstrapExpect%2 == 0 {
		bad("server.bootstrap_expect", "%d servers survive no more losses than %d: want an odd number", s.BootstrapExpect, s.BootstrapExpect-1)
	}
	if s.Workers < 0 {
		bad("server.workers", "%d is negative: 0 pauses this server's workers, and without the key half the processors work", s.Workers)
	}
	if s.Raft.Lease > s.Raft.Heartbeat {
		bad("server.raft.lease", "%v is longer than server.raft.heartbeat, %v: two servers could lead at a time", s.Raft.Lease, s.Raft.Heartbeat)
	}
	if s.Raft.Election < s.Raft.Heartbeat {
		bad("server.raft.election", "%v is shorter than server.raft.heartbeat, %v", s.Raft.Election, s.Raft.Heartbeat)
	}
	if s.Raft.SnapshotThreshold < 1 || s.Raft.TrailingLogs < 0 {
		bad("server.raft.snapshot_threshold", "want at least 1, and no negative trailing_logs")
	}
	for key, positive := range map[string]bool{
		"server.heartbeat.ttl": s.Heartbeat.TTL > 0, "server.heartbeat.rate": s.Heartbeat.Rate > 0, "server.raft.heartbeat": s.Raft.Heartbeat > 0, "server.raft.lease": s.Raft.Lease > 0,
		"server.write_deadline": s.WriteDeadline > 0, "server.gc.interval": s.GC.Interval > 0,
	} {
		if !positive {
			bad(key, "must be more than 0")
		}
	}
}

// checkPool is about servers among themselves. In plain text they talk on one
// machine alone.
func checkPool(c *Config, bad report) {
	if _, err := c.Gossip.KeyList(); err != nil {
		bad("gossip.keys", "%v", err)
	}
	if c.Gossip.Name == "" || len(c.Gossip.Name) > 100 {
		bad("gossip.name", "want a name of 1 to 100 bytes")
	}
	for _, seed := range c.Server.Join {
		if problem := addressProblem(seed, true); problem != "" {
			bad("server.join", "%s", problem)
		}
	}
	if !c.Pooled() {
		return
	}
	if c.TLS.Cert != "" && c.TLS.CA == "" {
		bad("tls.ca", "is needed where servers talk to each other: who signs their certificates")
	}
	if !onLoopback(c.Listen.RPC) && c.TLS.Cert == "" {
		bad("listen.rpc", "servers would talk in plain text at %s: set tls.cert, tls.key and tls.ca, or listen on a loopback address", c.Listen.RPC)
	}
	if !onLoopback(c.Listen.Gossip) && c.Gossip.Keys == "" {
		bad("gossip.keys", "is needed at %s: whoever reaches it could join the pool (`openssl rand -base64 32` makes a key)", c.Listen.Gossip)
	}
}

func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func checkMember(c *Config, bad report) {
	m := &c.Member
	if !m.Enabled {
		return
	}
	switch {
	case len(m.Servers) == 0 && len(m.Pools) == 0:
		bad("member.servers", "is needed: URLs of the servers that bindings are registered with, such as https://10.0.0.1:4646")
	case len(m.Pools) > 0 && (len(m.Servers) > 0 || m.Token != ""):
		bad("member.pools", "each of the pools has servers and a token: leave member.servers and member.token out")
	}
	checkURLs("member.servers", m.Servers, bad)
	checkPools(m.Pools, bad)
	checkURLs("member.cede.servers", m.Cede.Servers, bad)
	if m.Driver != MemberCede && m.Driver != MemberSim {
		bad("member.driver", "%q is none: want %s or %s", m.Driver, MemberCede, MemberSim)
	}
	if m.Driver == MemberCede && len(m.Cede.Servers) == 0 && !c.Server.Enabled {
		bad("member.cede.servers", "is needed where no server runs in this process: URLs of the cluster's own servers")
	}
	if m.Driver == MemberSim && len(m.Capacity) == 0 {
		bad("member.capacity", "is needed by the driver sim: what the cluster has, such as {cpu: 8000, memory: 16384}")
	}
	for k, v := range m.Capacity {
		if v < 0 {
			bad("member.capacity", "%s is negative: %d", k, v)
		}
	}
	if strings.ContainsAny(cmp.Or(m.Cluster, c.Name), "/ \t\n") {
		bad("member.cluster", "%q has spaces or slashes", cmp.Or(m.Cluster, c.Name))
	}
	if m.Poll <= 0 {
		bad("member.poll", "must be more than 0")
	}
}

func checkPools(pools []MemberPool, bad report) {
	for i, p := range pools {
		if p.Name == "" || strings.ContainsAny(p.Name, "/ \t\n") {
			bad("member.pools", "number %d is called %q: want a name without spaces and slashes", i+1, p.Name)
		}
		if slices.ContainsFunc(pools[:i], func(o MemberPool) bool { return o.Name == p.Name }) {
			bad("member.pools", "number %d: there is a pool %q already", i+1, p.Name)
		}
		if len(p.Servers) == 0 {
			bad("member.pools", "number %d has no servers: want URLs, such as https://10.0.0.1:4646", i+1)
		}
		checkURLs("member.pools", p.Servers, bad)
	}
}

func checkURLs(key string, list []string, bad report) {
	for _, s := range list {
		if u, err := url.Parse(s); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			bad(key, "%q is no URL: want http://HOST:PORT or https://HOST:PORT", s)
		}
	}
}

func checkClient(c *Config, bad report) {
	n := &c.Client
	if !n.Enabled {
		return
	}
	if len(n.Servers) == 0 && !c.Server.Enabled {
		bad("client.servers", "is needed where no server runs in this process: URLs such as https://10.0.0.1:4646")
	}
	checkURLs("client.servers", n.Servers, bad)
	if !n.Drivers.Exec.Enabled && !n.Drivers.Sim.Enabled {
		bad("client.drivers.exec.enabled", "a node without a driver runs nothing: enable exec or sim")
	}
	if n.Drivers.Exec.LogFiles < 1 || n.Drivers.Exec.LogSize < 4096 {
		bad("client.drivers.exec.log_size", "want at least 4KiB, and at least 1 of log_files")
	}
	for i, d := range n.Devices {
		if strings.Count(d.ID, "/") != 2 || d.Count < 1 {
			bad("client.devices", "number %d: want an id vendor/type/model and a count of at least 1", i+1)
		}
	}
	for i, t := range n.Taints {
		if t.Key == "" || strings.ContainsAny(t.Key, " \t\n=:") || !slices.Contains(model.TaintEffects, model.TaintEffect(t.Effect)) {
			bad("client.taints", "number %d: want a key that is a word, and the effect NoSchedule, PreferNoSchedule or NoExecute", i+1)
		}
		if slices.ContainsFunc(n.Taints[:i], func(o Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
			bad("client.taints", "number %d: %s:%s is there already", i+1, t.Key, t.Effect)
		}
	}
	for _, p := range n.Ports {
		if p < 1 || p > 65535 {
			bad("client.ports", "%d is no port", p)
		}
	}
	for name, values := range map[string]map[string]int64{"client.resources": n.Resources, "client.reserved": n.Reserved} {
		for k, v := range values {
			if v < 0 {
				bad(name, "%s: %d is negative", k, v)
			}
		}
	}
	if n.Pressure.MaxStall < 0 || n.Pressure.MaxStall > 100 {
		bad("client.pressure.max_stall", "%v is no percentage", n.Pressure.MaxStall)
	}
	if n.Pressure.Enabled && n.Pressure.Interval <= 0 {
		bad("client.pressure.interval", "must be more than 0")
	}
}

func checkPolicy(c *Config, bad report) {
	p := &c.Policy
	if p.OnFault != "deny" && p.OnFault != "default" {
		bad("policy.on_fault", "%q is neither deny nor default", p.OnFault)
	}
	if p.RequireSignature && len(p.Roots) == 0 {
		bad("policy.require_signature", "needs policy.roots: whose signatures count")
	}
	for _, e := range p.Executables {
		if _, err := e.Digest(); err != nil {
			bad("policy.executables", "%v", err)
		}
		if !filepath.IsAbs(e.Path) {
			bad("policy.executables", "%q is no absolute path", e.Path)
		}
	}
	if p.Limits.Fuel < 0 {
		bad("policy.limits.fuel", "%d is negative", p.Limits.Fuel)
	}
}

// Digest is the checksum as policies bear it; an error where it is none.
func (e Executable) Digest() (string, error) {
	sum := strings.TrimPrefix(e.SHA256, "sha256:")
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 {
		return "", fmt.Errorf("%q is no SHA-256 checksum: `sha256sum %s` tells it", e.SHA256, e.Path)
	}
	return "sha256:" + strings.ToLower(sum), nil
}

func checkLimits(c *Config, bad report) {
	if c.Limits.Body < 64<<10 || c.Limits.Job < c.Limits.Body {
		bad("limits.body", "want at least 64KiB, and limits.job not less")
	}
	if c.Limits.Rate < 0 || c.Limits.Rate > 0 && c.Limits.Burst < 1 {
		bad("limits.rate", "want no negative rate, and with a rate at least 1 of limits.burst")
	}
	if c.Limits.Connections < 1 {
		bad("limits.connections", "want at least 1")
	}
	if c.Limits.ConnectionsPerAddress < 0 {
		bad("limits.connections_per_address", "%d is negative: 0 is any number", c.Limits.ConnectionsPerAddress)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		bad("log.level", "%q is none: want debug, info, warn or error", c.Log.Level)
	}
	if !slices.Contains([]string{"auto", "text", "json"}, c.Log.Format) {
		bad("log.format", "%q is none: want auto, text or json", c.Log.Format)
	}
}

// minToken is how many bytes a token has that nobody guesses.
const minToken = 16

// checkTelemetry is about who may ask what is measured. Where the operator guards the
// rest, this is no way around it.
func checkTelemetry(c *Config, bad report) {
	t := &c.Telemetry
	if t.Token != "" && len(t.Token) < minToken {
		bad("telemetry.token", "it has %d bytes, which can be guessed: want at least %d (`openssl rand -hex 32` makes one)", len(t.Token), minToken)
	}
	if c.metricsOpen() && !t.Open && (c.ACL.Enabled || c.TLS.Cert != "") {
		bad("listen.metrics", "whoever reaches %s would read what is measured without a token: set telemetry.token, or telemetry.open to allow it, or listen on a loopback address", c.Listen.Metrics)
	}
}

// metricsOpen is whether others than this machine reach the metrics, and need no token.
func (c *Config) metricsOpen() bool {
	return c.Listen.Metrics != "" && !onLoopback(c.Listen.Metrics) && c.Telemetry.Token == ""
}

// MetricsLocal is whether this machine alone reaches the metrics.
func (c *Config) MetricsLocal() bool { return onLoopback(c.Listen.Metrics) }
