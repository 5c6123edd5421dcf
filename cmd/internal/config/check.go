package config

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
)

// dev sets the defaults of a development process on one machine.
func (l *Loaded) dev() {
	c := &l.Config
	c.Dev = true
	c.Server.Enabled, c.Client.Enabled = true, true
	c.Client.Drivers.Sim.Enabled = true
	c.Client.Drivers.Exec.DeniedUsers = nil
	c.Log.Level = "warn"
}

// fill sets the values that are derived from other settings.
func (c *Config) fill() {
	if c.Name == "" {
		c.Name, _ = os.Hostname() // if it is still empty, checkNames reports it
	}
	if c.Listen.Gossip == "" && !c.Dev && c.Server.Enabled && (len(c.Server.Join) > 0 || c.Server.BootstrapExpect > 1) {
		c.Listen.Gossip = "127.0.0.1:4648"
	}
	if c.ACL.BootstrapFile == "" && c.DataDir != "" {
		c.ACL.BootstrapFile = filepath.Join(c.DataDir, "bootstrap.token")
	}
}

// check returns every problem of the configuration. If look is set, it also checks
// the files that it names.
func (c *Config) check(look bool) (found []Problem) {
	bad := func(key, format string, args ...any) {
		found = append(found, Problem{Key: key, Text: fmt.Sprintf(format, args...)})
	}
	switch {
	case c.Controller:
		checkKubernetes(c, bad)
	case !c.Server.Enabled && !c.Client.Enabled && !c.Member.Enabled:
		bad("server.enabled", "at least one of server, client and member must be enabled (`cede agent --dev` runs a temporary server and node)")
	case c.DataDir == "" && !c.Dev:
		bad("data_dir", "is required: an absolute path on persistent storage (`cede agent --dev` uses a temporary one)")
	case c.DataDir != "" && !filepath.IsAbs(c.DataDir):
		bad("data_dir", "%q must be an absolute path", c.DataDir)
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
		bad("tls.cert", "requires tls.key, and tls.key requires tls.cert: set both, or neither")
	}
	if t.VerifyClient && t.CA == "" {
		bad("tls.verify_client", "requires tls.ca, the CA of client certificates")
	}
	if t.VerifyClient && t.Cert == "" {
		bad("tls.verify_client", "requires tls.cert: client certificates require TLS")
	}
	if t.MinVersion != "1.2" && t.MinVersion != "1.3" {
		bad("tls.min_version", "invalid version %q: must be 1.2 or 1.3", t.MinVersion)
	}
}

// maxWorkers bounds the evaluations that a server processes concurrently. Each worker is a
// goroutine with caches of its own.
const maxWorkers = 1024

func checkServer(c *Config, bad report) {
	s := &c.Server
	if s.BootstrapExpect < 1 {
		bad("server.bootstrap_expect", "%d servers are no cluster", s.BootstrapExpect)
	}
	if s.BootstrapExpect > 1 && s.BootstrapExpect%2 == 0 {
		bad("server.bootstrap_expect", "%d servers tolerate no more failures than %d: use an odd number", s.BootstrapExpect, s.BootstrapExpect-1)
	}
	if s.Workers < 0 {
		bad("server.workers", "%d is negative: 0 pauses the workers of this server; without the key half the processors are used", s.Workers)
	}
	if s.Workers > maxWorkers {
		bad("server.workers", "%d is more than %d: more workers than processors only take memory", s.Workers, maxWorkers)
	}
	if s.Raft.Lease > s.Raft.Heartbeat {
		bad("server.raft.lease", "%v is longer than server.raft.heartbeat, %v: two servers could lead at the same time", s.Raft.Lease, s.Raft.Heartbeat)
	}
	if s.Raft.Election < s.Raft.Heartbeat {
		bad("server.raft.election", "%v is shorter than server.raft.heartbeat, %v", s.Raft.Election, s.Raft.Heartbeat)
	}
	if s.Raft.SnapshotThreshold < 1 || s.Raft.TrailingLogs < 0 {
		bad("server.raft.snapshot_threshold", "must be at least 1, and trailing_logs must not be negative")
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

// checkPool checks the settings of a pool of servers. Without TLS and gossip keys,
// servers may communicate on loopback only.
func checkPool(c *Config, bad report) {
	if _, err := c.Gossip.KeyList(); err != nil {
		bad("gossip.keys", "%v", err)
	}
	if c.Gossip.Name == "" || len(c.Gossip.Name) > 100 {
		bad("gossip.name", "must be a name of 1 to 100 bytes")
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
		bad("tls.ca", "is required for connections between servers: the CA of their certificates")
	}
	if c.TLS.Cert != "" && c.TLS.ServerName == "" {
		bad("tls.server_name", "is required for connections between servers: without it, certificates of nodes could be accepted as those of servers; issue the certificates of servers with a DNS name that no other certificate has, such as server.cede, and set that name")
	}
	if !onLoopback(c.Listen.RPC) && c.TLS.Cert == "" {
		bad("listen.rpc", "servers would communicate in plain text at %s: set tls.cert, tls.key and tls.ca, or listen on a loopback address", c.Listen.RPC)
	}
	if !onLoopback(c.Listen.Gossip) && c.Gossip.Keys == "" {
		bad("gossip.keys", "is required at %s: any host that reaches it could join the pool (`openssl rand -base64 32` creates a key)", c.Listen.Gossip)
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
		bad("member.servers", "is required: URLs of the servers that hold the bindings, such as https://10.0.0.1:4646")
	case len(m.Pools) > 0 && (len(m.Servers) > 0 || m.Token != ""):
		bad("member.pools", "pools have their own servers and tokens: remove member.servers and member.token")
	}
	checkURLs("member.servers", m.Servers, bad)
	checkPools(m.Pools, bad)
	checkURLs("member.cede.servers", m.Cede.Servers, bad)
	if m.Driver != MemberCede && m.Driver != MemberSim {
		bad("member.driver", "invalid driver %q: must be %s or %s", m.Driver, MemberCede, MemberSim)
	}
	if m.Driver == MemberCede && len(m.Cede.Servers) == 0 && !c.Server.Enabled {
		bad("member.cede.servers", "is required if no server runs in this process: URLs of the cluster's own servers")
	}
	if m.Driver == MemberSim && len(m.Capacity) == 0 {
		bad("member.capacity", "is required by the driver sim: the capacity of the cluster, such as {cpu: 8000, memory: 16384}")
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
			bad("member.pools", "number %d: invalid name %q: spaces and slashes are not allowed", i+1, p.Name)
		}
		if slices.ContainsFunc(pools[:i], func(o MemberPool) bool { return o.Name == p.Name }) {
			bad("member.pools", "number %d: duplicate pool %q", i+1, p.Name)
		}
		if len(p.Servers) == 0 {
			bad("member.pools", "number %d: servers are required: URLs such as https://10.0.0.1:4646", i+1)
		}
		checkURLs("member.pools", p.Servers, bad)
	}
}

func checkURLs(key string, list []string, bad report) {
	for _, s := range list {
		if u, err := url.Parse(s); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			bad(key, "invalid URL %q: expected http://HOST:PORT or https://HOST:PORT", s)
		}
	}
}

