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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cede-scheduler/cede/core/agent/driver"
	"github.com/cede-scheduler/cede/core/agent/logfile"
	"github.com/cede-scheduler/cede/core/internal/checkedfile"
)

// The file descriptors that a supervisor inherits.
const (
	fdAlive   = 3
	fdControl = 4
)

// started is the content of task.json.
type started struct {
	Supervisor int `json:"supervisor"` // process ids
	PID        int `json:"pid"`
}

// A supervisor runs one task in a separate process.
type supervisor struct {
	o     order
	first *os.Process // of the task; reaped by reap only
	over  atomic.Bool // the first process has been reaped, so its process id is invalid
	logs  sync.WaitGroup
	// groups holds the cgroup of the task; nil: it has none.
	groups *hierarchy
}

// Supervise runs the task whose order is on standard input. It returns the exit code
// of this process when all processes of the task have ended. main calls it on the
// main goroutine.
func Supervise() int {
	// The kernel kills the task when the thread that started it ends. A locked thread
	// ends with the process.
	runtime.LockOSThread()
	// Signals from the agent's terminal or init system must not end the supervisor.
	// They are received and dropped: ignored signals would be inherited by the task.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	for _, fd := range []int{fdAlive, fdControl} {
		unix.CloseOnExec(fd) // a task that inherited `alive` would keep it open
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
	if s.groups != nil {
		s.groups.remove(s.o.Dir)
	}
	if err := writeJSON(filepath.Join(s.o.Dir, fileExit), exit); err != nil {
		return 1 // without a reply, the agent reports an error
	}
	return 0
}

// reply sends the only reply of a supervisor.
func reply(a answer) {
	b, _ := json.Marshal(a)                 // cannot fail
	_, _ = os.Stdout.Write(append(b, '\n')) // fails if the agent has ended
	_ = os.Stdout.Close()
}

// start starts the first process of the task.
func (s *supervisor) start() error {
	// Orphans of the task become children of this process, so that it can kill them.
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
			_ = f.Close() // the task has inherited its own
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
	// Programs with the set-user-ID bit, such as sudo, give a task no other user. The
	// attribute belongs to this thread, which starts the task, and is inherited.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	err = s.inGroup(attr, func() (err error) {
		s.first, err = os.StartProcess(s.o.Path, s.o.Args, &os.ProcAttr{
			Dir: s.o.WorkDir, Env: append(s.o.Env, cookie(s.o.Dir)), Files: files, Sys: attr,
		})
		return err
	})
	if err != nil {
		return err
	}
	exposeToOOM(s.first.Pid)
	return writeJSON(filepath.Join(s.o.Dir, fileTask), started{Supervisor: os.Getpid(), PID: s.first.Pid})
}

// inGroup starts the task in a cgroup with its limits, or without one if this process
// cannot create it.
func (s *supervisor) inGroup(attr *syscall.SysProcAttr, start func() error) error {
	h, err := findHierarchy()
	if err != nil {
		return start()
	}
	dirs, err := h.create(s.o.Dir, s.o.Memory)
	if err != nil {
		h.remove(s.o.Dir)
		return start()
	}
	s.groups = h
	return h.start(dirs, attr, start)
}

// exposeToOOM resets the preference of the kernel to keep a process if memory runs out. A
// task inherits it from an agent that is protected.
func exposeToOOM(pid int) {
	file := fmt.Sprintf("/proc/%d/oom_score_adj", pid)
	b, err := os.ReadFile(file)
	if score, errScore := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && errScore == nil && score < 0 {
		_ = os.WriteFile(file, []byte("0"), 0) // fails if the task has ended
	}
}

// copyOutput creates the pipe of an output and copies it to files until its last
// writer is closed. If the disk is full, output is lost, but the task is not blocked.
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

// readCommands executes the commands of the agent.
func (s *supervisor) readCommands(control io.Reader) {
	for lines := bufio.NewScanner(control); lines.Scan(); {
		if lines.Text() == "kill" {
			s.killAll()
		} else if name, ok := strings.CutPrefix(lines.Text(), "signal "); ok {
			_ = s.first.Signal(unix.SignalNum(name)) // it may have ended
		}
	}
}

// boundGrace is the time between the end of the agent and the kill of a bound task.
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

// reap waits for the first process, kills the remaining processes of the task, and
// returns how the first ended once no process is left.
func (s *supervisor) reap() (exit driver.Exit) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD: no process is left
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

// endRest kills the processes that the first one left behind, repeatedly, until reap
// returns and this process exits.
func (s *supervisor) endRest() {
	for {
		s.killAll()
		time.Sleep(10 * time.Millisecond)
	}
}

// killAll kills every process of the task: first the process group of the first one,
// which stops it from forking, then all descendants of this process.
func (s *supervisor) killAll() {
	if !s.over.Load() {
		_ = unix.Kill(-s.first.Pid, unix.SIGKILL)
	}
	children := map[int][]int{}
	eachProcess(func(pid, parent int, _ int64) { children[parent] = append(children[parent], pid) })
	for todo := children[os.Getpid()]; len(todo) > 0; todo = todo[1:] {
		_ = unix.Kill(todo[0], unix.SIGKILL) // it may have ended
		todo = append(todo, children[todo[0]]...)
	}
}

// writeJSON writes a temporary file with a checksum and renames it to path.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", checkedfile.Encode(b), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
