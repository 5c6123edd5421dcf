package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/config"
)

// write writes files into a directory and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, s config.Sources) *config.Loaded {
	t.Helper()
	c, err := config.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const minimal = "data_dir: /var/lib/cede\nserver: {enabled: true}\n"

func TestLoad_LaterLayersWin(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"cede.yaml": minimal + "region: file\ndatacenter: file\nname: file\nlog: {level: debug}\n" +
			"client: {attributes: {zone: a, cpu.arch: x}, meta: {a: 1}, ports: [1, 2]}\n",
		"config.d/20.yaml":  "datacenter: second\nclient: {attributes: {rack: r1}, ports: [3]}\n",
		"config.d/10.yml":   "datacenter: first\nname: first\n",
		"config.d/note.txt": "not: [read",
	})
	file := filepath.Join(dir, "cede.yaml")
	c := load(t, config.Sources{
		Files:   []string{file},
		Environ: []string{"CEDE_NAME=env", "CEDE_SERVER__WORKERS=7", "CEDE_CLIENT__PORTS=4,5", "CEDE_SERVER__HEARTBEAT__TTL=3s", "CEDE_TOKEN=another's", "CEDE_ADDR=x", "CEDE_LIMITS__BODY=2MiB"},
		Flags:   map[string]string{"server.workers": "9", "client.drivers.sim.enabled": "true"},
	})
	if c.Region != "file" || c.Datacenter != "second" || c.Name != "env" || c.Server.Workers != 9 || c.Log.Level != "debug" {
		t.Errorf("got region %s, datacenter %s, name %s, %d workers, level %s", c.Region, c.Datacenter, c.Name, c.Server.Workers, c.Log.Level)
	}
	if c.Server.Heartbeat.TTL != 3*time.Second || c.Limits.Body != 2<<20 || !c.Client.Drivers.Sim.Enabled {
		t.Errorf("got TTL %v, body %v", c.Server.Heartbeat.TTL, c.Limits.Body)
	}
	if a := c.Client.Attributes; len(a) != 3 || a["zone"] != "a" || a["cpu.arch"] != "x" || a["rack"] != "r1" || c.Client.Meta["a"] != "1" {
		t.Errorf("attributes %v, meta %v: maps are merged", a, c.Client.Meta)
	}
	if !slices.Equal(c.Client.Ports, []int{4, 5}) {
		t.Errorf("ports %v: lists are replaced", c.Client.Ports)
	}
	want := map[string]string{
		"region": file + ":3", "datacenter": filepath.Join(dir, "config.d/20.yaml") + ":1", "name": "CEDE_NAME", "server.workers": "the command line",
		"server.bootstrap_expect": "default", "client.attributes.rack": filepath.Join(dir, "config.d/20.yaml") + ":2",
	}
	for _, v := range c.Values() {
		if w, ok := want[v.Key]; ok && v.Source != w {
			t.Errorf("%s comes from %s, want %s", v.Key, v.Source, w)
		}
		delete(want, v.Key)
	}
	if len(want) > 0 {
		t.Errorf("not shown: %v", want)
	}
}

func TestLoad_ReportsEveryProblemWithItsLine(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"cede.yaml": `data_dir: /d
server:
  enable: true
  workers: many
  workers: 2
  heartbeat: {ttl: 10}
serfer: {x: 1}
client:
  token: hunter2
  drivers: {exec: {log_size: 5MB}}
  devices: [{id: a/b/c, cuont: 2}]
bootstrap_expect: 3
log: debug
`})
	file := filepath.Join(dir, "cede.yaml")
	_, err := config.Load(config.Sources{Files: []string{file}, Environ: []string{"CEDE_SERVER__WORKRES=1", "CEDE_CLIENT__RESOURCE__CPU=1"}})
	var e *config.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		file + ":3: server.enable: unknown key; did you mean server.enabled?",
		file + ":4: server.workers: invalid value \"many\": expected an integer",
		file + ":5: server.workers: duplicate key, first on line 4",
		file + ":6: server.heartbeat.ttl: invalid duration 10: expected a number with ms, s, m or h",
		file + ":7: serfer: unknown key; did you mean server?",
		file + ":9: client.token: secrets are not allowed in configuration files: use file:PATH, or set CEDE_CLIENT__TOKEN",
		file + ":10: client.drivers.exec.log_size: invalid size \"5MB\"",
		file + ":11: client.devices: unknown field cuont; did you mean count?",
		file + ":12: bootstrap_expect: unknown key; did you mean server.bootstrap_expect?",
		file + ":13: log: expected a mapping of keys to values",
		"CEDE_SERVER__WORKRES: server.workres: unknown key; did you mean server.workers?",
		"CEDE_CLIENT__RESOURCE__CPU: client.resource.cpu: unknown key; did you mean client.resources.cpu?",
	} {
		if !slices.ContainsFunc(e.Problems, func(p config.Problem) bool { return strings.HasPrefix(p.String(), want) }) {
			t.Errorf("missing problem: %s", want)
		}
	}
	if len(e.Problems) != 12 {
		t.Errorf("%d problems:\n%v", len(e.Problems), err)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("the output contains the secret")
	}
}

