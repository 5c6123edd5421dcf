package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/sdk/client"
)

// patience limits waits. It is long, because the machine may be slow and busy.
const patience = 2 * time.Minute

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// logBuffer collects the log of a process.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// loopback returns settings that place every listener on a free port of loopback.
func loopback(more map[string]string) map[string]string {
	flags := map[string]string{"listen.http": "127.0.0.1:0", "listen.rpc": "127.0.0.1:0", "listen.metrics": "127.0.0.1:0"}
	maps.Copy(flags, more)
	return flags
}

func load(t *testing.T, s config.Sources) *config.Loaded {
	t.Helper()
	c, err := config.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// started is a running process of a test.
type started struct {
	*Process
	t   *testing.T
	log *logBuffer
	c   *client.Client
}

func start(t *testing.T, c *config.Loaded, change ...func(*Options)) *started {
	t.Helper()
	log := &logBuffer{}
	o := Options{Config: c, Build: Build{Version: "test"}, Stderr: log, Getenv: func(string) string { return "" }}
	for _, f := range change {
		f(&o)
	}
	p, err := Start(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	s := &started{p, t, log, nil}
	if s.c, err = client.New(client.Config{Address: p.URL()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

// end stops the process. Further calls have no effect.
func (s *started) end() {
	s.t.Helper()
	s.c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		s.t.Errorf("stop: %v\n%s", err, s.log)
	}
}

// job returns a job with one task group of count instances.
func job(id string, priority, count, memory int, driver string, config map[string]any) *client.Job {
	kill := time.Second
	return &client.Job{
		ID: id, Type: "service", Priority: &priority,
		TaskGroups: []*client.TaskGroup{{
			Name: "g", Count: &count,
			Tasks: []*client.Task{{Name: "main", Driver: driver, Config: config, Resources: &client.Resources{MemoryMB: &memory}, KillTimeout: &kill}},
		}},
	}
}

func shell(id string, priority, memory int, script string) *client.Job {
	return job(id, priority, 1, memory, "exec", map[string]any{"command": "/bin/sh", "args": []string{"-c", script}})
}

func (s *started) register(j *client.Job) {
	s.t.Helper()
	if _, err := s.c.Jobs().Register(s.t.Context(), j, nil); err != nil {
		s.t.Fatal(err)
	}
}

// allocs returns the allocations of a job.
func (s *started) allocs(jobID string) []*client.AllocationStub {
	s.t.Helper()
	list, _, err := s.c.Jobs().Allocations(s.t.Context(), jobID, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// await waits until an allocation of the job has this client status, and returns it.
func (s *started) await(jobID, status string) (found *client.AllocationStub) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%s is %s\n%s", jobID, status, s.log), func() bool {
		for _, a := range s.allocs(jobID) {
			if a.ClientStatus == status {
				found = a
				return true
			}
		}
		return false
	})
	return found
}

func (s *started) get(url string) (int, string) {
	s.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode, string(b)
}

// The first steps of a new user: one command, a job that runs, one that evicts it,
// and no files or processes left after the stop.
func TestDev_RunsEvictsAndCleansUp(t *testing.T) {
	t.Parallel()
	s := start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"client.resources.memory": "1000"})}))
	dir := s.dataDir
	s.register(shell("low", 20, 900, `trap "" TERM; echo low is up; while :; do sleep 0.1; done`))
	victim := s.await("low", "running")
	eventually(t, "the task's output is served", func() bool {
		code, text := s.get(s.URL() + "/v1/allocation/" + victim.ID[:8] + "/logs?stream=stdout")
		return code == http.StatusOK && text == "low is up\n"
	})
	if text := s.nomadLogs(victim.ID); text != "low is up\n" {
		t.Errorf("Nomad's client reads %q", text)
	}
	s.register(shell("high", 80, 900, `echo high is up; while :; do sleep 0.1; done`))
	s.await("high", "running")
	s.await("low", "complete")
	victimNow, _, err := s.c.Allocations().Get(t.Context(), victim.ID, nil)
	if err != nil || victimNow.DesiredStatus != "evict" {
		t.Errorf("victim is %+v, %v", victimNow, err)
	}
	code, metrics := s.get("http://" + s.MetricsAddress() + "/metrics")
	for _, name := range []string{`cede_build_info{`, `cede_node_allocs{status="running"} 1`, "cede_config_last_reload_successful 1", "cede_raft_is_leader 1", `cede_storage_size_bytes{part="log"}`} {
		if code != http.StatusOK || !strings.Contains(metrics, name) {
			t.Errorf("metrics lack %s", name)
		}
	}
	s.end()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory still exists: %v", err)
	}
	if left := processesOf(dir); len(left) > 0 {
		t.Errorf("orphans: %v", left)
	}
}

