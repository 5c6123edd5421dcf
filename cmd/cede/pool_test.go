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

	"github.com/cede-scheduler/cede/sdk/client"
)

// Servers of several processes on loopback.

// poolServer is one server, in as many lives as a test gives it.
type poolServer struct {
	p                 *processPool
	name              string
	http, rpc, gossip string // HOST:PORT
	cmd               *exec.Cmd
	log               said
	ended             chan struct{}
	c                 *client.Client // of this server alone
	more              string         // of its configuration
	raft              string         // of that, within server.raft
	program           string         // "": this release
	alone             bool           // it begins a cluster by itself
}

type processPool struct {
	t       *testing.T
	dir     string
	servers []*poolServer
	c       *client.Client // of all

	ttl, grace time.Duration // of nodes; 0: 10 s

	// Where processes have namespaces of their own:
	net     processNet
	program string // to run there

	// Where servers know each other by certificates and a key of gossip:
	authority *testAuthority // nil: they do not
	key       string
}

// processNet runs programs on other hosts.
type processNet interface {
	command(host, program string) *exec.Cmd
	add(host string) (address string)
}

// clientOf is a configuration for servers at HOST:PORT.
func (p *processPool) clientOf(servers ...string) client.Config {
	conf := client.Config{Address: strings.Join(p.urls(servers...), ",")}
	if p.authority != nil {
		conf.CACert = p.authority.ca()
	}
	return conf
}

func (p *processPool) urls(servers ...string) (list []string) {
	scheme := "http://"
	if p.authority != nil {
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

// freePort is an address of loopback that was free a moment ago, for packets too, and
// at which no system picks the ports of outgoing connections: a server comes back to
// it. No two calls give the same: nobody listens yet at what was given before.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if _, taken := portsGiven.LoadOrStore(addr, true); !taken && isFree(addr) {
			return addr
		}
	}
	t.Fatal("no port of 100 is free")
	return ""
}

var portsGiven sync.Map // the addresses that freePort gave, or found taken

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

// newProcessPool is three servers that are not started yet.
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

// dial makes the client of all servers.
func (p *processPool) dial() {
	p.t.Helper()
	conf := p.clientOf(p.addresses()...)
	conf.Retries, conf.RetryDelay = 40, 20*time.Millisecond
	c, err := client.New(conf)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(c.Close)
	p.c = c
}

func (p *processPool) run(name, program, conf string, log *said) (*exec.Cmd, chan struct{}) {
	p.t.Helper()
	file := filepath.Join(p.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		p.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(p.t.Context(), cmp.Or(program, self))
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
		_ = cmd.Wait() // how it ended is for those who want to know
		close(ended)
	}()
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, unless the test failed or left it
		<-ended
		if p.t.Failed() {
			p.t.Logf("%s said:\n%s", name, tail(log.String(), 6000))
		}
	})
	return cmd, ended
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// start starts a server.
func (s *poolServer) start() {
	s.p.t.Helper()
	founders := "bootstrap_expect: 1"
	if !s.alone {
		var join []string
		for _, o := range s.p.servers {
			join = append(join, o.gossip)
		}
		founders = fmt.Sprintf(`bootstrap_expect: 3, join: ["%s"]`, strings.Join(join, `","`))
	}
	s.cmd, s.ended = s.p.run(s.name, s.program, fmt.Sprintf(`
name: %s
data_dir: %s
listen: {http: "%s", rpc: "%s", gossip: "%s", metrics: ""}
server: {enabled: true, workers: 2, %s, heartbeat: {ttl: %v, grace: %v}, raft: {%s}}
limits: {rate: 0}
%s`, s.name, filepath.Join(s.p.dir, s.name), s.http, s.rpc, s.gossip, founders,
		cmp.Or(s.p.ttl, 10*time.Second), cmp.Or(s.p.grace, 10*time.Second), s.raft, s.more), &s.log)
	conf := s.p.clientOf(s.http)
	conf.Retries = -1
	c, err := client.New(conf)
	if err != nil {
		s.p.t.Fatal(err)
	}
	s.c = c
}

// kill ends a server as a power cut does.
func (s *poolServer) kill() {
	s.p.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.p.t.Fatal(err)
	}
	<-s.ended
	s.c.Close()
}

// status is how replication stands on a server, with the hash of its state.
func (s *poolServer) status() (st client.RaftStatus, err error) {
	if s.c == nil {
		return st, errors.New("it was never started")
	}
	ctx, cancel := context.WithTimeout(s.p.t.Context(), 5*time.Second)
	defer cancel()
	told, err := s.c.Operator().RaftStatusWithHash(ctx)
	if err != nil {
		return st, err
	}
	return *told, nil
}

