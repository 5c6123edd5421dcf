package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cedetest"
	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// This file starts pools of servers as processes on loopback addresses.

// A poolServer is one server of a pool. It may be killed and started again.
type poolServer struct {
	p                 *processPool
	name              string
	http, rpc, gossip string // HOST:PORT
	cmd               *exec.Cmd
	log               outputBuffer
	exited            chan struct{}
	c                 *client.Client // uses only this server
	extraConfig       string         // YAML appended to the configuration
	raftConfig        string         // YAML of server.raft
	program           string         // "" for the test binary
	standalone        bool           // bootstraps a cluster of its own
}

type processPool struct {
	t       *testing.T
	dir     string
	servers []*poolServer
	c       *client.Client // uses all servers

	ttl, grace time.Duration // of heartbeats; 0 means 10 s

	// Set if the processes run in network namespaces:
	net     processNet
	program string // path of the program in the namespaces

	// Set if TLS and gossip encryption are enabled:
	ca        *testAuthority
	gossipKey string
}

// A processNet runs programs on other hosts.
type processNet interface {
	command(host, program string) *exec.Cmd
	add(host string) (address string)
}

// clientConfig returns the configuration of a client for servers at HOST:PORT.
func (p *processPool) clientConfig(servers ...string) client.Config {
	conf := client.Config{Address: strings.Join(p.urls(servers...), ",")}
	if p.ca != nil {
		conf.CACert = p.ca.caFile()
	}
	return conf
}

// urls returns the URLs of servers at HOST:PORT, with HTTPS if TLS is enabled.
func (p *processPool) urls(servers ...string) (list []string) {
	scheme := "http://"
	if p.ca != nil {
		scheme = "https://"
	}
	for _, s := range servers {
		list = append(list, scheme+s)
	}
	return list
}

func (p *processPool) addresses() (list []string) {
	for _, s := range p.servers {
		list = append(list, s.http)
	}
	return list
}

// freePort returns a loopback address whose port is free for TCP and UDP and outside the
// ephemeral range, so that a server can restart with it. It returns no address twice,
// because a previous one may not be in use yet.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if _, taken := usedPorts.LoadOrStore(addr, true); !taken && isFree(addr) {
			return addr
		}
	}
	t.Fatal("found no free port in 100 attempts")
	return ""
}

var usedPorts sync.Map // addresses returned by freePort or found in use

// isFree reports whether an address is free for TCP and UDP.
func isFree(addr string) bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = l.Close() }()
	p, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	return p.Close() == nil
}

// newProcessPool returns a pool of three servers that are not started.
func newProcessPool(t *testing.T) *processPool {
	t.Helper()
	p := &processPool{t: t, dir: t.TempDir()}
	for i := range 3 {
		p.servers = append(p.servers, &poolServer{
			p: p, name: fmt.Sprintf("s%d", i+1), http: freePort(t), rpc: freePort(t), gossip: freePort(t),
		})
	}
	p.dial()
	return p
}

// dial replaces the client of all servers by a new one.
func (p *processPool) dial() {
	p.t.Helper()
	conf := p.clientConfig(p.addresses()...)
	conf.Retries, conf.RetryDelay = 40, 20*time.Millisecond
	c, err := client.New(conf)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(c.Close)
	p.c = c
}

// run starts an agent with a configuration. The returned channel is closed when it exits.
func (p *processPool) run(name, program, conf string, log *outputBuffer) (*exec.Cmd, chan struct{}) {
	p.t.Helper()
	file := filepath.Join(p.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(p.t.Context(), cmp.Or(program, cedetest.Program(p.t)))
	cmd.Args = []string{"cede"}
	if p.net != nil {
		cmd = p.net.command(name, p.program)
	}
	cmd.Args = append(cmd.Args, "agent", "--config", file)
	cmd.Env = environ("TMPDIR=" + p.dir)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the exit code is in cmd.ProcessState
		close(ended)
	}()
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if the process has exited
		<-ended
		if p.t.Failed() {
			p.t.Logf("output of %s:\n%s", name, tail(log.String(), 6000))
		}
	})
	return cmd, ended
}