// nomadLogs returns the output of an allocation that nomad alloc logs prints.
func (s *started) nomadLogs(id string) (text string) {
	s.t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c, err := nomad.NewClient(&nomad.Config{Address: s.URL(), HttpClient: &http.Client{Transport: transport}})
	if err != nil {
		s.t.Fatal(err)
	}
	alloc, _, err := c.Allocations().Info(id, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	frames, errs := c.AllocFS().Logs(alloc, false, "main", "stdout", "start", 0, nil, nil)
	for frames != nil {
		select {
		case frame, more := <-frames:
			if !more {
				return text
			}
			text += string(frame.Data)
		case err := <-errs:
			s.t.Fatal(err)
		}
	}
	s.t.Fatal(<-errs)
	return ""
}

// processesOf lists the processes whose task directory is below dir.
func processesOf(dir string) (list []string) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environs {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte("CEDE_TASK_FOLDER="+dir+"/")) {
			list = append(list, file)
		}
	}
	return list
}

// durable writes a configuration file for a server and a node with a data directory.
func durable(t *testing.T, more string) (file, dataDir string) {
	t.Helper()
	dir := t.TempDir()
	dataDir = filepath.Join(dir, "data")
	file = filepath.Join(dir, "cede.yaml")
	rewrite(t, file, dataDir, more)
	t.Cleanup(func() {
		if left := processesOf(dataDir); len(left) > 0 {
			t.Errorf("orphans: %v", left)
		}
	})
	return file, dataDir
}

func rewrite(t *testing.T, file, dataDir, more string) {
	t.Helper()
	text := fmt.Sprintf(`data_dir: %s
listen: {http: "127.0.0.1:0", rpc: "127.0.0.1:0", metrics: "127.0.0.1:0"}
server: {enabled: true, workers: 1, raft: {heartbeat: 50ms, election: 50ms, lease: 50ms}}
client: {enabled: true, resources: {memory: 1000}, drivers: {exec: {denied_users: [], user: ""}, sim: {enabled: true}}}
%s`, dataDir, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// asSelf runs tasks as the user that runs the test.
var asSelf = []string{"CEDE_CLIENT__DRIVERS__EXEC__USER=" + userName()}

func userName() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return ""
}

func TestDurable_AllocationsAndStateSurviveRestart(t *testing.T) {
	t.Parallel()
	file, _ := durable(t, "")
	c := load(t, config.Sources{Files: []string{file}, Environ: asSelf})
	s := start(t, c)
	s.register(shell("web", 50, 100, `echo up; while :; do sleep 0.1; done`))
	before := s.await("web", "running")
	node := s.NodeID()
	s.end()

	s = start(t, c)
	if s.NodeID() != node {
		t.Error("the node has another ID")
	}
	s.register(job("other", 50, 3, 10, "sim", nil))
	s.await("other", "running")
	list := s.allocs("web")
	if len(list) != 1 || list[0].ID != before.ID || list[0].ClientStatus != "running" {
		t.Errorf("after the restart: %+v", list)
	}
	eventually(t, "the warning is logged once", func() bool {
		_, text := s.get(s.URL() + "/v1/allocation/" + before.ID + "/logs")
		return text == "up\n"
	})
	if _, err := s.c.Jobs().Stop(t.Context(), "web", nil); err != nil {
		t.Fatal(err)
	}
	s.await("web", "complete")
}

// Only a server of a pool reports delays that repeat elections.
func TestWatchedElection_IsThatOfPools(t *testing.T) {
	c := config.Config{Server: config.Server{Enabled: true, Raft: config.Raft{Heartbeat: 2 * time.Second, Election: 3 * time.Second}}}
	if got := watchedElection(&c); got != 0 {
		t.Errorf("a server without gossip watches elections of %v", got)
	}
	c.Listen.Gossip = "127.0.0.1:7946"
	if got := watchedElection(&c); got != 2*time.Second {
		t.Errorf("a server of a pool watches elections of %v", got)
	}
	if c.Dev = true; watchedElection(&c) != 0 {
		t.Error("a development server watches elections")
	}
}

func TestReload_AppliesReloadableKeysAndReportsOthers(t *testing.T) {
	t.Parallel()
	file, dataDir := durable(t, "log: {level: warn}\n")
	s := start(t, load(t, config.Sources{Files: []string{file}, Environ: asSelf}))
	rewrite(t, file, dataDir, "log: {level: debug}\nlimits: {rate: 1000}\n")
	changed, err := s.c.Operator().Reload(t.Context())
	if err != nil || !slices.Equal(changed.Changed, []string{"limits.rate", "log.level"}) {
		t.Errorf("changed %+v, %v", changed, err)
	}
	if s.level.Level().String() != "DEBUG" {
		t.Errorf("log level is %s", s.level.Level())
	}
	rewrite(t, file, dataDir, "name: other\nlog: {level: error}\n")
	if _, err := s.c.Operator().Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "name cannot change while the process runs") {
		t.Errorf("change of a key that requires a restart: %v", err)
	}
	if s.level.Level().String() != "DEBUG" {
		t.Errorf("log level after a rejected reload is %s", s.level.Level())
	}
	rewrite(t, file, dataDir, "log: {levels: error}\n")
	if _, err := s.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "did you mean log.level?") {
		t.Errorf("reload of an invalid file: %v", err)
	}
	if _, metrics := s.get("http://" + s.MetricsAddress() + "/metrics"); !strings.Contains(metrics, "cede_config_last_reload_successful 0") {
		t.Error("the gauge does not report the failed reload")
	}
}

