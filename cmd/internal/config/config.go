package config

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode"

	"github.com/cede-scheduler/cede/core/server/admission"
)

// Config is the configuration of one process. The tags hold the keys; `reload` marks
// settings that a reload applies.
type Config struct {
	Name       string `koanf:"name"`       // of this server and node; default: the host name
	Region     string `koanf:"region"`     // name of the region, the same on all servers and nodes; default: global
	Datacenter string `koanf:"datacenter"` // datacenter of this node, which jobs can select; default: dc1
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

	Kubernetes Kubernetes `koanf:"kubernetes"`

	// Dev selects a server and a node in one process without durable state; set by
	// --dev.
	Dev bool `koanf:"-"`
	// Controller selects the scheduler extender of a Kubernetes cluster; set by cede
	// kubernetes.
	Controller bool `koanf:"-"`
}

// PoolScheme precedes the name of a policy in a pool of servers in kubernetes.policy.
const PoolScheme = "pool://"

// Kubernetes configures cede kubernetes, which watches a cluster and answers its
// kube-scheduler. Other commands ignore it.
type Kubernetes struct {
	Kubeconfig string `koanf:"kubeconfig"` // file; default: $KUBECONFIG, ~/.kube/config, or the service account of the pod
	Context    string `koanf:"context"`    // of the kubeconfig; default: its current context
	// Policy chooses the victims: the name of a built-in policy, the path of a module or
	// bundle, or oci://REGISTRY/NAME@sha256:DIGEST (or :TAG) of one in a registry, with
	// settings as in protect?minRuntime=10m; or pool://NAME, the active version of that
	// policy in the pool of servers. Default: kubernetes.
	Policy string `koanf:"policy"`
	// Servers lists the URLs of a pool of servers, to which the controller reports its
	// state and its decisions. Default: none; no pool is needed.
	Servers []string `koanf:"servers"`
	// ServerToken is the token for those servers, with the role kubernetes. It is required
	// if they enforce ACLs.
	ServerToken Secret `koanf:"server_token" secret:"true"`
	// RegistryConfig is a file with credentials of registries in the form of Docker's
	// config.json. Default: none are sent.
	RegistryConfig string `koanf:"registry_config"`
	PolicyConfig   string `koanf:"policy_config"` // YAML file with settings of the policy; default: none
	// PolicyInterval is the interval at which the files of the policy and of tls, and the
	// tag of a policy in a registry, are read again. Default: 10s.
	PolicyInterval time.Duration `koanf:"policy_interval"`
	// Token is required from kube-scheduler, as the password of its URL or as
	// Authorization: Bearer. With tls.verify_client a client certificate is accepted
	// instead. One of them is required if other hosts reach listen.http.
	Token Secret `koanf:"token" secret:"true"`
	// ClientNames lists the common names and DNS names of client certificates that are
	// accepted, for an authority that also issues certificates to others. Default: all
	// that tls.ca has signed.
	ClientNames []string      `koanf:"client_names"`
	Deadline    time.Duration `koanf:"deadline"` // of one request, after which the proposal of kube-scheduler stands; default: 3s
	// Lease names the Lease, as NAMESPACE/NAME, by which one of several replicas is
	// elected. The others are not ready, and answer kube-scheduler with its own
	// proposals. Default: none; this process is the only replica.
	Lease string `koanf:"lease"`
	// LeaseDuration is the time after the last renewal at which another replica acquires
	// the Lease. Default: 15s.
	LeaseDuration time.Duration `koanf:"lease_duration"`
	// EvictionDeadline is the time within which the watch must report the eviction of
	// named victims. Until then they count as leaving. Default: 1m.
	EvictionDeadline time.Duration `koanf:"eviction_deadline"`
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
	// Hosts lists the names that the Host header of a request may contain in addition
	// to loopback addresses, localhost and advertise.http, if a listener is on loopback:
	// for example the name of a proxy on this host. Requests with other names are
	// rejected, because a web page could send them. Default: none.
	Hosts []string `koanf:"hosts"`
}

