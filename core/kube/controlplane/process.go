package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A Process is a running program. Its output is in a file.
type Process struct {
	name, log string
	cmd       *exec.Cmd
	done      chan struct{} // closed when the program has ended
	metrics   string        // URL
	stopped   atomic.Bool
}

// starts runs functions on one thread that never ends. The kernel kills a program when
// the thread that started it ends, so that no program outlives a test that is killed.
var starts = func() chan<- func() {
	queue := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range queue {
			start()
		}
	}()
	return queue
}()

// StartProcess starts a program, which ends with the test at the latest. If the test
// fails, the end of its output is logged.
func StartProcess(t testing.TB, dir, name, path string, args ...string) *Process {
	t.Helper()
	p := &Process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = dir, out, out, childAttributes()
	started := make(chan error)
	starts <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit code of a program that was stopped is irrelevant
		_ = out.Close()
		close(p.done)
	}()
	t.Cleanup(func() {
		if t.Failed() && !p.stopped.Load() {
			t.Logf("end of the output of %s:\n%s", name, p.Tail(12))
		}
		p.Stop()
	})
	return p
}

// Stop ends the program in order, and kills it after 20 seconds. It may be called again.
func (p *Process) Stop() {
	p.stopped.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.Kill()
	}
}

// Kill ends the program at once.
func (p *Process) Kill() {
	p.stopped.Store(true)
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.done
}

// Output returns the output so far.
func (p *Process) Output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Tail returns the last lines of the output.
func (p *Process) Tail(lines int) string {
	all := strings.Split(strings.TrimSpace(p.Output()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// CPU returns the processor time of the program so far.
func (p *Process) CPU() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	var user, system int64
	_, _ = fmt.Sscan(string(fields[11]), &user)   // the kernel writes a number
	_, _ = fmt.Sscan(string(fields[12]), &system) // likewise
	return time.Duration(user+system) * (time.Second / 100)
}

// awaitHealth waits until a URL answers with 200, or fails the test if the program ends.
func (p *Process) awaitHealth(t testing.TB, url string) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		select {
		case <-p.done:
			t.Fatalf("%s has ended:\n%s", p.name, p.Tail(12))
		default:
		}
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := loopback.Do(req); err == nil {
			_ = resp.Body.Close() // opened for reading only
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
	t.Fatalf("%s is not ready after 3 minutes: %s\n%s", p.name, url, p.Tail(12))
}

// freePort returns a port of loopback that was free a moment ago.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // nothing was accepted
	return l.Addr().(*net.TCPAddr).Port
}
