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

	"github.com/cede-scheduler/cede/cmd/internal/cedetest"
	"github.com/cede-scheduler/cede/sdk/client"
)

// testTimeout bounds every wait of these tests. It is generous so that they also pass
// on a heavily loaded machine.
const testTimeout = 2 * time.Minute

// eventually polls a condition until it holds and fails the test after testTimeout.
func eventually(t testing.TB, condition string, holds func() bool) {
	t.Helper()
	const shortest, longest = time.Millisecond, 50 * time.Millisecond
	pause := shortest
	for end := time.Now().Add(testTimeout); !holds(); time.Sleep(pause) {
		pause = min(2*pause, longest)
		if time.Now().After(end) {
			t.Fatalf("timed out after %v waiting until %s", testTimeout, condition)
		}
	}
}

// A devAgent is a `cede agent --dev` that runs as a process of its own.
type devAgent struct {
	t      *testing.T
	cmd    *exec.Cmd
	c      *client.Client
	dir    string // parent of its data directory
	stderr bytes.Buffer
	exited chan struct{}
	result error

	address string // URL of its API
}

// startDevAgent starts the agent and returns when it has printed its address.
func startDevAgent(t *testing.T) *devAgent {
	t.Helper()
	r := &devAgent{t: t, dir: t.TempDir(), exited: make(chan struct{})}
	r.cmd = exec.CommandContext(t.Context(), cedetest.Program(t),
		"agent", "--dev", "--set", "listen.http=127.0.0.1:0", "--set", "listen.rpc=127.0.0.1:0", "--set", "listen.metrics=127.0.0.1:0")
	r.cmd.Env = append(os.Environ(), "TMPDIR="+r.dir)
	r.cmd.Stderr = &r.stderr
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := ""
	lines := bufio.NewScanner(out)
	for address == "" && lines.Scan() {
		if m := regexp.MustCompile(`^cede is ready at (http://\S+)$`).FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
	}
	commands := 0
	for commands < 3 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "  cede ") {
			commands++
		}
	}
	go func() {
		r.result = r.cmd.Wait()
		close(r.exited)
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // fails if the process has exited, which is the normal case
		<-r.exited
	})
	if address == "" || commands < 3 {
		t.Fatalf("agent printed no address or fewer than three example commands: %s", &r.stderr)
	}
	r.address = address
	if r.c, err = client.New(client.Config{Address: address}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.c.Close)
	return r
}

// startStubbornTask starts a task that ignores signals and has a child in another
// process group.
func (r *devAgent) startStubbornTask() {
	r.t.Helper()
	kill := 500 * time.Millisecond
	job := &client.Job{ID: "stubborn", TaskGroups: []*client.TaskGroup{{Name: "g", Tasks: []*client.Task{{
		Name: "main", Driver: "exec", KillTimeout: &kill,
		Config: map[string]any{"command": "/bin/sh", "args": []string{"-c", `trap "" TERM INT; setsid sleep 1000 & while :; do sleep 0.1; done`}},
	}}}}}
	if _, err := r.c.Jobs().Register(r.t.Context(), job, nil); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "the task and its child run", func() bool { return len(r.processes()) >= 3 })
}

// processes returns the processes started by the agent: supervisors, tasks and their
// children.
func (r *devAgent) processes() (list []string) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environs {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte("CEDE_TASK_FOLDER="+r.dir+"/")) {
			list = append(list, file)
		}
	}
	return list
}

func (r *devAgent) signal(s os.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// waitExit waits until the agent has exited and returns the result of its process.
func (r *devAgent) waitExit() error {
	r.t.Helper()
	select {
	case <-r.exited:
	case <-time.After(testTimeout):
		r.t.Fatalf("agent did not exit: %s", &r.stderr)
	}
	return r.result
}

func (r *devAgent) waitNoProcesses() {
	r.t.Helper()
	eventually(r.t, "all task processes have exited", func() bool { return len(r.processes()) == 0 })
}

func TestAgent_StopsGracefullyOnSignal(t *testing.T) {
	t.Parallel()
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Parallel()
			r := startDevAgent(t)
			r.startStubbornTask()
			r.signal(s)
			if err := r.waitExit(); err != nil {
				t.Errorf("%v: %s", err, &r.stderr)
			}
			if left := r.processes(); len(left) > 0 {
				t.Errorf("orphans: %v", left)
			}
			if left, _ := filepath.Glob(filepath.Join(r.dir, "cede-dev-*")); len(left) > 0 {
				t.Errorf("data directory was not removed: %v", left)
			}
		})
	}
}

func TestAgent_LeavesNoTasksOnSecondSignalOrKill(t *testing.T) {
	t.Parallel()
	t.Run("second signal", func(t *testing.T) {
		t.Parallel()
		s := os.Interrupt
		if signal.Ignored(s) { // as in a background job of a shell: the agent would ignore it as well
			s = syscall.SIGTERM
		}
		r := startDevAgent(t)
		r.startStubbornTask()
		r.signal(s)
		// Two signals in quick succession may be merged into one, so repeat until the
		// agent has exited.
		eventually(t, "the agent has exited after a second signal", func() bool {
			_ = r.cmd.Process.Signal(s) // fails if the agent has exited
			select {
			case <-r.exited:
				return true
			default:
				return false
			}
		})
		if err := r.waitExit(); err == nil || r.cmd.ProcessState.ExitCode() == 0 {
			t.Errorf("agent exited with %v, want a failure after a forced stop", err)
		}
		r.waitNoProcesses()
	})
	t.Run("kill", func(t *testing.T) {
		t.Parallel()
		r := startDevAgent(t)
		r.startStubbornTask()
		r.signal(os.Kill)
		_ = r.waitExit() // the result of a killed process is irrelevant
		r.waitNoProcesses()
	})
}

func TestAgent_ReloadsOnSIGHUP(t *testing.T) {
	t.Parallel()
	r := startDevAgent(t)
	r.signal(syscall.SIGHUP)
	responds := func() bool { _, err := r.c.Status().Leader(t.Context()); return err == nil }
	eventually(t, "the agent responds after the reload", responds)
	r.signal(os.Interrupt)
	if err := r.waitExit(); err != nil {
		t.Errorf("%v: %s", err, &r.stderr)
	}
}