// Advertise holds the addresses by which others reach the process, HOST:PORT. Default:
// those of Listen, with the address of the host instead of a wildcard.
type Advertise struct {
	HTTP   string `koanf:"http"`   // of the API, for clients and nodes
	RPC    string `koanf:"rpc"`    // of RPC, for other servers
	Gossip string `koanf:"gossip"` // of gossip, for other servers
}

// TLS holds the certificates of the listeners. The files are read again on reload.
type TLS struct {
	Cert         string `koanf:"cert" reload:"true"` // PEM file, with the chain; empty: plain text
	Key          string `koanf:"key" reload:"true"`  // PEM file
	CA           string `koanf:"ca" reload:"true"`   // PEM file: authorities of server certificates and, with verify_client, of client certificates
	VerifyClient bool   `koanf:"verify_client"`      // require client certificates for the API
	ServerName   string `koanf:"server_name"`        // DNS name that every server's certificate carries, and no other certificate: it proves the role; required in a pool
	MinVersion   string `koanf:"min_version"`        // 1.2 or 1.3; default: 1.2 (1.3 is used if both sides support it)
}

// ACL configures access control.
type ACL struct {
	Enabled bool `koanf:"enabled"` // require a token with a sufficient role for every request; the same on all servers; default: false
	// BootstrapFile is the file to which the first management token is written on the
	// first run; default: DATA_DIR/bootstrap.token. Only its owner may read it.
	BootstrapFile string `koanf:"bootstrap_file"`
}

// Server configures the server, which schedules.
type Server struct {
	Enabled bool `koanf:"enabled"` // run a server in this process; default: false
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
	TTL   time.Duration `koanf:"ttl"`   // interval in which a node must report; default: 10s
	Grace time.Duration `koanf:"grace"` // additional time after which a silent node is down; default: 10s
	Rate  int           `koanf:"rate"`  // maximum rate of heartbeats per second, for which TTLs are extended in large clusters; default: 50
}

// GC holds the retention of terminal objects.
type GC struct {
	Interval time.Duration `koanf:"interval"` // time between two collections; default: 5m
	Evals    time.Duration `koanf:"evals"`    // retention of completed evaluations; default: 1h
	Allocs   time.Duration `koanf:"allocs"`   // retention of terminal allocations; default: 1h
	Jobs     time.Duration `koanf:"jobs"`     // retention of stopped and complete jobs; default: 4h
	Nodes    time.Duration `koanf:"nodes"`    // retention of nodes that are down; default: 24h
	Policies int           `koanf:"policies"` // newest versions of each policy, in addition to those in use; default: 10; negative: all
}

// Raft holds the timeouts between servers, and when the log is truncated.
type Raft struct {
	Heartbeat         time.Duration `koanf:"heartbeat"`          // time without contact after which a follower starts an election; default: 500ms
	Election          time.Duration `koanf:"election"`           // time after which a candidate starts another election; default: 500ms
	Lease             time.Duration `koanf:"lease"`              // time without a majority after which a leader resigns; default: 250ms
	SnapshotInterval  time.Duration `koanf:"snapshot_interval"`  // time between checks if a snapshot is due; default: 2m
	SnapshotThreshold int           `koanf:"snapshot_threshold"` // entries since the last snapshot that make one due; default: 8192
	TrailingLogs      int           `koanf:"trailing_logs"`      // entries retained after a snapshot, for followers that are behind; default: 10240
}

