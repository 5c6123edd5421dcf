package exec

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cede-scheduler/cede/core/agent/driver"
	"github.com/cede-scheduler/cede/core/agent/logfile"
)

// The pipes that a supervisor is born with.
const (
	fdAlive   = 3
	fdControl = 4
)

// started is what a supervisor writes down once its task runs.
type started struct {
	Supervisor int `json:"supervisor"` // process numbers
	PID        int `json:"pid"`
}

// supervisor is this program as the keeper of one task.
type supervisor struct {
	o     order
	first *os.Process // of the task; never waited for by itself
	over  atomic.Bool // the first process has been reaped: its number is nobody's
	logs  sync.WaitGroup
}

// Supervise runs the task that standard input orders, and returns the exit code of
// this process when nothing of the task is left. It is called by main, on its first
// goroutine.
func Supervise() int {
	// The task is killed when the thread that started it ends: this one ends with
	// the process.
	runtime.LockOSThread()
	// The agent's terminal and its init system are not the task's business. Signals
	// that are ignored would be ignored by the task too; these are taken and dropped.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	for _, fd := range []int{fdAlive, fdControl} {
		unix.CloseOnExec(fd) // a task that held `alive` would seem to outlive us
	}
	in := bufio.NewReader(os.Stdin)
	s := &supervisor{}
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &s.o)
	}
	if err == nil {
		err = s.start()
	}
	if err != nil {
		reply(answer{Err: err.Error()})
		return 1
	}
	reply(answer{PID: s.first.Pid})
	go s.readCommands(os.NewFile(fdControl, fileControl))
	if s.o.Bound {
		go s.dieWithAgent(in)
	}
	exit := s.reap()
	s.logs.Wait()
	if err := writeJSON(filepath.Join(s.o.Dir, fileExit), exit); err != nil {
		return 1 // the agent finds no word, and says so
	}
	return 0
}

// reply says the one thing that a supervisor says.
func reply(a answer) {
	b, _ := json.Marshal(a)                 // plain values
	_, _ = os.Stdout.Write(append(b, '\n')) // whoever does not hear it is gone
	_ = os.Stdout.Close()
}

// start starts the task's first process.
func (s *supervisor) start() error {
	// Orphans of the task become children of ours, so that they can be ended.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set child subreaper: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	files := []*os.File{null}
	defer func() {
		for _, f := range files {
			_ = f.Close() // the task has its own
		}
	}()
	for _, name := range []string{"stdout", "stderr"} {
		w, err := s.copyOutput(name)
		if err != nil {
			return err
		}
		files = append(files, w)
	}
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if u := s.o.User; u != nil {
		attr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	p, err := os.StartProcess(s.o.Path, s.o.Args, &os.ProcAttr{
		Dir: s.o.WorkDir, Env: append(s.o.Env, cookie(s.o.Dir)), Files: files, Sys: attr,
	})
	if err != nil {
		return err
	}
	s.first = p
	return writeJSON(filepath.Join(s.o.Dir, fileTask), started{Supervisor: os.Getpid(), PID: p.Pid})
}

// copyOutput makes the pipe of an output, and copies it to its files until its last
// writer is gone. A full disk loses output; it does not block the task.
func (s *supervisor) copyOutput(name string) (*os.File, error) {
	w, err := logfile.NewWriter(filepath.Join(s.o.Dir, name), s.o.LogSize, s.o.LogKeep)
	if err != nil {
		return nil, err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	s.logs.Go(func() {
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			_, _ = w.Write(b[:n])
			if err != nil {
				break
			}
		}
		_, _ = from.Close(), w.Close()
	})
	return to, nil
}

// readCommands does what the agent writes.
func (s *supervisor) readCommands(control io.Reader) {
	for lines := bufio.NewScanner(control); lines.Scan(); {
		if lines.Text() == "kill" {
			s.killAll()
		} else if name, ok := strings.CutPrefix(lines.Text(), "signal "); ok {
			_ = s.first.Signal(unix.SignalNum(name)) // it may have ended
		}
	}
}

// boundGrace is how long a task may take to stop whose agent was killed.
const boundGrace = time.Second

// dieWithAgent ends the task when the agent's end of standard input is closed.
func (s *supervisor) dieWithAgent(in io.Reader) {
	_, _ = io.Copy(io.Discard, in)
	if !s.over.Load() {
		_ = unix.Kill(-s.first.Pid, unix.SIGTERM) // it may have ended
	}
	time.Sleep(boundGrace)
	s.killAll()
}

// reap waits for the first process, ends what is left of the task, and returns
// when there is nothing any more.
func (s *supervisor) reap() (exit driver.Exit) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD: that was the last
			return exit
		case pid == s.first.Pid:
			s.over.Store(true)
			exit = driver.Exit{Code: status.ExitStatus(), Time: time.Now()}
			if status.Signaled() {
				exit.Code, exit.Signal = 0, unix.SignalName(status.Signal())
			}
			go s.endRest()
		}
	}
}

// endRest kills what the first process left behind, until reap has seen the last
// of it and ends this process.
func (s *supervisor) endRest() {
	for {
		s.killAll()
		time.Sleep(10 * time.Millisecond)
	}
}

// killAll kills every process of the task: the first one's group, so that nobody
// in it is quick enough to start another, and then whoever descends from us.
func (s *supervisor) killAll() {
	if !s.over.Load() {
		_ = unix.Kill(-s.first.Pid, unix.SIGKILL)
	}
	children := map[int][]int{}
	eachProcess(func(pid, parent int, _ int64) { children[parent] = append(children[parent], pid) })
	for todo := children[os.Getpid()]; len(todo) > 0; todo = todo[1:] {
		_ = unix.Kill(todo[0], unix.SIGKILL) // who is gone is gone
		todo = append(todo, children[todo[0]]...)
	}
}

// writeJSON writes beside the file and renames.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
