package config

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode"
)

// Config is the configuration of one process. The tags hold the keys; `reload` marks
// settings that a reload applies.
type Config struct {
	Name       string `koanf:"name"`       // of this server and node; default: the host name
	Region     string `koanf:"region"`     // default: global
	Datacenter string `koanf:"datacenter"` // default: dc1
	DataDir    string `koanf:"data_dir"`   // absolute

	Listen    Listen    `koanf:"listen"`
	Advertise Advertise `koanf:"advertise"`
	TLS       TLS       `koanf:"tls"`
	ACL       ACL       `koanf:"acl"`
	Server    Server    `koanf:"server"`
	Gossip    Gossip    `koanf:"gossip"`
	Client    Client    `koanf:"client"`
	Member    Member    `koanf:"member"`
	Policy    Policy    `koanf:"policy"`
	Limits    Limits    `koanf:"limits"`
	Telemetry Telemetry `koanf:"telemetry"`
	Log       Log       `koanf:"log"`

	// Dev selects a server and a node in one process without durable state; set by
	// --dev.
	Dev bool `koanf:"-"`
}

// Listen holds the addresses of the listeners, HOST:PORT.
type Listen struct {
	HTTP   string `koanf:"http"`   // the API; default: 127.0.0.1:4646
	RPC    string `koanf:"rpc"`    // RPC between servers, at most 256 unauthenticated connections; default: 127.0.0.1:4647
	Gossip string `koanf:"gossip"` // discovery of servers, TCP and UDP; default: disabled, or 127.0.0.1:4648 if the server is one of several
	// Metrics is the address of /metrics and /debug/pprof, for up to 64 connections.
	// If it is not on loopback, it uses TLS as the API does and requires
	// telemetry.token. Default: 127.0.0.1:4649; empty: disabled.
	Metrics string `koanf:"metrics"`
}

// Advertise holds the addresses by which others reach the process, HOST:PORT. Default:
// those of Listen, with the address of the host instead of a wildcard.
type Advertise struct {
	HTTP   string `koanf:"http"`
	RPC    string `koanf:"rpc"`
	Gossip string `koanf:"gossip"`
}

// TLS holds the certificates of the listeners. The files are read again on reload.
type TLS struct {
	Cert         string `koanf:"cert" reload:"true"` // PEM file, with the chain; empty: plain text
	Key          string `koanf:"key" reload:"true"`  // PEM file
	CA           string `koanf:"ca" reload:"true"`   // PEM file: authorities of server certificates and, with verify_client, of client certificates
	VerifyClient bool   `koanf:"verify_client"`      // require client certificates for the API
	ServerName   string `koanf:"server_name"`        // name that every server certificate carries, and no other certificate; without it, any server certificate of this authority is accepted as a server; empty: the name or address that is dialed
	MinVersion   string `koanf:"min_version"`        // 1.2 or 1.3; default: 1.2 (1.3 is used if both sides support it)
}

// ACL configures access control.
type ACL struct {
	Enabled bool `koanf:"enabled"`
	// BootstrapFile is the file to which the first management token is written on the
	// first run; default: DATA_DIR/bootstrap.token. Only its owner may read it.
	BootstrapFile string `koanf:"bootstrap_file"`
}

// Server configures the server, which schedules.
type Server struct {
	Enabled bool `koanf:"enabled"`
	// BootstrapExpect is the number of servers that bootstrap a new cluster together, the
	// same on all of them. Default: 1. With server.join, 1 means that this server
	// bootstraps no cluster and waits to be added to one.
	BootstrapExpect int `koanf:"bootstrap_expect"`
	// Join lists gossip addresses (HOST:PORT) of other servers; one reachable address
	// is sufficient.
	Join []string `koanf:"join"`

	// Workers is the number of evaluations that this server processes concurrently.
	// If it is 0, other servers process them, or they stay pending. Default: half the
	// processors, at least 1.
	Workers int    `koanf:"workers" reload:"true"`
	Secret  Secret `koanf:"secret" secret:"true"` // signs plan tokens; empty: derived from the cluster

	Heartbeat Heartbeat `koanf:"heartbeat"`
	GC        GC        `koanf:"gc"`
	Raft      Raft      `koanf:"raft"`
	// WriteDeadline is the maximum duration of one disk write. If a write takes
	// longer, the server assumes that the disk hangs, transfers leadership and exits;
	// another server leads after an election. A busy disk may take seconds, so set
	// less than 5s only if its latency is measured. Default: 10s.
	WriteDeadline time.Duration `koanf:"write_deadline"`
}