func checkClient(c *Config, bad report) {
	n := &c.Client
	if !n.Enabled {
		return
	}
	if len(n.Servers) == 0 && !c.Server.Enabled {
		bad("client.servers", "is required if no server runs in this process: URLs such as https://10.0.0.1:4646")
	}
	checkURLs("client.servers", n.Servers, bad)
	if !n.Drivers.Exec.Enabled && !n.Drivers.Sim.Enabled {
		bad("client.drivers.exec.enabled", "a node requires a driver: enable exec or sim")
	}
	if n.Drivers.Exec.LogFiles < 1 || n.Drivers.Exec.LogSize < 4096 {
		bad("client.drivers.exec.log_size", "must be at least 4KiB, and log_files at least 1")
	}
	if e := n.Drivers.Exec; e.UIDFirst < 1000 || e.UIDCount < 1 || e.UIDFirst > math.MaxInt32-e.UIDCount {
		bad("client.drivers.exec.uid_first", "the user IDs of namespaces must be between 1000 and %d, and uid_count at least 1", math.MaxInt32)
	}
	if m := n.Drivers.Exec.MemoryLimit; m != 0 && m < 1 {
		bad("client.drivers.exec.memory_limit", "%v is less than the request of a task: must be at least 1, or 0 for no limit", m)
	}
	for i, d := range n.Devices {
		if strings.Count(d.ID, "/") != 2 || d.Count < 1 {
			bad("client.devices", "number %d: expected an ID vendor/type/model and a count of at least 1", i+1)
		}
	}
	for i, t := range n.Taints {
		if t.Key == "" || strings.ContainsAny(t.Key, " \t\n=:") || !slices.Contains(model.TaintEffects, model.TaintEffect(t.Effect)) {
			bad("client.taints", "number %d: expected a key without spaces, and the effect NoSchedule, PreferNoSchedule or NoExecute", i+1)
		}
		if slices.ContainsFunc(n.Taints[:i], func(o Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
			bad("client.taints", "number %d: %s:%s is there already", i+1, t.Key, t.Effect)
		}
	}
	for _, p := range n.Ports {
		if p < 1 || p > 65535 {
			bad("client.ports", "invalid port %d", p)
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
		bad("client.pressure.max_stall", "invalid percentage %v", n.Pressure.MaxStall)
	}
	if n.Pressure.Enabled && n.Pressure.Interval <= 0 {
		bad("client.pressure.interval", "must be more than 0")
	}
}

func checkPolicy(c *Config, bad report) {
	p := &c.Policy
	if p.OnFault != "deny" && p.OnFault != "default" {
		bad("policy.on_fault", "invalid value %q: must be deny or default", p.OnFault)
	}
	if p.RequireSignature && len(p.Roots) == 0 {
		bad("policy.require_signature", "requires policy.roots, the trusted keys")
	}
	for _, e := range p.Executables {
		if _, err := e.Digest(); err != nil {
			bad("policy.executables", "%v", err)
		}
		if !filepath.IsAbs(e.Path) {
			bad("policy.executables", "%q must be an absolute path", e.Path)
		}
	}
	if p.Limits.Fuel < 0 || uint64(p.Limits.Fuel) > policy.MaxLimits.Fuel {
		bad("policy.limits.fuel", "%d must be between 0 and %d", p.Limits.Fuel, policy.MaxLimits.Fuel)
	}
	if int64(p.Limits.Memory) > policy.MaxLimits.Memory {
		bad("policy.limits.memory", "must be at most %d MiB", policy.MaxLimits.Memory>>20)
	}
	if p.Limits.Time > policy.MaxLimits.Time {
		bad("policy.limits.time", "%v must be at most %v", p.Limits.Time, policy.MaxLimits.Time)
	}
}

// Digest returns the checksum with its sha256: prefix. It returns an error if the
// checksum is not valid.
func (e Executable) Digest() (string, error) {
	sum := strings.TrimPrefix(e.SHA256, "sha256:")
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 {
		return "", fmt.Errorf("invalid SHA-256 checksum %q: `sha256sum %s` prints it", e.SHA256, e.Path)
	}
	return "sha256:" + strings.ToLower(sum), nil
}

func checkLimits(c *Config, bad report) {
	if c.Limits.Body < 64<<10 || c.Limits.Job < c.Limits.Body {
		bad("limits.body", "must be at least 64KiB, and not more than limits.job")
	}
	if c.Limits.Rate < 0 || c.Limits.Rate > 0 && c.Limits.Burst < 1 {
		bad("limits.rate", "must not be negative, and requires limits.burst of at least 1")
	}
	if c.Limits.Connections < 1 {
		bad("limits.connections", "must be at least 1")
	}
	if c.Limits.ConnectionsPerAddress < 0 {
		bad("limits.connections_per_address", "%d is negative: 0 is any number", c.Limits.ConnectionsPerAddress)
	}
	checkAdmission(&c.Limits.Admission, bad)
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		bad("log.level", "invalid level %q: must be debug, info, warn or error", c.Log.Level)
	}
	if !slices.Contains([]string{"auto", "text", "json"}, c.Log.Format) {
		bad("log.format", "invalid format %q: must be auto, text or json", c.Log.Format)
	}
}

// minToken is the minimum length of a token in bytes, so that it cannot be guessed.
const minToken = 16

// checkTelemetry checks access to the metrics. If TLS or ACLs protect the API, the
// metrics must not be readable without a token.
func checkTelemetry(c *Config, bad report) {
	t := &c.Telemetry
	if t.Token != "" && len(t.Token) < minToken {
		bad("telemetry.token", "%d bytes can be guessed: at least %d are required (`openssl rand -hex 32` creates a token)", len(t.Token), minToken)
	}
	if c.metricsOpen() && !t.Open && (c.ACL.Enabled || c.TLS.Cert != "") {
		bad("listen.metrics", "any host that reaches %s could read metrics without a token: set telemetry.token, or telemetry.open to allow it, or listen on a loopback address", c.Listen.Metrics)
	}
}

// metricsOpen reports whether other hosts can read metrics without a token.
func (c *Config) metricsOpen() bool {
	return c.Listen.Metrics != "" && !onLoopback(c.Listen.Metrics) && c.Telemetry.Token == ""
}

// MetricsLocal reports whether metrics are reachable on loopback only.
func (c *Config) MetricsLocal() bool { return onLoopback(c.Listen.Metrics) }

// checkAdmission reports limits outside their range. No value removes a limit, because the
// limits bound the memory of the servers.
func checkAdmission(a *Admission, bad report) {
	for key, value := range map[string]int{
		"group_count": a.GroupCount, "job_allocations": a.JobAllocations, "job_groups": a.JobGroups, "group_tasks": a.GroupTasks,
		"namespace_jobs": a.NamespaceJobs, "namespace_allocations": a.NamespaceAllocations,
		"binding_replicas": a.BindingReplicas, "binding_clusters": a.BindingClusters,
		"namespace_bindings": a.NamespaceBindings, "namespace_replicas": a.NamespaceReplicas, "clusters": a.Clusters,
	} {
		most := maxAdmission
		if fixed, ok := fixedLimits[key]; ok {
			most = fixed
		}
		if value < 1 || value > most {
			bad("limits.admission."+key, "%d must be between 1 and %d", value, most)
		}
	}
}

// maxAdmission is the greatest admission limit: beyond any cluster, and small enough that
// sums do not overflow.
const maxAdmission = 1 << 30

// fixedLimits are limits of the job and binding formats, which the configuration can lower
// only.
var fixedLimits = map[string]int{"job_groups": 500, "group_tasks": 50, "binding_replicas": 1 << 20}