// tail returns the last n bytes of a text.
func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// start starts the server process without waiting until it is ready.
func (s *poolServer) start() {
	s.p.t.Helper()
	bootstrap := "bootstrap_expect: 1"
	if !s.standalone {
		var join []string
		for _, o := range s.p.servers {
			join = append(join, o.gossip)
		}
		bootstrap = fmt.Sprintf(`bootstrap_expect: 3, join: ["%s"]`, strings.Join(join, `","`))
	}
	s.cmd, s.exited = s.p.run(s.name, s.program, fmt.Sprintf(`
name: %s
data_dir: %s
listen: {http: "%s", rpc: "%s", gossip: "%s", metrics: ""}
server: {enabled: true, workers: 2, %s, heartbeat: {ttl: %v, grace: %v}, raft: {%s}}
limits: {rate: 0}
%s`, s.name, filepath.Join(s.p.dir, s.name), s.http, s.rpc, s.gossip, bootstrap,
		cmp.Or(s.p.ttl, 10*time.Second), cmp.Or(s.p.grace, 10*time.Second), s.raftConfig, s.extraConfig), &s.log)
	conf := s.p.clientConfig(s.http)
	conf.Retries = -1
	c, err := client.New(conf)
	if err != nil {
		s.p.t.Fatal(err)
	}
	s.c = c
}

// kill sends SIGKILL and waits until the process has exited.
func (s *poolServer) kill() {
	s.p.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.p.t.Fatal(err)
	}
	<-s.exited
	s.c.Close()
}

// status returns the replication status of a server.
func (s *poolServer) status() (client.RaftStatus, error) {
	return s.statusOf(client.Operator.RaftStatus)
}

// statusWithHash returns the replication status with the hash of the state. The server walks
// its whole state, so that loops which wait for an election use status.
func (s *poolServer) statusWithHash() (client.RaftStatus, error) {
	return s.statusOf(client.Operator.RaftStatusWithHash)
}

func (s *poolServer) statusOf(read func(client.Operator, context.Context) (*client.RaftStatus, error)) (st client.RaftStatus, err error) {
	if s.c == nil {
		return st, errors.New("server was never started")
	}
	ctx, cancel := context.WithTimeout(s.p.t.Context(), 5*time.Second)
	defer cancel()
	current, err := read(s.c.Operator(), ctx)
	if err != nil {
		return st, err
	}
	return *current, nil
}

// waitLeader waits until a server leads and is ready, and returns it.
func (p *processPool) waitLeader() *poolServer {
	p.t.Helper()
	var lead *poolServer
	eventually(p.t, "a server leads", func() bool {
		for _, s := range p.servers {
			if st, err := s.status(); err == nil && st.State == "Leader" && s.isReady() {
				lead = s
				return true
			}
		}
		return false
	})
	return lead
}

// isReady reports whether all health checks of a server pass.
func (s *poolServer) isReady() bool {
	ctx, cancel := context.WithTimeout(s.p.t.Context(), 5*time.Second)
	defer cancel()
	h, err := s.c.Status().Health(ctx)
	return err == nil && h.OK
}

// startNode starts a client node and waits until it is ready.
func (p *processPool) startNode(name string) *exec.Cmd {
	p.t.Helper()
	listen, tls := "127.0.0.1:0", ""
	if p.net != nil {
		host := p.net.add(name)
		listen, tls = host+":4646", tlsConfig(p.ca, name, host)
	}
	cmd, _ := p.run(name, "", fmt.Sprintf(`
name: %s
data_dir: %s
listen: {http: "%s", metrics: ""}
client:
  enabled: true
  servers: ["%s"]
  resources: {cpu: 1000000, memory: 1000000, disk: 1000000}
  drivers: {sim: {enabled: true}, exec: {enabled: false}}
  pressure: {enabled: false}
%s`, name, filepath.Join(p.dir, name), listen, strings.Join(p.urls(p.addresses()...), `","`), tls), &outputBuffer{})
	eventually(p.t, "the node is ready", func() bool {
		list, _, err := p.c.Nodes().List(p.t.Context(), nil)
		return err == nil && slices.ContainsFunc(list, func(n *client.NodeStub) bool { return n.Name == name && n.Status == "ready" })
	})
	return cmd
}

// simJob returns a service job with two allocations of the sim driver.
func simJob(id string) *client.Job {
	count, cpu, memory, priority := 2, 10, 10, 50
	return &client.Job{ID: id, Type: "service", Priority: &priority, TaskGroups: []*client.TaskGroup{{Name: "g", Count: &count, Tasks: []*client.Task{{
		Name: "main", Driver: "sim", Resources: &client.Resources{CPU: &cpu, MemoryMB: &memory},
	}}}}}
}

// A poolLoad registers jobs until it is stopped and records the acknowledged ones.
type poolLoad struct {
	mu    sync.Mutex
	acked []string
	wg    sync.WaitGroup
	stop  context.CancelFunc
}

