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
)

// process is a task under its supervisor, as the agent sees it.
type process struct {
	dir   string
	alive *os.File
	tie   io.Closer // nil: the task does not depend on the agent
	tree  *processTree
	done  chan struct{}

	mu   sync.Mutex
	left bool
	exit driver.Exit
}

var _ driver.Process = (*process)(nil)

// watch waits on a goroutine for the supervisor's end.
func (p *process) watch() {
	go func() {
		_, err := io.Copy(io.Discard, p.alive) // until its end, or until Leave
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.alive.Close() // it was only read
		if p.left {
			return
		}
		p.exit = p.read(err)
		close(p.done)
	}()
}

// read is how the task ended. A supervisor that left no word was killed: what
// remains of its task is killed too.
func (p *process) read(pipe error) driver.Exit {
	var e driver.Exit
	b, err := os.ReadFile(filepath.Join(p.dir, fileExit))
	if err == nil {
		err = json.Unmarshal(b, &e)
	}
	if err == nil {
		return e
	}
	lost := "supervisor was killed, or the machine restarted"
	if pipe != nil || !errors.Is(err, fs.ErrNotExist) {
		lost += fmt.Sprintf(" (%v)", errors.Join(pipe, err))
	}
	if err := sweep(cookie(p.dir)); err != nil {
		lost += "; " + err.Error()
	}
	return driver.Exit{Err: lost, Time: time.Now()}
}

// State is empty: all there is to know is in the task's folder.
func (p *process) State() json.RawMessage { return nil }

func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Exit() driver.Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// Signal has the supervisor signal the task.
func (p *process) Signal(name string) error {
	if unix.SignalNum(name) == 0 {
		return fmt.Errorf("unknown signal %q", name)
	}
	return p.command("signal " + name)
}

// Kill has the supervisor kill all of the task.
func (p *process) Kill() error { return p.command("kill") }

func (p *process) command(line string) error {
	fd, err := unix.Open(filepath.Join(p.dir, fileControl), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, syscall.ENXIO) {
		return nil // nobody reads: the supervisor is gone, and its end is about to be seen
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // what was written is read, or nobody is there
	_, err = unix.Write(fd, []byte(line+"\n"))
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// Memory adds up what the processes of the task hold.
func (p *process) Memory() int64 {
	var t started
	b, err := os.ReadFile(filepath.Join(p.dir, fileTask))
	if err != nil || json.Unmarshal(b, &t) != nil {
		return 0
	}
	return p.tree.memory(t.Supervisor)
}

// Detach closes the pipe; the supervisor does not notice.
func (p *process) Detach() {
	p.mu.Lock()
	p.left = true
	p.mu.Unlock()
	_ = p.alive.SetReadDeadline(time.Now()) // wakes watch, which closes it
	if p.tie != nil {
		_ = p.tie.Close() // a task that is bound to its agent ends with it
	}
}