func TestLoad_ChecksDependentKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                        "server.enabled: at least one of",
		"server: {enabled: true}": "data_dir: is required",
		"server: {enabled: true}\ndata_dir: here":                                        `data_dir: "here" must be an absolute path`,
		minimal + "listen: {gossip: '127.0.0.1:4648'}\ntls: {cert: c, key: k, ca: a}\n":  "tls.server_name: is required for connections between servers",
		minimal + "tls: {cert: c.pem}":                                                   "tls.cert: requires tls.key",
		minimal + "tls: {verify_client: true, cert: c, key: k}":                          "tls.verify_client: requires tls.ca",
		minimal + "listen: {http: here}":                                                 `listen.http: invalid address "here": expected HOST:PORT`,
		minimal + "listen: {rpc: ''}":                                                    "listen.rpc: is required",
		"data_dir: /d\nserver: {enabled: true, bootstrap_expect: 4}":                     "server.bootstrap_expect: 4 servers tolerate no more failures than 3",
		"data_dir: /d\nserver: {enabled: true, workers: 1000000000}":                     "server.workers: 1000000000 is more than 1024",
		"data_dir: /d\nserver: {enabled: true, raft: {lease: 2s}}":                       "server.raft.lease: 2s is longer",
		"data_dir: /d\nclient: {enabled: true}":                                          "client.servers: is required",
		"data_dir: /d\nclient: {enabled: true, servers: [10.0.0.1:4646]}":                "invalid URL",
		"data_dir: /d\nclient: {enabled: true, servers: [http://h], ports: [70000]}":     "client.ports: invalid port 70000",
		"data_dir: /d\nclient: {enabled: true, servers: [http://h], resources: {a: -1}}": "client.resources: a: -1 is negative",
		minimal + "policy: {require_signature: true, on_fault: x}":                       "policy.on_fault: invalid value \"x\"",
		minimal + "policy: {executables: [{path: /bin/true, sha256: abc}]}":              "invalid SHA-256 checksum",
		minimal + "limits: {body: 1KiB}":                                                 "limits.body: must be at least 64KiB",
		minimal + "log: {level: loud}":                                                   "log.level: invalid level \"loud\"",
		minimal + "limits: {connections_per_address: -1}":                                "limits.connections_per_address: -1 is negative",
		minimal + "acl: {enabled: true}\nlisten: {metrics: '0.0.0.0:4649'}":              "listen.metrics: any host that reaches 0.0.0.0:4649 could read",
		minimal + "tls: {cert: c, key: k}\nlisten: {metrics: ':4649'}":                   "listen.metrics: any host that reaches :4649 could read",
		minimal + "- a": "did not find expected key",
	} {
		dir := write(t, map[string]string{"c.yaml": text})
		_, err := config.Load(config.Sources{Files: []string{filepath.Join(dir, "c.yaml")}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := config.Load(config.Sources{Files: []string{"/no/such/file"}}); err == nil || !strings.Contains(err.Error(), "/no/such/file: no such file") {
		t.Errorf("with a missing file: %v", err)
	}
}

func TestSecrets_AreReadAndRedacted(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"cede.yaml": "", "token": "hunter2\n", "empty": ""})
	file := filepath.Join(dir, "cede.yaml")
	text := minimal + "client: {token: file:" + filepath.Join(dir, "token") + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := load(t, config.Sources{Files: []string{file}, Environ: []string{"CEDE_SERVER__SECRET=hunter2", "CEDE_MEMBER__TOKEN=hunter2", "CEDE_TELEMETRY__TOKEN=hunter2-hunter2-hunter2", "CEDE_MEMBER__CEDE__TOKEN=hunter2", "CEDE_KUBERNETES__TOKEN=hunter2"}})
	if string(c.Client.Token) != "hunter2" || string(c.Server.Secret) != "hunter2" {
		t.Error("the secrets were not read")
	}
	for _, v := range c.Values() {
		if text, _ := v.Value.(string); strings.Contains(text, "hunter2") || strings.HasSuffix(v.Key, ".token") && text != "(secret)" {
			t.Errorf("%s is printed as %v", v.Key, v.Value)
		}
	}
	if _, err := config.Load(config.Sources{Files: []string{file}, Environ: []string{"CEDE_CLIENT__TOKEN=file:" + filepath.Join(dir, "empty")}}); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("with an empty secret: %v", err)
	}
}