// Pooled reports whether the server is one of several, or can become one.
func (c *Config) Pooled() bool { return c.Server.Enabled && !c.Dev && c.Listen.Gossip != "" }

// Founders returns the number of servers that bootstrap the cluster; 0: this one joins
// one.
func (s *Server) Founders() int {
	if s.BootstrapExpect == 1 && len(s.Join) > 0 {
		return 0
	}
	return s.BootstrapExpect
}

// Gossip configures how servers find each other.
type Gossip struct {
	Name string `koanf:"name"` // of the pool, the same on all its servers; default: cede
	// Keys encrypt gossip: base64 of 16, 24 or 32 bytes each, separated by commas or
	// lines. The first key encrypts, and all keys decrypt. The same on all servers.
	Keys Secret `koanf:"keys" secret:"true" reload:"true"`
}

// KeyList decodes the keys.
func (g *Gossip) KeyList() (keys [][]byte, err error) {
	parts := strings.FieldsFunc(string(g.Keys), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for i, text := range parts {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("key %d is not valid base64: `openssl rand -base64 32` creates a key", i+1)
		}
		if n := len(key); n != 16 && n != 24 && n != 32 {
			return nil, fmt.Errorf("key %d has %d bytes: must be 16, 24 or 32", i+1, n)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Heartbeat holds the timeouts of nodes.
type Heartbeat struct {
	TTL   time.Duration `koanf:"ttl"`   // default: 10s
	Grace time.Duration `koanf:"grace"` // default: 10s
	Rate  int           `koanf:"rate"`  // maximum rate of heartbeats per second, for which TTLs are extended in large clusters; default: 50
}

// GC holds the retention of terminal objects.
type GC struct {
	Interval time.Duration `koanf:"interval"` // default: 5m
	Evals    time.Duration `koanf:"evals"`    // default: 1h
	Allocs   time.Duration `koanf:"allocs"`   // default: 1h
	Jobs     time.Duration `koanf:"jobs"`     // default: 4h
	Nodes    time.Duration `koanf:"nodes"`    // default: 24h
	Policies int           `koanf:"policies"` // newest versions of each policy, in addition to those in use; default: 10; negative: all
}

// Raft holds the timeouts between servers, and when the log is truncated.
type Raft struct {
	Heartbeat         time.Duration `koanf:"heartbeat"`          // default: 500ms
	Election          time.Duration `koanf:"election"`           // default: 500ms
	Lease             time.Duration `koanf:"lease"`              // default: 250ms
	SnapshotInterval  time.Duration `koanf:"snapshot_interval"`  // default: 2m
	SnapshotThreshold int           `koanf:"snapshot_threshold"` // entries; default: 8192
	TrailingLogs      int           `koanf:"trailing_logs"`      // entries; default: 10240
}

// Client configures the node's agent, which runs allocations.
type Client struct {
	Enabled    bool              `koanf:"enabled"`
	Servers    []string          `koanf:"servers"` // URLs; default: this process's own server
	Token      Secret            `koanf:"token" secret:"true"`
	Class      string            `koanf:"class"`
	Resources  map[string]int64  `koanf:"resources"` // overrides the detected resources: cpu in millicores, memory and disk in MiB
	Reserved   map[string]int64  `koanf:"reserved"`  // not available to allocations
	Ports      []int             `koanf:"ports"`     // used by the host itself
	Devices    []Device          `koanf:"devices"`
	Taints     []Taint           `koanf:"taints"` // repel allocations that do not tolerate them
	Attributes map[string]string `koanf:"attributes"`
	Meta       map[string]string `koanf:"meta"`
	Drivers    Drivers           `koanf:"drivers"`
	Pressure   Pressure          `koanf:"pressure"`
	// KeepDead is the retention of the logs of an ended allocation. Default: 24h.
	KeepDead time.Duration `koanf:"keep_dead"`
}

// Taint repels allocations that do not tolerate it. Operators can add more with cede
// node taint.
type Taint struct {
	Key    string `koanf:"key"`
	Value  string `koanf:"value"`
	Effect string `koanf:"effect"` // NoSchedule or PreferNoSchedule
}

// Member configures the agent of a member cluster, to which bindings are assigned.
type Member struct {
	Enabled    bool              `koanf:"enabled"`
	Cluster    string            `koanf:"cluster"` // ID of the cluster; default: name
	Servers    []string          `koanf:"servers"` // URLs of the servers that schedule bindings
	Token      Secret            `koanf:"token" secret:"true"`
	Pools      []MemberPool      `koanf:"pools"`      // instead of servers and token, if several pools of servers share the cluster
	Attributes map[string]string `koanf:"attributes"` // matched by constraints of bindings
	Driver     string            `koanf:"driver"`     // cede: bindings run as jobs of a cede cluster; sim: bindings are simulated; default: cede
	Capacity   map[string]int64  `koanf:"capacity"`   // of driver sim: cpu in millicores, memory and disk in MiB
	Poll       time.Duration     `koanf:"poll"`       // interval of status reports; default: 1s
	Cede       Nested            `koanf:"cede"`
}

// MemberPool configures one of several server pools that share a member cluster.
// Pools do not communicate with each other; only the agent connects to all of them,
// under these names.
type MemberPool struct {
	Name    string   `koanf:"name"`
	Servers []string `koanf:"servers"` // URLs
	Token   Secret   `koanf:"token"`   // file:PATH, or the token itself
}

// Nested is the cluster in which the driver cede runs jobs.
type Nested struct {
	Servers   []string `koanf:"servers"` // URLs; default: this process's own server
	Token     Secret   `koanf:"token" secret:"true"`
	Namespace string   `koanf:"namespace"` // namespace of its jobs; default: default
}

// The drivers of member clusters.
const (
	MemberCede = "cede"
	MemberSim  = "sim"
)

// Device is a group of equal devices.
type Device struct {
	ID         string            `koanf:"id"` // vendor/type/model
	Count      int               `koanf:"count"`
	Attributes map[string]string `koanf:"attributes"`
}

// Drivers enables the drivers of tasks.
type Drivers struct {
	Exec ExecDriver `koanf:"exec"`
	Sim  SimDriver  `koanf:"sim"`
}

// ExecDriver runs processes.
type ExecDriver struct {
	Enabled bool `koanf:"enabled"` // default: true
	// User runs tasks that specify no user. Default: nobody if the agent runs as root,
	// otherwise the user of the agent.
	User        string   `koanf:"user"`
	DeniedUsers []string `koanf:"denied_users"` // default: root
	LogSize     Size     `koanf:"log_size"`     // of one file of output; default: 10MiB
	LogFiles    int      `koanf:"log_files"`    // retained files of each output; default: 5
}

// SimDriver simulates tasks.
type SimDriver struct {
	Enabled bool `koanf:"enabled"` // default: false
}

// Pressure configures evictions by the node itself.
type Pressure struct {
	Enabled      bool          `koanf:"enabled"`       // default: true
	Interval     time.Duration `koanf:"interval"`      // default: 2s
	MinAvailable Size          `koanf:"min_available"` // minimum available memory; 0: one twentieth
	MaxStall     float64       `koanf:"max_stall"`     // percent of ten seconds (PSI full avg10); 0: not checked
}

// Policy configures which policies may be loaded, and their limits.
type Policy struct {
	Directory        string       `koanf:"directory" reload:"true"` // bundles that are loaded by name; empty: none
	Roots            []string     `koanf:"roots"`                   // public key files of trusted policy signers
	RequireSignature bool         `koanf:"require_signature"`       // reject policies without a signature of a root
	Executables      []Executable `koanf:"executables"`             // programs that may run as policies, by checksum
	Limits           PolicyLimits `koanf:"limits"`
	OnFault          string       `koanf:"on_fault"` // deny or default; default: deny
}

// Executable is a program that may run as a policy.
type Executable struct {
	Name   string `koanf:"name"`   // name under which it is loaded; empty: its checksum
	Path   string `koanf:"path"`   // absolute
	SHA256 string `koanf:"sha256"` // 64 hexadecimal digits, with or without sha256: before them
}

// PolicyLimits bound one call of a policy.
type PolicyLimits struct {
	Fuel   int64         `koanf:"fuel"`   // instructions; 0: the engine's default
	Memory Size          `koanf:"memory"` // 0: the engine's default
	Time   time.Duration `koanf:"time"`   // 0: the engine's default
}

// Limits bound the requests of clients.
type Limits struct {
	Body        Size    `koanf:"body"`                // of one request; default: 1MiB
	Job         Size    `koanf:"job"`                 // of one request with a job; default: 4MiB
	Rate        float64 `koanf:"rate" reload:"true"`  // requests per second and address; 0: no limit; default: 500
	Burst       int     `koanf:"burst" reload:"true"` // requests beyond the rate that are accepted at once; default: 1000
	Connections int     `koanf:"connections"`         // concurrent connections of all clients; default: 4096
	// ConnectionsPerAddress is the maximum number of connections from one address
	// (for IPv6, one /64). Connections beyond it are closed. Loopback is exempt. 0:
	// no limit, if clients connect through a proxy. Default: 1024.
	ConnectionsPerAddress int `koanf:"connections_per_address"`
}

// Telemetry configures metrics.
type Telemetry struct {
	Pprof bool `koanf:"pprof"` // serve profiles on the metrics listener; off loopback they require the token; default: true
	// Token is required from clients of the metrics listener, as Authorization: Bearer.
	// Default: none, which is refused outside loopback if TLS or ACLs are enabled.
	Token Secret `koanf:"token" secret:"true" reload:"true"`
	// Open allows reads of /metrics off loopback without a token if TLS or ACLs are
	// enabled; never of /debug/pprof. Default: false.
	Open bool `koanf:"open" reload:"true"`
}

// Log configures the log on standard error.
type Log struct {
	Level  string `koanf:"level" reload:"true"` // debug, info, warn or error; default: info
	Format string `koanf:"format"`              // text, json or auto; default: auto, text on a terminal
}

// Defaults returns the configuration without any settings.
func Defaults() Config {
	return Config{
		Region: "global", Datacenter: "dc1",
		Listen: Listen{HTTP: "127.0.0.1:4646", RPC: "127.0.0.1:4647", Metrics: "127.0.0.1:4649"},
		TLS:    TLS{MinVersion: "1.2"},
		Server: Server{
			BootstrapExpect: 1, Workers: max(1, runtime.GOMAXPROCS(0)/2),
			Heartbeat: Heartbeat{TTL: 10 * time.Second, Grace: 10 * time.Second, Rate: 50},
			GC:        GC{Interval: 5 * time.Minute, Evals: time.Hour, Allocs: time.Hour, Jobs: 4 * time.Hour, Nodes: 24 * time.Hour, Policies: 10},
			Raft: Raft{
				Heartbeat: 500 * time.Millisecond, Election: 500 * time.Millisecond, Lease: 250 * time.Millisecond,
				SnapshotInterval: 2 * time.Minute, SnapshotThreshold: 8192, TrailingLogs: 10240,
			},
			WriteDeadline: 10 * time.Second,
		},
		Gossip: Gossip{Name: "cede"},
		Client: Client{
			Drivers:  Drivers{Exec: ExecDriver{Enabled: true, DeniedUsers: []string{"root"}, LogSize: 10 << 20, LogFiles: 5}},
			Pressure: Pressure{Enabled: true, Interval: 2 * time.Second},
			KeepDead: 24 * time.Hour,
		},
		Member:    Member{Driver: MemberCede, Poll: time.Second, Cede: Nested{Namespace: "default"}},
		Policy:    Policy{OnFault: "deny"},
		Limits:    Limits{Body: 1 << 20, Job: 4 << 20, Rate: 500, Burst: 1000, Connections: 4096, ConnectionsPerAddress: 1024},
		Telemetry: Telemetry{Pprof: true},
		Log:       Log{Level: "info", Format: "auto"},
	}
}