// Client configures the node's agent, which runs allocations.
type Client struct {
	Enabled    bool              `koanf:"enabled"`             // run a node in this process; default: false
	Servers    []string          `koanf:"servers"`             // URLs; default: this process's own server
	Token      Secret            `koanf:"token" secret:"true"` // with the role node; required if the servers enforce ACLs
	Class      string            `koanf:"class"`               // class of the node, which constraints match as node.class; default: none
	Resources  map[string]int64  `koanf:"resources"`           // overrides the detected resources: cpu in millicores, memory and disk in MiB
	Reserved   map[string]int64  `koanf:"reserved"`            // not available to allocations
	Ports      []int             `koanf:"ports"`               // used by the host itself
	Devices    []Device          `koanf:"devices"`             // such as GPUs
	Taints     []Taint           `koanf:"taints"`              // repel allocations that do not tolerate them
	Attributes map[string]string `koanf:"attributes"`          // matched by constraints, in addition to those detected
	Meta       map[string]string `koanf:"meta"`                // matched by constraints where no attribute has the name
	Drivers    Drivers           `koanf:"drivers"`
	Pressure   Pressure          `koanf:"pressure"`
	// KeepDead is the retention of the logs of an ended allocation. Default: 24h.
	KeepDead time.Duration `koanf:"keep_dead"`
}

// Taint repels allocations that do not tolerate it. Operators can add more with cede
// node taint.
type Taint struct {
	Key    string `koanf:"key"`    // name, which tolerations match
	Value  string `koanf:"value"`  // matched by tolerations with a value; may be empty
	Effect string `koanf:"effect"` // NoSchedule or PreferNoSchedule
}

// Member configures the agent of a member cluster, to which bindings are assigned.
type Member struct {
	Enabled    bool              `koanf:"enabled"`             // run the agent of a member cluster in this process; default: false
	Cluster    string            `koanf:"cluster"`             // ID of the cluster; default: name
	Servers    []string          `koanf:"servers"`             // URLs of the servers that schedule bindings
	Token      Secret            `koanf:"token" secret:"true"` // with the role node, for those servers
	Pools      []MemberPool      `koanf:"pools"`               // instead of servers and token, if several pools of servers share the cluster
	Attributes map[string]string `koanf:"attributes"`          // matched by constraints of bindings
	Driver     string            `koanf:"driver"`              // cede: bindings run as jobs of a cede cluster; sim: bindings are simulated; default: cede
	Capacity   map[string]int64  `koanf:"capacity"`            // of driver sim: cpu in millicores, memory and disk in MiB
	Poll       time.Duration     `koanf:"poll"`                // interval of status reports; default: 1s
	Cede       Nested            `koanf:"cede"`
}

// MemberPool configures one of several server pools that share a member cluster.
// Pools do not communicate with each other; only the agent connects to all of them,
// under these names.
type MemberPool struct {
	Name    string   `koanf:"name"`                // of the pool, for leases
	Servers []string `koanf:"servers"`             // URLs
	Token   Secret   `koanf:"token" secret:"true"` // file:PATH
}

// Nested is the cluster in which the driver cede runs jobs.
type Nested struct {
	Servers   []string `koanf:"servers"`             // URLs; default: this process's own server
	Token     Secret   `koanf:"token" secret:"true"` // with the role submit, for those servers
	Namespace string   `koanf:"namespace"`           // namespace of its jobs; default: default
}

// The drivers of member clusters.
const (
	MemberCede = "cede"
	MemberSim  = "sim"
)

// Device is a group of equal devices.
type Device struct {
	ID         string            `koanf:"id"`         // vendor/type/model
	Count      int               `koanf:"count"`      // number of equal devices
	Attributes map[string]string `koanf:"attributes"` // matched by constraints of device requests
}

// Drivers enables the drivers of tasks.
type Drivers struct {
	Exec ExecDriver `koanf:"exec"`
	Sim  SimDriver  `koanf:"sim"`
}