// startLoad starts the given number of concurrent writers.
func (p *processPool) startLoad(writers int) *poolLoad {
	ctx, stop := context.WithCancel(p.t.Context())
	l := &poolLoad{stop: stop}
	for w := range writers {
		l.wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("job-%d-%d", w, i)
				_, err := p.c.Jobs().Register(ctx, simJob(id), nil)
				if err == nil {
					l.mu.Lock()
					l.acked = append(l.acked, id)
					l.mu.Unlock()
				}
				if err != nil || !soak.Full() { // elections and restarts last long enough for many jobs
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	return l
}

func (l *poolLoad) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// The third server starts late, the leader is killed under load, and it restarts with other
// addresses. Acknowledged jobs survive and run, every evaluation ends, and the states of
// all servers are identical.
func TestPool_SurvivesLeaderLossUnderLoad(t *testing.T) {
	t.Parallel()
	p := newProcessPool(t)
	p.servers[0].start()
	p.servers[1].start()
	eventually(t, "two of three servers see each other", func() bool {
		m, err := p.servers[1].c.Status().Members(t.Context())
		return err == nil && len(m.Members) == 2
	})
	if leader, err := p.servers[0].c.Status().Leader(t.Context()); err == nil && leader != "" {
		t.Errorf("%s leads before the third server has joined", leader)
	}
	p.servers[2].start()
	lead := p.waitLeader()
	p.startNode("n1")
	l := p.startLoad(4)
	enough := 100
	if soak.Quick() {
		enough = 40
	}
	eventually(t, "jobs are accepted", func() bool { return l.count() > enough })

	killed := time.Now()
	lead.kill()
	before := l.count()
	t.Logf("leader killed under load of 4 writers: first write committed after %v", p.timeToFirstWrite(lead, killed))
	eventually(t, "jobs are accepted after the failover", func() bool { return l.count() > before+enough/2 })

	// The killed server restarts with other addresses.
	lead.http, lead.rpc = freePort(t), freePort(t)
	lead.start()
	p.waitCaughtUp(lead)
	l.stop()
	l.wg.Wait()
	p.checkConverged(append(l.acked, "first"))
}

// timeToFirstWrite returns the time since a given moment until one of the remaining servers
// commits a write.
func (p *processPool) timeToFirstWrite(failed *poolServer, since time.Time) time.Duration {
	p.t.Helper()
	eventually(p.t, "a write is committed", func() bool {
		for _, s := range p.servers {
			if s == failed {
				continue
			}
			ctx, cancel := context.WithTimeout(p.t.Context(), time.Second)
			_, err := s.c.Jobs().Register(ctx, simJob("first"), nil)
			cancel()
			if err == nil {
				return true
			}
		}
		return false
	})
	return time.Since(since)
}

// checkConverged waits until every evaluation has ended, every given job runs, and the
// states of all servers are identical.
func (p *processPool) checkConverged(jobs []string) {
	p.t.Helper()
	p.dial()
	eventually(p.t, "every evaluation ends", func() bool {
		list, err := listAll(p.t.Context(), p.c.Evaluations().List)
		return err == nil && !slices.ContainsFunc(list, func(e *client.Evaluation) bool {
			return e.Status != "complete" && e.Status != "cancelled" && e.Status != "canceled" && e.Status != "failed"
		})
	})
	var running map[string]int
	eventually(p.t, "every job runs", func() bool {
		running = map[string]int{}
		list, err := listAll(p.t.Context(), p.c.Allocations().List)
		if err != nil {
			return false
		}
		for _, a := range list {
			if a.DesiredStatus == "run" && a.ClientStatus == "running" {
				running[a.JobID]++
			}
		}
		return !slices.ContainsFunc(jobs, func(id string) bool { return running[id] < 2 })
	})
	for _, id := range jobs {
		if running[id] != 2 {
			p.t.Errorf("job %s has %d running allocations, want 2", id, running[id])
		}
	}
	p.waitSameState()
	p.t.Logf("%d acknowledged jobs run", len(jobs))
}

// listAll returns the elements of all pages of a list.
func listAll[T any](ctx context.Context, list func(context.Context, *client.QueryOptions) ([]T, *client.QueryMeta, error)) (all []T, err error) {
	q := &client.QueryOptions{PerPage: 1000}
	for {
		page, meta, err := list(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if meta.NextToken == "" {
			return all, nil
		}
		q.NextToken = meta.NextToken
	}
}

// A single server of three rejects writes and consistent reads and serves stale reads.
func TestPool_MinorityRejectsWrites(t *testing.T) {
	t.Parallel()
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.start()
	}
	lead := p.waitLeader()
	if _, err := lead.c.Jobs().Register(t.Context(), simJob("before"), nil); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.servers {
		if s != lead {
			s.kill()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := lead.c.Jobs().Register(ctx, simJob("alone"), nil); err == nil {
		t.Fatal("a server without quorum acknowledged a write")
	}
	eventually(t, "the server without quorum has stepped down", func() bool {
		st, err := lead.status()
		return err == nil && st.State != "Leader"
	})
	_, _, err := lead.c.Jobs().Get(t.Context(), "before", &client.QueryOptions{Consistent: true})
	if !client.HasCode(err, client.CodeNoLeader) && !client.HasCode(err, client.CodeUnavailable) {
		t.Errorf("consistent read without quorum returned %v", err)
	}
	if _, _, err := lead.c.Jobs().Get(t.Context(), "before", &client.QueryOptions{Stale: true}); err != nil {
		t.Errorf("stale read without quorum returned %v", err)
	}
	for _, s := range p.servers {
		if s != lead {
			s.start()
		}
	}
	p.waitLeader()
	if _, err := p.c.Jobs().Register(t.Context(), simJob("after"), nil); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.servers {
		if _, _, err := s.c.Jobs().Get(t.Context(), "after", &client.QueryOptions{Consistent: true}); err != nil {
			t.Errorf("consistent read on %s does not return a previous write: %v", s.name, err)
		}
	}
	if _, _, err := p.c.Jobs().Get(t.Context(), "nobody", nil); !client.IsNotFound(err) {
		t.Errorf("read of an unknown job returned %v, want not found", err)
	}
}

// A server that leaves the pool exits and is removed. The other two continue.
func TestPool_RemovesServerThatLeaves(t *testing.T) {
	t.Parallel()
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.start()
	}
	lead := p.waitLeader()
	eventually(t, "the leader has received the names of all members", func() bool {
		m, err := lead.c.Status().Members(t.Context())
		return err == nil && len(m.Members) == len(p.servers) && !slices.ContainsFunc(p.servers, func(s *poolServer) bool {
			return !slices.ContainsFunc(m.Members, func(m *client.Member) bool { return m.Tags["name"] == s.name })
		})
	})
	if err := lead.c.Operator().Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-lead.exited:
	case <-time.After(testTimeout):
		t.Fatal("server did not exit after it left")
	}
	if code := lead.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("server exited with code %d, want 0", code)
	}
	p.servers = slices.DeleteFunc(p.servers, func(s *poolServer) bool { return s == lead })
	next := p.waitLeader()
	eventually(t, "the server is removed", func() bool {
		st, err := next.status()
		return err == nil && len(st.Servers) == 2
	})
	if _, err := next.c.Jobs().Register(t.Context(), simJob("after"), nil); err != nil {
		t.Error(err)
	}
}

// If the quorum is lost permanently, one server can restart the cluster from its data.
func TestPool_RecoversFromLostQuorum(t *testing.T) {
	t.Parallel()
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.start()
	}
	lead := p.waitLeader()
	if _, err := lead.c.Jobs().Register(t.Context(), simJob("kept"), nil); err != nil {
		t.Fatal(err)
	}
	st, err := lead.status()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.servers {
		s.kill()
		if s != lead {
			if err := os.RemoveAll(filepath.Join(p.dir, s.name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	peers := filepath.Join(p.dir, "peers.json")
	if err := os.WriteFile(peers, fmt.Appendf(nil, `[{"id": %q, "address": %q}]`, st.ServerID, lead.rpc), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cede(t, "operator", "raft", "recover", filepath.Join(p.dir, lead.name), "--peers", peers); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, s := range p.servers { // two of them with empty data directories
		s.start()
	}
	eventually(t, "all three servers vote again", func() bool {
		st, err := lead.status()
		if err != nil {
			return false
		}
		votes := 0
		for _, r := range st.Servers {
			if r.Voter {
				votes++
			}
		}
		return votes == 3
	})
	for _, s := range p.servers {
		eventually(t, "every server has the job", func() bool {
			_, _, err := s.c.Jobs().Get(t.Context(), "kept", &client.QueryOptions{Stale: true})
			return err == nil
		})
	}
}

// cede runs a command of the CLI and returns its combined output.
func cede(t testing.TB, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), cedetest.Program(t), args...).CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		err = fmt.Errorf("cede %s: %w", strings.Join(args, " "), err)
	}
	return string(out), err
}
