package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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

	"github.com/cede-scheduler/cede/sdk/client"
)

// durable is a server with a data directory, in a process of its own that can be
// ended in any way and started again.
type durable struct {
	t       *testing.T
	dir     string // of everything
	dataDir string
	file    string // configuration
	url     string
	token   string
	user    *syscall.Credential // nil: as the test
	program string              // "": the test's own

	cmd    *exec.Cmd
	errs   *said
	all    *said // of every process that there was
	ended  chan struct{}
	result error
}

// said is what a process says while it is listened to.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

// story leaves out what people asked for, and what Raft says to itself.
func (s *said) story() string {
	var b strings.Builder
	for line := range strings.Lines(s.String()) {
		if !strings.Contains(line, `"msg":"request"`) && !strings.Contains(line, `"msg":"raft"`) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// loopbackHost is an address of this machine that no other test listens at, so that
// a server can come back where it was.
func loopbackHost() string {
	return fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(64), rand.IntN(256), 1+rand.IntN(250))
}

// serverAt makes the configuration of a server; more is further YAML.
func serverAt(t *testing.T, dataDir, more string) *durable {
	t.Helper()
	d := &durable{t: t, dir: t.TempDir(), dataDir: dataDir, all: &said{}}
	if dataDir == "" {
		d.dataDir = filepath.Join(d.dir, "data")
	}
	d.file = filepath.Join(d.dir, "cede.yaml")
	d.configure(more)
	t.Cleanup(func() { d.kill() })
	return d
}

func (d *durable) configure(more string) {
	d.t.Helper()
	host := loopbackHost()
	d.url = "http://" + host + ":4646"
	text := fmt.Sprintf(`data_dir: %q
listen: {http: "%s:4646", rpc: "%s:4647", metrics: ""}
limits: {rate: 0}
%s
`, d.dataDir, host, host, more)
	if err := os.WriteFile(d.file, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// envWriteDeadline says how long a disk may take.
const envWriteDeadline = "CEDE_SERVER__WRITE_DEADLINE"

// environ is the environment of a server: that of the test, in which a disk that has
// other things to do is no disk that hangs.
func environ(more ...string) []string {
	return slices.Concat([]string{envWriteDeadline + "=2m"}, os.Environ(), more)
}

// begin starts the process and waits for nothing.
func (d *durable) begin() {
	d.t.Helper()
	self, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	d.cmd = exec.Command(cmp.Or(d.program, self)) // its end is the test's to bring about
	d.cmd.Args = []string{"cede", "agent", "-c", d.file}
	d.cmd.Env = environ("TMPDIR=" + d.dir)
	d.cmd.Dir = d.dir
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.user}
	d.errs, d.ended = &said{}, make(chan struct{})
	d.cmd.Stderr = &tee{d.errs, d.all}
	if err := d.cmd.Start(); err != nil {
		d.cmd = nil
		d.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		d.result = cmd.Wait()
		close(ended)
	}(d.cmd, d.ended)
}

type tee struct{ a, b *said }

func (t *tee) Write(b []byte) (int, error) {
	_, _ = t.a.Write(b)
	return t.b.Write(b)
}

func (d *durable) over() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

// start starts the process and waits until it is ready.
func (d *durable) start() {
	d.t.Helper()
	d.begin()
	eventually(d.t, "the server is ready", func() bool {
		if d.over() {
			d.t.Fatalf("it ended: %v\n%s", d.result, d.errs.story())
		}
		return strings.Contains(d.errs.String(), `"msg":"ready"`)
	})
}

// refuses starts the process, waits until it has ended by itself, and gives what it
// said.
func (d *durable) refuses() string {
	d.t.Helper()
	d.begin()
	return d.endsItself()
}

// endsItself waits until the process has ended by itself, and gives what it said.
func (d *durable) endsItself() string {
	d.t.Helper()
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.t.Fatalf("it goes on:\n%s", d.errs.story())
	}
	if d.result == nil {
		d.t.Errorf("it ended as if all were well:\n%s", d.errs.story())
	}
	return d.errs.String()
}

// kill ends the process at once, whatever it does.
func (d *durable) kill() {
	if d.cmd == nil {
		return
	}
	if err := d.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.t.Error(err)
	}
	<-d.ended
}

// stop has the process end in order.
func (d *durable) stop() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.t.Fatalf("it does not end:\n%s", d.errs.story())
	}
	if d.result != nil {
		d.t.Errorf("%v\n%s", d.result, d.errs.story())
	}
}

// client is one that does not repeat what failed.
func (d *durable) client() *client.Client {
	d.t.Helper()
	c, err := client.New(client.Config{Address: d.url, Token: d.token, Retries: -1})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(c.Close)
	return c
}

// serverDir is the server's part of the data directory.
func (d *durable) serverDir() string { return filepath.Join(d.dataDir, "server") }

// firstToken reads the token that the first start made.
func (d *durable) firstToken() {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.dataDir, "bootstrap.token"))
	if err != nil {
		d.t.Fatal(err)
	}
	d.token = strings.TrimSpace(string(b))
}

// cede runs another command of the program.
func (d *durable) cede(args ...string) (stdout, stderr string, code int) {
	d.t.Helper()
	return output(d.t, command(d.t, []string{"TMPDIR=" + d.dir, "CEDE_ADDR=" + d.url, "CEDE_TOKEN=" + d.token}, args...))
}

// copyDir copies a directory with what is in it.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if e.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
