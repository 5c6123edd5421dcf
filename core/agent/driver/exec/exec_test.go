//go:build linux

package exec

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/cede-scheduler/cede/core/agent/driver"
	"github.com/cede-scheduler/cede/core/agent/logfile"
	"github.com/cede-scheduler/cede/core/internal/checkedfile"
)

// TestMain makes the test binary the supervisor as well.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == SupervisorArg {
		os.Exit(Supervise())
	}
	goleak.VerifyTestMain(m)
}

// patience is the timeout of all waits, long enough for a busy machine.
const patience = 20 * time.Second

type fixture struct {
	t *testing.T
	d *Driver
}

func newFixture(t *testing.T, o Options) *fixture {
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t, d}
}

// spec returns a shell script as a task. The test fails if its processes outlive it.
func (w *fixture) spec(script string) *driver.Spec {
	w.t.Helper()
	dir := w.t.TempDir()
	w.t.Cleanup(func() {
		if left := processesWith(cookie(dir)); len(left) > 0 {
			w.t.Errorf("processes %v of %q are left", left, script)
			_ = sweep(cookie(dir))
		}
	})
	config, _ := json.Marshal(map[string]any{"command": "/bin/sh", "args": []string{"-c", script}})
	return &driver.Spec{AllocID: "a", Task: "t", Config: config, Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "GREETING=hello"}}
}

