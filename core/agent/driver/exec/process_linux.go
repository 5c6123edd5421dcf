package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cede-scheduler/cede/core/agent/driver"
	"github.com/cede-scheduler/cede/core/internal/checkedfile"
)

// A process is the agent's handle of a supervised task.
type process struct {
	dir   string
	alive *os.File
	tie   io.Closer // nil if the task is not bound to the agent
	tree  *processTree
	done  chan struct{}

	mu         sync.Mutex
	left       bool
	exit       driver.Exit
	supervisor int // process ID; 0: not looked up yet
}

var _ driver.Process = (*process)(nil)

// watch starts a goroutine that waits for the supervisor to end.
func (p *process) watch() {
	go func() {
		_, err := io.Copy(io.Discard, p.alive) // returns when it closes, or after Detach
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.alive.Close() // opened for reading
		if p.left {
			return
		}
		p.exit = p.read(err)
		close(p.done)
	}()
}

// read returns how the task ended. If the supervisor left no result, it was killed,
// and read kills the remaining processes of the task.
func (p *process) read(pipe error) driver.Exit {
	var e driver.Exit
	b, _, err := checkedfile.Read(filepath.Join(p.dir, fileExit))
	if err == nil {
		err = json.Unmarshal(b, &e)
	}
	if err == nil {
		return e
	}
	lost := "supervisor was killed, or the machine restarted"
	if !errors.Is(err, fs.ErrNotExist) {
		lost = "record of its exit is damaged"
	}
	if pipe != nil || !errors.Is(err, fs.ErrNotExist) {
		lost += fmt.Sprintf(" (%v)", errors.Join(pipe, err))
	}
	if err := sweep(cookie(p.dir)); err != nil {
		lost += "; " + err.Error()
	}
	removeGroup(p.dir)
	return driver.Exit{Err: lost, Time: time.Now()}
}

// State returns nil: the folder of the task contains all state.
func (p *process) State() json.RawMessage { return nil }

func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Exit() driver.Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// Signal sends a signal to the task through the supervisor.
func (p *process) Signal(name string) error {
	if unix.SignalNum(name) == 0 {
		return fmt.Errorf("unknown signal %q", name)
	}
	return p.command("signal " + name)
}

// Kill kills all processes of the task through the supervisor. If the pipe to it is
// missing, Kill kills them and the supervisor.
func (p *process) Kill() error {
	err := p.command("kill")
	if errors.Is(err, fs.ErrNotExist) {
		return sweep(cookie(p.dir))
	}
	return err
}

func (p *process) command(line string) error {
	path := filepath.Join(p.dir, fileControl)
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, syscall.ENXIO) {
		return nil // the pipe has no reader: the supervisor has ended
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // opened for writing to a pipe, which reports errors on write
	_, err = unix.Write(fd, []byte(line+"\n"))
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// Memory returns the sum of the memory of the task's processes.
func (p *process) Memory() int64 { return p.tree.memory(p.findSupervisor()) }

// findSupervisor returns the process ID of the supervisor. If the file that contains it is
// damaged, it is the process of the task with a parent that does not belong to the task.
func (p *process) findSupervisor() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.supervisor != 0 {
		return p.supervisor
	}
	var t started
	b, _, err := checkedfile.Read(filepath.Join(p.dir, fileTask))
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil || t.Supervisor == 0 {
		t.Supervisor = rootOf(processesWith(cookie(p.dir)))
	}
	p.supervisor = t.Supervisor
	return p.supervisor
}

// Detach closes the pipe. The supervisor is not affected.
func (p *process) Detach() {
	p.mu.Lock()
	p.left = true
	p.mu.Unlock()
	_ = p.alive.SetReadDeadline(time.Now()) // makes watch return, which closes the pipe
	if p.tie != nil {
		_ = p.tie.Close() // ends a task that is bound to the agent
	}
}