func TestChanges_ReturnsReloadableKeys(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"c.yaml": minimal})
	file := filepath.Join(dir, "c.yaml")
	old := load(t, config.Sources{Files: []string{file}})
	if err := os.WriteFile(file, []byte(minimal+"log: {level: debug}\nname: other\nlimits: {rate: 5, burst: 9}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	next, err := old.Reload()
	if err != nil {
		t.Fatal(err)
	}
	can, cannot := old.Changes(next)
	if !slices.Equal(can, []string{"limits.rate", "limits.burst", "log.level"}) || !slices.Equal(cannot, []string{"name"}) {
		t.Errorf("reloadable %v, refused %v", can, cannot)
	}
}

func TestDev_RequiresNoConfiguration(t *testing.T) {
	t.Parallel()
	c := load(t, config.Sources{Dev: true})
	if !c.Server.Enabled || !c.Client.Enabled || !c.Client.Drivers.Sim.Enabled || !c.Dev {
		t.Errorf("got %+v", c.Config)
	}
}

func TestSize_ParsesItsOwnFormat(t *testing.T) {
	t.Parallel()
	for _, s := range []config.Size{0, 1, 1023, 1024, 1536, 10 << 20, 3 << 30, 1 << 40} {
		if got, err := config.ParseSize(s.String()); err != nil || got != s {
			t.Errorf("%d is formatted as %s and parsed as %d, %v", s, s, got, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5MiB", "5MB", "9999999999TiB"} {
		if s, err := config.ParseSize(text); err == nil {
			t.Errorf("%q is parsed as %d", text, s)
		}
	}
}

// TestLoad_SecretInFileHidesNoOtherProblem checks that a secret in a file does not end validation.
func TestLoad_SecretInFileHidesNoOtherProblem(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"c.yaml": minimal + "telemetry: {token: this-stands-in-a-file-of-settings}\nlisten: {http: here}\n"})
	_, err := config.Load(config.Sources{Files: []string{filepath.Join(dir, "c.yaml")}})
	if err == nil || !strings.Contains(err.Error(), "telemetry.token: secrets are not allowed") || !strings.Contains(err.Error(), `listen.http: invalid address "here": expected HOST:PORT`) ||
		strings.Contains(err.Error(), "this-stands-in") {
		t.Errorf("error is %v", err)
	}
}

// TestWarnings_ReportOpenListeners checks that listeners open to other hosts are permitted and reported.
func TestWarnings_ReportOpenListeners(t *testing.T) {
	t.Parallel()
	const (
		far, acl, tls = "listen: {http: '0.0.0.0:4646'}\n", "acl: {enabled: true}\n", "tls: {cert: c, key: k}\n"
		scrape        = "listen: {metrics: '0.0.0.0:4649'}\n"
	)
	for text, want := range map[string][]string{
		minimal: nil,
		"data_dir: /d\nserver: {enabled: true, workers: 0}\n": {"server.workers: the only server processes no evaluations"},
		minimal + acl + tls: nil,
		minimal + "listen: {gossip: '127.0.0.1:4648'}\ntls: {cert: c, key: k, ca: a, server_name: pool}\n": nil,
		minimal + "tls: {ca: a}\n":                                     {"tls.ca: tls.ca is set without a certificate"},
		"data_dir: /d\nserver: {enabled: true, bootstrap_expect: 3}\n": {"server.bootstrap_expect: 3 servers must bootstrap together"},
		minimal + far:             {"listen.http: any host that reaches 0.0.0.0:4646 can do everything, without encryption"},
		minimal + far + tls:       {"listen.http: any host that reaches 0.0.0.0:4646 can do everything: set acl.enabled"},
		minimal + far + acl:       {"listen.http: tokens travel to 0.0.0.0:4646 in plain text"},
		minimal + far + acl + tls: nil,
		minimal + far + "tls: {cert: c, key: k, ca: a, verify_client: true}\n": nil,
		minimal + "listen: {rpc: '0.0.0.0:4647'}\n":                            {"listen.rpc: any host that reaches 0.0.0.0:4647 is accepted as a server"},
		minimal + scrape: {"listen.metrics: any host that reaches 0.0.0.0:4649 can read metrics"},
		minimal + scrape + acl + "telemetry: {open: true}\n":                 {"listen.metrics: any host that reaches 0.0.0.0:4649 can read metrics"},
		"data_dir: /d\nclient: {enabled: true, servers: [http://h]}\n" + far: {"listen.http: any host that reaches 0.0.0.0:4646 can read the output of tasks"},
	} {
		dir := write(t, map[string]string{"c.yaml": text})
		var got []string
		for _, w := range load(t, config.Sources{Files: []string{filepath.Join(dir, "c.yaml")}}).Warnings() {
			if !strings.Contains(w.Where, "c.yaml:") {
				t.Errorf("%q: the reported source is %q", text, w.Where)
			}
			w.Where = ""
			got = append(got, w.String())
		}
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
	file := write(t, map[string]string{"c.yaml": minimal + "acl: {enabled: true}\nlisten: {metrics: '0.0.0.0:4649'}\ntelemetry: {token: 'file:TOKEN'}\n", "token": "a-token-of-those-who-scrape", "short": "x"})
	text, err := os.ReadFile(filepath.Join(file, "c.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"token": "", "short": "telemetry.token: 1 bytes can be guessed"} {
		one := write(t, map[string]string{"c.yaml": strings.Replace(string(text), "TOKEN", filepath.Join(file, name), 1)})
		c, err := config.Load(config.Sources{Files: []string{filepath.Join(one, "c.yaml")}})
		if want == "" && (err != nil || len(c.Warnings()) > 0) {
			t.Errorf("with a token: %v", err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("with a short token: %v", err)
		}
	}
}