func (w *fixture) start(s *driver.Spec) driver.Process {
	w.t.Helper()
	p, err := w.d.Start(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *fixture) await(p driver.Process) driver.Exit {
	w.t.Helper()
	select {
	case <-p.Done():
		return p.Exit()
	case <-time.After(patience):
		w.t.Fatal("the task did not end")
		return driver.Exit{}
	}
}

func (w *fixture) output(s *driver.Spec, name string) string {
	w.t.Helper()
	b := make([]byte, 1<<20)
	n, _, err := logfile.ReadAt(filepath.Join(s.Dir, name), b, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b[:n])
}

// awaitReady waits until a task has said that it is up.
func (w *fixture) awaitReady(s *driver.Spec) {
	w.t.Helper()
	eventually(w.t, "the task is up", func() bool { return strings.Contains(w.output(s, "stdout"), "up") })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func TestDriver_KeepsOutputAndExitCode(t *testing.T) {
	w := newFixture(t, Options{})
	s := w.spec(`echo "$GREETING from $(basename $PWD)"; echo trouble >&2; exit 7`)
	exit := w.await(w.start(s))
	if exit.Code != 7 || exit.Signal != "" || exit.Err != "" {
		t.Errorf("ended with %+v, want code 7", exit)
	}
	if out := w.output(s, "stdout"); out != "hello from work\n" {
		t.Errorf("stdout is %q", out)
	}
	if out := w.output(s, "stderr"); out != "trouble\n" {
		t.Errorf("stderr is %q", out)
	}
}

func TestDriver_SignalEndsTask(t *testing.T) {
	w := newFixture(t, Options{})
	s := w.spec(`echo up; sleep 1000 & wait`)
	p := w.start(s)
	w.awaitReady(s)
	if err := p.Signal("SIGTERM"); err != nil {
		t.Fatal(err)
	}
	if exit := w.await(p); exit.Signal != "SIGTERM" {
		t.Errorf("ended with %+v, want SIGTERM; and the sleep in the background must be gone", exit)
	}
	if err := p.Signal("SIGNONE"); err == nil {
		t.Error("an unknown signal was accepted")
	}
}

func TestDriver_KillEndsProcessesOutsideGroup(t *testing.T) {
	w := newFixture(t, Options{})
	// One process ignores signals in the group, one has its own session, and one is
	// an orphan of an orphan.
	s := w.spec(`trap "" TERM INT HUP
		setsid sh -c 'trap "" TERM; while :; do sleep 1; done' &
		(setsid sh -c '(trap "" TERM; exec sleep 1000) & exit' &)
		echo up; while :; do sleep 1; done`)
	p := w.start(s)
	w.awaitReady(s)
	eventually(t, "at least three processes run", func() bool { return len(processesWith(cookie(s.Dir))) >= 4 })
	if err := p.Signal("SIGTERM"); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if exit := w.await(p); exit.Signal != "SIGKILL" {
		t.Errorf("ended with %+v, want SIGKILL", exit)
	}
}

func TestDriver_EndsTaskWithFirstProcess(t *testing.T) {
	w := newFixture(t, Options{})
	s := w.spec(`setsid sleep 1000 & sleep 1000 & exit 0`)
	if exit := w.await(w.start(s)); !exit.OK() {
		t.Errorf("ended with %+v", exit)
	}
}

func TestRestore_FindsRunningAndEndedTasks(t *testing.T) {
	w := newFixture(t, Options{})
	s := w.spec(`echo up; while [ ! -e go ]; do sleep 0.02; done; exit 3`)
	p := w.start(s)
	p.Detach()
	again, err := newFixture(t, Options{}).d.Restore(s, p.State())
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-again.Done():
		t.Fatalf("restored as ended: %+v", again.Exit())
	default:
	}
	w.awaitReady(s)
	again.Detach()
	if err := os.WriteFile(filepath.Join(s.Dir, dirWork, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "task ended without an agent", func() bool { return len(processesWith(cookie(s.Dir))) == 0 })
	last, err := w.d.Restore(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if exit := w.await(last); exit.Code != 3 {
		t.Errorf("ended with %+v, want code 3", exit)
	}
	if err := last.Kill(); err != nil {
		t.Errorf("a kill of what is gone: %v", err)
	}
}

func TestRestore_NeverStarted(t *testing.T) {
	w := newFixture(t, Options{})
	if _, err := w.d.Restore(w.spec("exit"), nil); !errors.Is(err, driver.ErrNeverStarted) {
		t.Errorf("got %v", err)
	}
}

func TestDriver_KilledSupervisorLeavesNothing(t *testing.T) {
	w := newFixture(t, Options{})
	s := w.spec(`setsid sh -c 'trap "" TERM; while :; do sleep 1; done' & echo up; while :; do sleep 1; done`)
	p := w.start(s)
	w.awaitReady(s)
	var task started
	b, _, err := checkedfile.Read(filepath.Join(s.Dir, fileTask))
	if err == nil {
		err = json.Unmarshal(b, &task)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(task.Supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := w.await(p); exit.Err == "" || exit.OK() {
		t.Errorf("ended with %+v, want an error about the supervisor", exit)
	}
}

func TestDriver_BoundTaskEndsWithItsAgent(t *testing.T) {
	w := newFixture(t, Options{Bound: true})
	s := w.spec(`trap "" TERM; echo up; while :; do sleep 1; done`)
	p := w.start(s)
	w.awaitReady(s)
	p.Detach() // closes what the kernel closes when an agent is killed
	eventually(t, "nothing is left", func() bool { return len(processesWith(cookie(s.Dir))) == 0 })
}

func TestStart_ReportsInvalidConfig(t *testing.T) {
	w := newFixture(t, Options{Denied: []string{"daemon"}})
	for config, want := range map[string]string{
		`{}`:                                "command is missing",
		`{"command":"x","arg":["y"]}`:       `unknown field "arg"`,
		`{"command":"no-such-program"}`:     `program "no-such-program" not found`,
		`{"command":"/no/such/program"}`:    "no such file",
		`{"command":"true","work_dir":"z"}`: "no such file",
	} {
		s := w.spec("")
		s.Config = json.RawMessage(config)
		if _, err := w.d.Start(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", config, err, want)
		}
	}
	s := w.spec("true")
	s.User = "daemon"
	if _, err := w.d.Start(s); err == nil || !strings.Contains(err.Error(), "user daemon is denied") {
		t.Errorf("a user that is denied: %v", err)
	}
}

func TestStart_AsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may change the user")
	}
	w := newFixture(t, Options{})
	s := w.spec(`id -un; touch mine && echo wrote`)
	for dir := s.Dir; dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&0o001 == 0 {
			if err := os.Chmod(dir, info.Mode()|0o011); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.User = "nobody"
	if exit := w.await(w.start(s)); !exit.OK() {
		t.Errorf("ended with %+v: %s", exit, w.output(s, "stderr"))
	}
	if out := w.output(s, "stdout"); out != "nobody\nwrote\n" {
		t.Errorf("said %q", out)
	}
}

func TestExpand(t *testing.T) {
	env := []string{"NOMAD_PORT_http=80", "EMPTY="}
	if got := expand("${NOMAD_PORT_http} ${env.NOMAD_PORT_http} ${EMPTY} ${HOME} $NOMAD_PORT_http", env); got != "80 80  ${HOME} $NOMAD_PORT_http" {
		t.Errorf("got %q", got)
	}
}

func TestMemory_CountsTheTask(t *testing.T) {
	w := newFixture(t, Options{})
	s := w.spec(`echo up; sleep 1000 & wait`)
	p := w.start(s)
	w.awaitReady(s)
	eventually(t, "memory is reported", func() bool { return p.Memory() > 100<<10 })
	if m := p.Memory(); m > 100<<20 {
		t.Errorf("a shell and a sleep hold %d bytes: the supervisor is counted too?", m)
	}
	for _, content := range []string{"", "\x00\x00\x00", `{"supervisor":`} {
		if err := os.WriteFile(filepath.Join(s.Dir, fileTask), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		restored, err := w.d.Restore(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m := restored.Memory(); m < 100<<10 || m > 100<<20 {
			t.Errorf("with %q in %s, the task holds %d bytes", content, fileTask, m)
		}
		restored.Detach()
	}
	_ = p.Kill()
	w.await(p)
}
