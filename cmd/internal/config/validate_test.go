package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/config"
)

// problems returns the keys of all problems, with repetitions.
func problems(t *testing.T, dir, text string) []string {
	t.Helper()
	files := write(t, map[string]string{"c.yaml": strings.ReplaceAll(text, "DIR", dir)})
	_, err := config.Load(config.Sources{Files: []string{filepath.Join(files, "c.yaml")}, Look: true})
	var e *config.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	if e == nil {
		return nil
	}
	var keys []string
	for _, p := range e.Problems {
		keys = append(keys, p.Key)
		if !strings.Contains(p.Where, "c.yaml:") && !strings.Contains(p.Text, "is taken by listen.http") { // the source is a key of the file
			t.Errorf("%q: %s has no source", text, p)
		}
	}
	slices.Sort(keys)
	return keys
}

// pair returns a certificate and its key, in PEM format.
func pair(t *testing.T, until time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return text("CERTIFICATE", der), text("PRIVATE KEY", secret)
}

// One run reports problems of every stage.
func TestLoad_ReportsProblemsOfEveryStage(t *testing.T) {
	t.Parallel()
	cert, key := pair(t, time.Now().Add(time.Hour))
	_, other := pair(t, time.Now().Add(time.Hour))
	old, oldKey := pair(t, time.Now().Add(-time.Hour))
	dir := write(t, map[string]string{"cert": cert, "key": key, "other": other, "old": old, "oldkey": oldKey, "empty": "\n"})
	for text, want := range map[string][]string{
		minimal: nil,
		minimal + "regoin: x\nlisten: {http: here}\nlimits: {rate: many}\ngossip: {keys: 'file:/nope'}\nserver: {heartbeat: {ttl: -1s}}\n":                   {"gossip.keys", "limits.rate", "listen.http", "regoin", "server"}, // which is there twice
		"data_dir: d\nregoin: x\nlisten: {http: here}\nlimits: {rate: many}\ngossip: {keys: 'file:/nope'}\nserver: {enabled: true, heartbeat: {ttl: -1s}}\n": {"data_dir", "gossip.keys", "limits.rate", "listen.http", "regoin", "server.heartbeat.ttl"},
		"data_dir: d\ntelemetry: {token: [a]}\nlog: {level: loud}\nserver: {enabled: true}\n":                                                                {"data_dir", "log.level", "telemetry.token"},
		// If a problem depends on a value that could not be read, it is not reported
		// in this run.
		"data_dir: /d\nserver: {enabled: ja}\n":                                                             {"server.enabled"},
		"data_dir: /d\nserver: {enabeld: true}\nlog: {level: loud}\n":                                       {"log.level", "server.enabeld"},
		"data_dir: [1, 2]\nserver: {enabled: true}\nlisten: {rpc: ''}\n":                                    {"data_dir", "listen.rpc"},
		"data_dir: /d\nserver: {enabled: true, raft: {heartbeat: quick, lease: 2s}}\n":                      {"server.raft.heartbeat"},
		"data_dir: /d\nserver: {enabled: true, raft: {heartbeat: quick}}\ntls: {cert: [a], key: DIR/key}\n": {"server.raft.heartbeat", "tls.cert"},
		"data_dir: /d\nclient: {enabled: true, servers: {a: b}}\nlimits: {body: 1KiB}\n":                    {"client.servers.a", "limits.body"},
		"data_dir: /d\nclient: 5\n":                                                                         {"client"},
		// Files.
		minimal + "tls: {cert: DIR/cert, key: DIR/key, ca: DIR/cert}\n":                       nil,
		minimal + "tls: {cert: DIR/cert, key: DIR/other}\n":                                   {"tls.key"},
		minimal + "tls: {cert: DIR/key, key: DIR/cert}\n":                                     {"tls.key"},
		minimal + "tls: {cert: DIR/empty, key: DIR/key}\n":                                    {"tls.cert"},
		minimal + "tls: {cert: DIR/old, key: DIR/oldkey}\n":                                   {"tls.cert"},
		minimal + "tls: {cert: DIR/cert, key: DIR/key, ca: DIR/key}\n":                        {"tls.ca"},
		minimal + "tls: {cert: DIR/no, key: DIR/no, ca: DIR/no}\npolicy: {roots: [DIR/no]}\n": {"policy.roots", "tls.ca", "tls.cert", "tls.key"},
		// Addresses and names.
		minimal + "listen: {http: '127.0.0.1:4647'}\n":                                          {"listen.rpc"},
		minimal + "listen: {http: ':4647', metrics: 'localhost:4647'}\n":                        {"listen.metrics", "listen.metrics", "listen.rpc"},
		minimal + "listen: {http: '127.0.0.1:0', rpc: '127.0.0.1:0', metrics: '127.0.0.1:0'}\n": nil,
		minimal + "listen: {gossip: '127.0.0.1:4646'}\n":                                        {"listen.gossip"},
		minimal + "listen: {rpc: '127.0.0.2:4646'}\n":                                           nil,
		minimal + "name: a b\nregion: ''\ndatacenter: a/b\n":                                    {"datacenter", "name", "region"},
	} {
		if got := problems(t, dir, text); !slices.Equal(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}

// A configuration of another machine is valid although its secrets are elsewhere.
func TestLoad_LeavesSecretsOfOtherMachinesUnread(t *testing.T) {
	dir := write(t, map[string]string{"cede.yaml": `
data_dir: /var/lib/cede
server: {enabled: true, secret: file:/nowhere/secret}
gossip: {keys: file:/nowhere/gossip.keys}
client: {enabled: true, token: file:/nowhere/client.token}
telemetry: {token: file:/nowhere/telemetry.token}
member:
  enabled: true
  driver: sim
  capacity: {cpu: 1}
  pools: [{name: a, servers: ["http://127.0.0.1:4646"], token: file:/nowhere/pool.token}]
`})
	s := config.Sources{Files: []string{filepath.Join(dir, "cede.yaml")}, NoSecrets: true}
	if _, err := config.Load(s); err != nil {
		t.Error(err)
	}
	s.NoSecrets = false
	if _, err := config.Load(s); err == nil || strings.Count(err.Error(), "/nowhere/") != 5 {
		t.Errorf("files of secrets are not read: %v", err)
	}
}

func TestLoad_RejectsSecretsInLists(t *testing.T) {
	dir := write(t, map[string]string{"cede.yaml": `
data_dir: /var/lib/cede
member:
  enabled: true
  driver: sim
  capacity: {cpu: 1}
  pools:
    - {name: a, servers: ["http://127.0.0.1:4646"]}
    - {name: b, servers: ["http://127.0.0.1:4646"], token: hunter2}
`})
	_, err := config.Load(config.Sources{Files: []string{filepath.Join(dir, "cede.yaml")}})
	want := "member.pools: number 2: token: secrets are not allowed in configuration files: use file:PATH"
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v, want %s", err, want)
	}
}