func TestStart_ReportsErrorsAndCleansUp(t *testing.T) {
	t.Parallel()
	file, _ := durable(t, "tls: {cert: /no/such.pem, key: /no/such.key}\n")
	_, err := Start(t.Context(), Options{Config: load(t, config.Sources{Files: []string{file}}), Stderr: io.Discard, Getenv: os.Getenv})
	if err == nil || !strings.Contains(err.Error(), "tls.cert /no/such.pem") {
		t.Errorf("got %v", err)
	}
	file, _ = durable(t, "")
	s := start(t, load(t, config.Sources{Files: []string{file}, Environ: asSelf}))
	_, err = Start(t.Context(), Options{Config: s.config, Stderr: io.Discard, Getenv: os.Getenv})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second process on one data directory: %v", err)
	}
}

func TestACL_FirstTokenAndNode(t *testing.T) {
	t.Parallel()
	file, dataDir := durable(t, "acl: {enabled: true}\n")
	c := load(t, config.Sources{Files: []string{file}, Environ: asSelf})
	s := start(t, c)
	if _, _, err := s.c.Nodes().List(t.Context(), nil); !client.HasCode(err, client.CodeUnauthenticated) {
		t.Fatalf("without a token: %v", err)
	}
	path := filepath.Join(dataDir, "bootstrap.token")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("file of the first token: %v, %v", info, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(b))
	if strings.Contains(s.log.String(), secret) {
		t.Error("the log contains the secret")
	}
	if s.c, err = client.New(client.Config{Address: s.URL(), Token: secret}); err != nil {
		t.Fatal(err)
	}
	s.register(shell("web", 50, 100, `echo secret; while :; do sleep 0.1; done`))
	a := s.await("web", "running") // so that the node has its own token
	read := func(token string) int {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/v1/allocation/"+a.ID+"/logs", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		return resp.StatusCode
	}
	if got := []int{read(""), read("wrong"), read(secret)}; !slices.Equal(got, []int{401, 401, 200}) {
		t.Errorf("reading logs without a token, with a wrong one, with the first: %v", got)
	}
	if _, err := s.c.Jobs().Stop(t.Context(), "web", nil); err != nil {
		t.Fatal(err)
	}
	s.await("web", "complete")
	s.end()
	// A second run creates no second token, except in place of a damaged one of the node.
	own := filepath.Join(dataDir, "client", "token")
	token, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, make([]byte, len(token)), 0o600); err != nil {
		t.Fatal(err)
	}
	s = start(t, c)
	if after, _ := os.ReadFile(path); !bytes.Equal(b, after) {
		t.Error("the file of the first token was written again")
	}
	if after, _ := os.ReadFile(own); len(after) != len(token) || after[0] == 0 || !strings.Contains(s.log.String(), own) {
		t.Errorf("the damaged token of the node became %q\n%s", after, s.log)
	}
}

// A node may advertise an address at which a server answers instead.
func TestLogs_NodeUnreachable(t *testing.T) {
	t.Parallel()
	s := start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"client.enabled": "false"})}))
	secret := "a-secret-of-the-node"
	_, err := s.c.NodeAgent().Register(t.Context(), &client.Node{
		ID: "11111111-1111-4111-8111-111111111111", Name: "n", Datacenter: "dc1",
		HTTPAddr: strings.TrimPrefix(s.URL(), "http://"), Capacity: map[string]int64{"cpu": 1000, "memory": 1000},
	}, secret)
	if err != nil {
		t.Fatal(err)
	}
	s.register(job("web", 50, 1, 10, "sim", nil))
	eventually(t, "the job is placed", func() bool { return len(s.allocs("web")) == 1 })
	id := s.allocs("web")[0].ID
	if code, text := s.get(s.URL() + "/v1/allocation/" + id + "/logs"); code != http.StatusNotFound || !strings.Contains(text, "a server responded") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := s.get(s.URL() + "/v1/allocation/none/logs"); code != http.StatusNotFound || !strings.Contains(text, "not found") {
		t.Errorf("%d %s", code, text)
	}
}

func TestHealth_IsServed(t *testing.T) {
	t.Parallel()
	s := start(t, load(t, config.Sources{Dev: true, Flags: loopback(nil)}))
	code, body := s.get(s.URL() + "/readyz?verbose")
	var h client.Health
	if err := json.Unmarshal([]byte(body), &h); code != http.StatusOK || err != nil || !h.OK || len(h.Checks) == 0 {
		t.Errorf("%d %s", code, body)
	}
}

// metric returns the value of the metric with this name, labels included.
func (s *started) metric(name string) float64 {
	s.t.Helper()
	_, page := s.get("http://" + s.MetricsAddress() + "/metrics")
	for line := range strings.Lines(page) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return v
		}
	}
	s.t.Fatalf("%s is not registered", name)
	return 0
}