// leader waits for a server that leads, and that says so itself.
func (p *processPool) leader() *poolServer {
	p.t.Helper()
	var lead *poolServer
	eventually(p.t, "somebody leads", func() bool {
		for _, s := range p.servers {
			if st, err := s.status(); err == nil && st.State == "Leader" && s.ready() {
				lead = s
				return true
			}
		}
		return false
	})
	return lead
}

func (s *poolServer) ready() bool {
	ctx, cancel := context.WithTimeout(s.p.t.Context(), 5*time.Second)
	defer cancel()
	h, err := s.c.Status().Health(ctx)
	return err == nil && h.OK
}

// node starts an agent, and waits until servers know it.
func (p *processPool) node(name string) *exec.Cmd {
	p.t.Helper()
	listen, tls := "127.0.0.1:0", ""
	if p.net != nil {
		host := p.net.add(name)
		listen, tls = host+":4646", tlsOf(p.authority, name, host)
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
%s`, name, filepath.Join(p.dir, name), listen, strings.Join(p.urls(p.addresses()...), `","`), tls), &said{})
	eventually(p.t, "the node is ready", func() bool {
		list, _, err := p.c.Nodes().List(p.t.Context(), nil)
		return err == nil && slices.ContainsFunc(list, func(n *client.NodeStub) bool { return n.Name == name && n.Status == "ready" })
	})
	return cmd
}

func simJob(id string) *client.Job {
	count, cpu, memory, priority := 2, 10, 10, 50
	return &client.Job{ID: id, Type: "service", Priority: &priority, TaskGroups: []*client.TaskGroup{{Name: "g", Count: &count, Tasks: []*client.Task{{
		Name: "main", Driver: "sim", Resources: &client.Resources{CPU: &cpu, MemoryMB: &memory},
	}}}}}
}

// poolLoad registers jobs until it is told to stop, and keeps who was acknowledged.
type poolLoad struct {
	mu    sync.Mutex
	acked []string
	group sync.WaitGroup
	stop  context.CancelFunc
}

func (p *processPool) load(writers int) *poolLoad {
	ctx, stop := context.WithCancel(p.t.Context())
	l := &poolLoad{stop: stop}
	for w := range writers {
		l.group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("job-%d-%d", w, i)
				if _, err := p.c.Jobs().Register(ctx, simJob(id), nil); err != nil {
					continue // nobody promised anything
				}
				l.mu.Lock()
				l.acked = append(l.acked, id)
				l.mu.Unlock()
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

// A server of three is killed while it leads and jobs come in, another one starts
// late, and the killed one comes back at other addresses: what was acknowledged is
// there and runs, every evaluation ends, and the servers agree to the bit.
func TestPool_LosesItsLeaderUnderLoad(t *testing.T) {
	p := newProcessPool(t)
	p.servers[0].start()
	p.servers[1].start()
	eventually(t, "two of three know each other", func() bool {
		m, err := p.servers[1].c.Status().Members(t.Context())
		return err == nil && len(m.Members) == 2
	})
	if leader, err := p.servers[0].c.Status().Leader(t.Context()); err == nil && leader != "" {
		t.Errorf("%s leads, with a server missing", leader)
	}
	p.servers[2].start()
	lead := p.leader()
	p.node("n1")
	l := p.load(4)
	eventually(t, "jobs are taken", func() bool { return l.count() > 100 })

	killed := time.Now()
	lead.kill()
	before := l.count()
	t.Logf("leader killed under load of 4 writers: the first write was committed after %v", p.firstWrite(lead, killed))
	eventually(t, "jobs are taken again", func() bool { return l.count() > before+50 })

	// It comes back elsewhere.
	lead.http, lead.rpc = freePort(t), freePort(t)
	lead.start()
	eventually(t, "the server is back", func() bool {
		st, err := lead.status()
		other, _ := p.leader().status()
		return err == nil && st.State == "Follower" && st.AppliedIndex+100 > other.AppliedIndex
	})
	l.stop()
	l.group.Wait()
	p.settled(append(l.acked, "first"))
}

// firstWrite is how long after a time the first write is committed, by whichever
// server that is left takes it.
func (p *processPool) firstWrite(gone *poolServer, since time.Time) time.Duration {
	p.t.Helper()
	eventually(p.t, "a write is committed", func() bool {
		for _, s := range p.servers {
			if s == gone {
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

// settled is whether every job is there and runs, evaluations have ended, and all
// servers have the same state.
func (p *processPool) settled(jobs []string) {
	p.t.Helper()
	p.dial()
	eventually(p.t, "every evaluation ends", func() bool {
		list, err := everything(p.t.Context(), p.c.Evaluations().List)
		return err == nil && !slices.ContainsFunc(list, func(e *client.Evaluation) bool {
			return e.Status != "complete" && e.Status != "cancelled" && e.Status != "canceled" && e.Status != "failed"
		})
	})
	var running map[string]int
	eventually(p.t, "everything runs", func() bool {
		running = map[string]int{}
		list, err := everything(p.t.Context(), p.c.Allocations().List)
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
			p.t.Errorf("%d instances of job %s run, want 2", running[id], id)
		}
	}
	var hashes []string
	eventually(p.t, "all servers have the same state", func() bool {
		hashes = nil
		for _, s := range p.servers {
			st, err := s.status()
			if err != nil {
				return false
			}
			hashes = append(hashes, fmt.Sprintf("%d %s", st.StateIndex, st.StateHash))
		}
		return len(slices.Compact(slices.Clone(hashes))) == 1
	})
	p.t.Logf("%d jobs acknowledged; every server has %s", len(jobs), hashes[0])
}

// everything reads a list page by page.
func everything[T any](ctx context.Context, list func(context.Context, *client.QueryOptions) ([]T, *client.QueryMeta, error)) (all []T, err error) {
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

// One of three commits nothing by itself, and says so; what it knows it tells.
func TestPool_AMinorityCommitsNothing(t *testing.T) {
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.start()
	}
	lead := p.leader()
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
		t.Fatal("one of three takes a job")
	}
	eventually(t, "who was left alone leads no more", func() bool {
		st, err := lead.status()
		return err == nil && st.State != "Leader"
	})
	_, _, err := lead.c.Jobs().Get(t.Context(), "before", &client.QueryOptions{Consistent: true})
	if !client.HasCode(err, client.CodeNoLeader) && !client.HasCode(err, client.CodeUnavailable) {
		t.Errorf("a consistent read says %v", err)
	}
	if _, _, err := lead.c.Jobs().Get(t.Context(), "before", &client.QueryOptions{Stale: true}); err != nil {
		t.Errorf("a stale read says %v", err)
	}
	for _, s := range p.servers {
		if s != lead {
			s.start()
		}
	}
	p.leader()
	if _, err := p.c.Jobs().Register(t.Context(), simJob("after"), nil); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.servers { // whichever is asked
		if _, _, err := s.c.Jobs().Get(t.Context(), "after", &client.QueryOptions{Consistent: true}); err != nil {
			t.Errorf("%s does not know what was written: %v", s.name, err)
		}
	}
	if _, _, err := p.c.Jobs().Get(t.Context(), "nobody", nil); !client.IsNotFound(err) {
		t.Errorf("a job that is not there: %v", err)
	}
}

// A server that leaves stops by itself and is removed; two that are left go on.
func TestPool_AServerLeaves(t *testing.T) {
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.start()
	}
	lead := p.leader()
	eventually(t, "every server knows what people call the others", func() bool {
		m, err := lead.c.Status().Members(t.Context())
		return err == nil && len(m.Members) == len(p.servers) && !slices.ContainsFunc(p.servers, func(s *poolServer) bool {
			return !slices.ContainsFunc(m.Members, func(m *client.Member) bool { return m.Tags["name"] == s.name })
		})
	})
	if err := lead.c.Operator().Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-lead.ended:
	case <-time.After(patience):
		t.Fatal("a server that left does not stop")
	}
	if code := lead.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ends with code %d", code)
	}
	p.servers = slices.DeleteFunc(p.servers, func(s *poolServer) bool { return s == lead })
	next := p.leader()
	eventually(t, "the server is removed", func() bool {
		st, err := next.status()
		return err == nil && len(st.Servers) == 2
	})
	if _, err := next.c.Jobs().Register(t.Context(), simJob("after"), nil); err != nil {
		t.Error(err)
	}
}

// Where the quorum is lost for good, one server begins again with what it has.
func TestPool_RecoversFromALostQuorum(t *testing.T) {
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.start()
	}
	lead := p.leader()
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
	for _, s := range p.servers { // two of them with empty disks
		s.start()
	}
	eventually(t, "three vote again", func() bool {
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
		eventually(t, "everybody has what was kept", func() bool {
			_, _, err := s.c.Jobs().Get(t.Context(), "kept", &client.QueryOptions{Stale: true})
			return err == nil
		})
	}
}

// cede runs a command.
func cede(t *testing.T, args ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append([]string{"cede"}, args...)
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		err = fmt.Errorf("cede %s: %w", strings.Join(args, " "), err)
	}
	return string(out), err
}
