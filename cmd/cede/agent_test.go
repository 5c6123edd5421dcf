package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// patience is that with a machine that has much else to do.
const patience = 2 * time.Minute

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// running is a `cede agent --dev` of its own process.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	c      *client.Client
	dir    string // in which its data directory is
	errs   bytes.Buffer
	ended  chan struct{}
	result error
}

func runAgent(t *testing.T) *running {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, dir: t.TempDir(), ended: make(chan struct{})}
	r.cmd = exec.CommandContext(t.Context(), self)
	r.cmd.Args = []string{"cede", "agent", "--dev", "--set", "listen.http=127.0.0.1:0", "--set", "listen.rpc=127.0.0.1:0", "--set", "listen.metrics=127.0.0.1:0"}
	r.cmd.Env = append(os.Environ(), "TMPDIR="+r.dir)
	r.cmd.Stderr = &r.errs
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := ""
	said := bufio.NewScanner(out)
	for address == "" && said.Scan() {
		if m := regexp.MustCompile(`^cede is ready at (http://\S+)$`).FindStringSubmatch(said.Text()); m != nil {
			address = m[1]
		}
	}
	commands := 0
	for commands < 3 && said.Scan() {
		if strings.HasPrefix(said.Text(), "  cede ") {
			commands++
		}
	}
	go func() {
		r.result = r.cmd.Wait()
		close(r.ended)
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it has ended, unless the test failed
		<-r.ended
	})
	if address == "" || commands < 3 {
		t.Fatalf("it told no address, or fewer than three commands to try: %s", &r.errs)
	}
	if r.c, err = client.New(client.Config{Address: address}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.c.Close)
	return r
}

// work starts a task that does not want to end, with a child that left its group.
func (r *running) work() {
	r.t.Helper()
	kill := 500 * time.Millisecond
	job := &client.Job{ID: "stubborn", TaskGroups: []*client.TaskGroup{{Name: "g", Tasks: []*client.Task{{
		Name: "main", Driver: "exec", KillTimeout: &kill,
		Config: map[string]any{"command": "/bin/sh", "args": []string{"-c", `trap "" TERM INT; setsid sleep 1000 & while :; do sleep 0.1; done`}},
	}}}}}
	if _, err := r.c.Jobs().Register(r.t.Context(), job, nil); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "the task runs, its child too", func() bool { return len(r.processes()) >= 3 })
}

// processes lists what works for the agent: supervisors, tasks, and what they started.
func (r *running) processes() (list []string) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environs {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte("CEDE_TASK_FOLDER="+r.dir+"/")) {
			list = append(list, file)
		}
	}
	return list
}

func (r *running) signal(s os.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) end() error {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.t.Fatalf("it does not end: %s", &r.errs)
	}
	return r.result
}

func (r *running) leavesNobody() {
	r.t.Helper()
	eventually(r.t, "nobody is left", func() bool { return len(r.processes()) == 0 })
}

func TestAgent_StopsInOrder(t *testing.T) {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			r := runAgent(t)
			r.work()
			r.signal(s)
			if err := r.end(); err != nil {
				t.Errorf("%v: %s", err, &r.errs)
			}
			if left := r.processes(); len(left) > 0 {
				t.Errorf("orphans: %v", left)
			}
			if left, _ := filepath.Glob(filepath.Join(r.dir, "cede-dev-*")); len(left) > 0 {
				t.Errorf("its data directory is still there: %v", left)
			}
		})
	}
}

func TestAgent_SecondSignalAndKillLeaveNobodyEither(t *testing.T) {
	t.Run("second signal", func(t *testing.T) {
		s := os.Interrupt
		if signal.Ignored(s) { // by who runs the tests in the background: the agent's second one would be, too
			s = syscall.SIGTERM
		}
		r := runAgent(t)
		r.work()
		r.signal(s)
		// The first one has been heard when the second one is no longer the same.
		eventually(t, "it ends at a second signal", func() bool {
			_ = r.cmd.Process.Signal(s) // it may have ended
			select {
			case <-r.ended:
				return true
			default:
				return false
			}
		})
		if err := r.end(); err == nil || r.cmd.ProcessState.ExitCode() == 0 {
			t.Errorf("it ended with %v, as if it had stopped in order", err)
		}
		r.leavesNobody()
	})
	t.Run("kill", func(t *testing.T) {
		r := runAgent(t)
		r.work()
		r.signal(os.Kill)
		_ = r.end() // it was killed
		r.leavesNobody()
	})
}

func TestAgent_ReloadsOnHangup(t *testing.T) {
	r := runAgent(t)
	r.signal(syscall.SIGHUP)
	self := func() bool { _, err := r.c.Status().Leader(t.Context()); return err == nil }
	eventually(t, "it goes on", self)
	r.signal(os.Interrupt)
	if err := r.end(); err != nil {
		t.Errorf("%v: %s", err, &r.errs)
	}
}
