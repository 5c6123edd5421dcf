package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cedetest"
	"github.com/cede-scheduler/cede/sdk/client"
)

// A serverProcess is a server with a data directory that runs as a process of its own. It
// can be stopped, killed and started again.
type serverProcess struct {
	t          testing.TB
	dir        string // parent of all files
	dataDir    string
	configFile string
	url        string
	token      string
	process    syscall.SysProcAttr // user and namespaces; zero: those of the test
	program    string              // "" for the installed cede
	env        []string            // in addition to that of the test

	cmd       *exec.Cmd
	stderr    *outputBuffer
	allOutput *outputBuffer // of all processes since newServer
	exited    chan struct{}
	result    error
}

// An outputBuffer collects the output of a running process. It is safe for concurrent use.
type outputBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *outputBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

// filtered returns the output without request and Raft log lines.
func (s *outputBuffer) filtered() string {
	var b strings.Builder
	for line := range strings.Lines(s.String()) {
		if !strings.Contains(line, `"msg":"request"`) && !strings.Contains(line, `"msg":"raft"`) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func (s *outputBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// loopbackHost returns a random loopback address that no other test is likely to use, so
// that a server can restart with the same address.
func loopbackHost() string {
	return fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(64), rand.IntN(256), 1+rand.IntN(250))
}

// newServer writes the configuration of a server, including extra YAML, and starts nothing.
// If dataDir is empty the data directory is in a temporary folder.
func newServer(t testing.TB, dataDir, more string) *serverProcess {
	t.Helper()
	d := &serverProcess{t: t, dir: t.TempDir(), dataDir: dataDir, allOutput: &outputBuffer{}}
	if dataDir == "" {
		d.dataDir = filepath.Join(d.dir, "data")
	}
	d.configFile = filepath.Join(d.dir, "cede.yaml")
	d.configure(more)
	t.Cleanup(func() { d.kill() })
	return d
}

// configure writes the configuration file with a new address.
func (d *serverProcess) configure(more string) {
	d.t.Helper()
	host := loopbackHost()
	d.url = "http://" + host + ":4646"
	text := fmt.Sprintf(`data_dir: %q
listen: {http: "%s:4646", rpc: "%s:4647", metrics: ""}
limits: {rate: 0}
%s
`, d.dataDir, host, host, more)
	if err := os.WriteFile(d.configFile, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// envWriteDeadline names the variable of the time after which a disk counts as hung.
const envWriteDeadline = "CEDE_SERVER__WRITE_DEADLINE"

// environ returns the environment of a server. It has a long write deadline by default, so
// that a busy disk does not count as hung.
func environ(more ...string) []string {
	return slices.Concat([]string{envWriteDeadline + "=2m"}, os.Environ(), more)
}

// launch starts the process without waiting until the server is ready.
func (d *serverProcess) launch() {
	d.t.Helper()
	d.cmd = exec.Command(cmp.Or(d.program, cedetest.Program(d.t))) // without context: the test decides when the process ends
	d.cmd.Args = []string{"cede", "agent", "-c", d.configFile}
	d.cmd.Env = environ(append(d.env, "TMPDIR="+d.dir)...)
	d.cmd.Dir = d.dir
	d.cmd.SysProcAttr = &d.process
	d.stderr, d.exited = &outputBuffer{}, make(chan struct{})
	d.cmd.Stderr = &tee{d.stderr, d.allOutput}
	if err := d.cmd.Start(); err != nil {
		d.cmd = nil
		d.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		d.result = cmd.Wait()
		close(ended)
	}(d.cmd, d.exited)
}

type tee struct{ a, b *outputBuffer }

func (t *tee) Write(b []byte) (int, error) {
	_, _ = t.a.Write(b)
	return t.b.Write(b)
}

// hasExited reports whether the process has exited.
func (d *serverProcess) hasExited() bool {
	select {
	case <-d.exited:
		return true
	default:
		return false
	}
}

// start starts the process and waits until the server is ready.
func (d *serverProcess) start() {
	d.t.Helper()
	d.launch()
	eventually(d.t, "the server is ready", func() bool {
		if d.hasExited() {
			d.t.Fatalf("server exited during startup: %v\n%s", d.result, d.stderr.filtered())
		}
		return strings.Contains(d.stderr.String(), `"msg":"ready"`)
	})
}

// startupFailure starts the process, waits until it fails, and returns its output.
func (d *serverProcess) startupFailure() string {
	d.t.Helper()
	d.launch()
	return d.waitFailure()
}

// waitFailure waits until the process fails and returns its output.
func (d *serverProcess) waitFailure() string {
	d.t.Helper()
	select {
	case <-d.exited:
	case <-time.After(testTimeout):
		d.t.Fatalf("server did not exit:\n%s", d.stderr.filtered())
	}
	if d.result == nil {
		d.t.Errorf("server exited with code 0, want a failure:\n%s", d.stderr.filtered())
	}
	return d.stderr.String()
}

// kill sends SIGKILL and waits until the process has exited.
func (d *serverProcess) kill() {
	if d.cmd == nil {
		return
	}
	if err := d.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.t.Error(err)
	}
	<-d.exited
}

// stop sends SIGTERM and verifies that the process exits with code 0.
func (d *serverProcess) stop() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	select {
	case <-d.exited:
	case <-time.After(testTimeout):
		d.t.Fatalf("server did not exit:\n%s", d.stderr.filtered())
	}
	if d.result != nil {
		d.t.Errorf("%v\n%s", d.result, d.stderr.filtered())
	}
}

// client returns a client without retries.
func (d *serverProcess) client() *client.Client {
	d.t.Helper()
	c, err := client.New(client.Config{Address: d.url, Token: d.token, Retries: -1})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(c.Close)
	return c
}

// serverDir returns the server's part of the data directory.
func (d *serverProcess) serverDir() string { return filepath.Join(d.dataDir, "server") }

// readBootstrapToken reads the token that the server created at its first start.
func (d *serverProcess) readBootstrapToken() {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.dataDir, "bootstrap.token"))
	if err != nil {
		d.t.Fatal(err)
	}
	d.token = strings.TrimSpace(string(b))
}

// cede runs a command of the CLI against the server.
func (d *serverProcess) cede(args ...string) (stdout, stderr string, code int) {
	d.t.Helper()
	return runCommand(d.t, newCommand(d.t, []string{"TMPDIR=" + d.dir, "CEDE_ADDR=" + d.url, "CEDE_TOKEN=" + d.token}, args...))
}
