//go:build unix

package raftlog_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/raftlog"
	"github.com/cede-scheduler/cede/core/storage/storagetest"
)

// pausedEnv makes the test binary the process that is paused.
const pausedEnv = "CEDE_TEST_PAUSED_WRITE"

// pausedDeadline is shorter than the pause, and long enough for the paused process to end
// its write after it resumes.
const pausedDeadline = 3 * time.Second

// A process that is paused for longer than the deadline while it writes has a disk that is
// fine: the pause does not count.
func TestDeadline_IgnoresPauseOfTheProcess(t *testing.T) {
	if os.Getenv(pausedEnv) != "" {
		writeWhilePaused()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), pausedEnv+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadString('\n'); line != "writing\n" {
		t.Fatalf("%q, %v", line, err)
	}
	signal := func(s os.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	time.Sleep(pausedDeadline + time.Second/2)
	signal(syscall.SIGCONT)
	_ = stdin.Close() // ends the write
	line, err := lines.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "exceeded: false" {
		t.Errorf("%q, %v", line, err)
	}
}

// writeWhilePaused writes until standard input ends, and prints whether the deadline was
// exceeded.
func writeWhilePaused() {
	var exceeded atomic.Bool
	s := &blockedStore{inMemory{raft.NewInmemCommitTrackingStore()}, make(chan struct{})}
	d := raftlog.WithDeadline(s, pausedDeadline, func(string) { exceeded.Store(true) })
	written := make(chan error)
	go func() { written <- d.StoreLogs(storagetest.Entries(1, 3, 1)) }()
	time.Sleep(100 * time.Millisecond) // the write is in flight
	fmt.Println("writing")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	time.Sleep(200 * time.Millisecond) // expired timers have fired
	close(s.release)
	if err := <-written; err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("exceeded:", exceeded.Load())
}