// ExecDriver runs processes.
type ExecDriver struct {
	Enabled bool `koanf:"enabled"` // run tasks as processes; default: true
	// User runs tasks that specify no user. Default: a user ID per namespace if the agent
	// runs as root, otherwise the user of the agent.
	User        string   `koanf:"user"`
	UIDFirst    int      `koanf:"uid_first"`    // first of the user IDs for namespaces, which no account of the host may have; default: 700000000
	UIDCount    int      `koanf:"uid_count"`    // number of those user IDs; default: 65536
	DeniedUsers []string `koanf:"denied_users"` // compared by user ID; default: root
	// MemoryLimit limits the memory of a task to this multiple of its request, but at
	// least to 64 MiB more than the request, where cgroups are available. 0: no limit.
	// Default: 2.
	MemoryLimit float64 `koanf:"memory_limit"`
	LogSize     Size    `koanf:"log_size"`  // of one file of output; default: 10MiB
	LogFiles    int     `koanf:"log_files"` // retained files of each output; default: 5
}

// SimDriver simulates tasks.
type SimDriver struct {
	Enabled bool `koanf:"enabled"` // accept simulated tasks, which run nothing; default: false
}

// Pressure configures evictions by the node itself.
type Pressure struct {
	Enabled      bool          `koanf:"enabled"`       // evict allocations if memory is short; default: true
	Interval     time.Duration `koanf:"interval"`      // time between two measurements; default: 2s
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
	ConnectionsPerAddress int       `koanf:"connections_per_address"`
	Admission             Admission `koanf:"admission"`
}

// Admission limits the jobs, bindings and clusters that a server accepts, because an
// instance that a request only counts costs memory of every server. The leader checks
// them at each write. Objects that exceed a limit that was lowered are retained, and may
// be updated without growing.
type Admission struct {
	GroupCount           int `koanf:"group_count"`           // instances of one group; default: 100000
	JobAllocations       int `koanf:"job_allocations"`       // instances of all groups of one job; default: 100000
	JobGroups            int `koanf:"job_groups"`            // groups of one job, at most 500; default: 500
	GroupTasks           int `koanf:"group_tasks"`           // tasks of one group, at most 50; default: 50
	NamespaceJobs        int `koanf:"namespace_jobs"`        // jobs of one namespace, including stopped ones until they are garbage-collected; default: 100000
	NamespaceAllocations int `koanf:"namespace_allocations"` // instances of all jobs of one namespace; default: 1000000
	BindingReplicas      int `koanf:"binding_replicas"`      // replicas of one binding, at most 1048576; default: 1048576
	BindingClusters      int `koanf:"binding_clusters"`      // clusters that one binding lists; default: 1000
	NamespaceBindings    int `koanf:"namespace_bindings"`    // bindings of one namespace; default: 100000
	NamespaceReplicas    int `koanf:"namespace_replicas"`    // replicas of all bindings of one namespace; default: 16777216
	Clusters             int `koanf:"clusters"`              // member clusters; default: 10000
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
			Drivers:  Drivers{Exec: ExecDriver{Enabled: true, UIDFirst: 700_000_000, UIDCount: 65_536, DeniedUsers: []string{"root"}, MemoryLimit: 2, LogSize: 10 << 20, LogFiles: 5}},
			Pressure: Pressure{Enabled: true, Interval: 2 * time.Second},
			KeepDead: 24 * time.Hour,
		},
		Member:    Member{Driver: MemberCede, Poll: time.Second, Cede: Nested{Namespace: "default"}},
		Policy:    Policy{OnFault: "deny"},
		Limits:    Limits{Body: 1 << 20, Job: 4 << 20, Rate: 500, Burst: 1000, Connections: 4096, ConnectionsPerAddress: 1024, Admission: Admission(admission.Defaults())},
		Telemetry: Telemetry{Pprof: true},
		Log:       Log{Level: "info", Format: "auto"},
		Kubernetes: Kubernetes{
			Policy: "kubernetes", PolicyInterval: 10 * time.Second, Deadline: 3 * time.Second, EvictionDeadline: time.Minute,
			LeaseDuration: 15 * time.Second,
		},
	}
}
