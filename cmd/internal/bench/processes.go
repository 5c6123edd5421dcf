package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// processes is a pool of servers on loopback, each in a process of its own, so that
// one can be killed.
type processes struct {
	program string
	dir     string
	level   string // level of their log
	server  string // further settings of server, in YAML flow syntax without the braces
	list    []*serverProcess
	c       *client.Client // of all servers
}

// serverProcess is a server of the pool, which may be restarted.
type serverProcess struct {
	of                         *processes
	name                       string
	http, rpc, gossip, metrics string // HOST:PORT
	c                          *client.Client
	cmd                        *exec.Cmd
	ended                      chan struct{}
	output                     processOutput
}

// processOutput holds the last lines of a process, and the times at which given texts
// first appeared.
type processOutput struct {
	mu    sync.Mutex
	lines []string
	at    map[string]time.Time
}

const keptLines = 40

// listen reads lines until the process ends.
func (s *processOutput) listen(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.note(lines.Text(), time.Now())
	}
}

func (s *processOutput) note(line string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) == keptLines {
		s.lines = slices.Delete(s.lines, 0, 1)
	}
	s.lines = append(s.lines, line)
	for what, first := range s.at {
		if first.IsZero() && strings.Contains(line, what) {
			s.at[what] = at
		}
	}
}

// listenFor resets the texts to watch for.
func (s *processOutput) listenFor(what ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = map[string]time.Time{}
	for _, w := range what {
		s.at[w] = time.Time{}
	}
}

// heard returns the time at which a text first appeared, or the zero time.
func (s *processOutput) heard(what string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[what]
}

func (s *processOutput) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// newProcesses returns n servers that are not started yet, in a directory under dir.
func newProcesses(program, dir string, n int) (*processes, error) {
	folder, err := os.MkdirTemp(dir, "cede-bench-")
	if err == nil {
		folder, err = filepath.Abs(folder)
	}
	if err != nil {
		return nil, err
	}
	p := &processes{program: program, dir: folder, level: "info"}
	var urls []string
	for i := range n {
		s := &serverProcess{of: p, name: fmt.Sprintf("s%d", i+1)}
		for _, at := range []*string{&s.http, &s.rpc, &s.gossip, &s.metrics} {
			if *at, err = reservedAddress(); err != nil {
				return nil, errors.Join(err, os.RemoveAll(folder))
			}
		}
		if s.c, err = client.New(client.Config{Address: "http://" + s.http, Retries: -1}); err != nil {
			return nil, errors.Join(err, os.RemoveAll(folder))
		}
		urls = append(urls, "http://"+s.http)
		p.list = append(p.list, s)
	}
	if p.c, err = client.New(client.Config{Address: strings.Join(urls, ",")}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return p, nil
}

// reservedAddress returns a free loopback address outside the range of ephemeral ports, so
// that a restarted server can use it again.
func reservedAddress() (string, error) {
	var err error
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)) //nolint:gosec // a port needs no secure randomness
		var l net.Listener
		if l, err = net.Listen("tcp", addr); err == nil {
			return addr, l.Close()
		}
	}
	return "", fmt.Errorf("no port is free: %w", err)
}

// start starts the server.
func (s *serverProcess) start() error {
	settings := append([]string{"enabled: true"}, s.beginning()...)
	if s.of.server != "" {
		settings = append(settings, s.of.server)
	}
	conf := fmt.Sprintf(`name: %s
data_dir: %q
listen: {http: %q, rpc: %q, gossip: %q, metrics: %q}
log: {level: %s, format: json}
server: {%s}
limits: {rate: 0}
`, s.name, filepath.Join(s.of.dir, s.name), s.http, s.rpc, s.gossip, s.metrics, s.of.level, strings.Join(settings, ", "))
	file := filepath.Join(s.of.dir, s.name+".yaml")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return err
	}
	s.cmd = exec.Command(s.of.program) //nolint:gosec // this program; stop ends it
	s.cmd.Args = []string{"cede", "agent", "--config", file}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		s.output.listen(stderr)
		_ = cmd.Wait() // the exit status is not relevant
	}(s.cmd, s.ended)
	return nil
}

// beginning returns the settings by which a server finds its cluster. The servers
// bootstrap it together. If their number is even, which bootstrap_expect rejects, the
// first one bootstraps it and the others join.
func (s *serverProcess) beginning() []string {
	founders := len(s.of.list)
	if founders%2 == 0 {
		founders = 1
	}
	settings := []string{fmt.Sprintf("bootstrap_expect: %d", founders)}
	if founders == 1 && s == s.of.list[0] {
		return settings
	}
	var join []string
	for _, o := range s.of.list {
		join = append(join, o.gossip)
	}
	return append(settings, fmt.Sprintf(`join: ["%s"]`, strings.Join(join, `","`)))
}

// kill kills the server, as a power failure would, and waits for its exit. Further
// calls have no effect.
func (s *serverProcess) kill() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have exited
	<-s.ended
	s.c.Close()
}

// close stops every server and removes its files.
func (p *processes) close() error {
	for _, s := range p.list {
		s.kill()
	}
	p.c.Close()
	return os.RemoveAll(p.dir)
}

// leader returns the server that leads and is ready, or nil if none does.
func (p *processes) leader(ctx context.Context) *serverProcess {
	for _, s := range p.list {
		st, err := s.c.Operator().RaftStatus(ctx)
		if err != nil || st.State != "Leader" {
			continue
		}
		if h, err := s.c.Status().Health(ctx); err == nil && h.OK {
			return s
		}
	}
	return nil
}

// poolPatience limits each wait for the pool.
const poolPatience = 2 * time.Minute

// await waits until holds returns true, polling at the interval every.
func (p *processes) await(ctx context.Context, what string, every time.Duration, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, poolPatience)
	defer cancel()
	for !holds() {
		select {
		case <-time.After(every):
		case <-ctx.Done():
			var output strings.Builder
			for _, s := range p.list {
				fmt.Fprintf(&output, "\noutput of %s:\n%s", s.name, &s.output)
			}
			return fmt.Errorf("%s: %w%s", what, context.Cause(ctx), &output)
		}
	}
	return nil
}
