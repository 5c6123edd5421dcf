package exec

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cede-scheduler/cede/core/agent/driver"
	"github.com/cede-scheduler/cede/core/model/taskconfig"
)

// The files in the folder of a task.
const (
	fileAlive   = "alive"
	fileControl = "control"
	fileTask    = "task.json"
	fileExit    = "exit.json"
	dirWork     = "work"
)

// Driver runs tasks as processes.
type Driver struct {
	o    Options
	uids *uidTable // nil: tasks without a user run as the user of the agent
	tree processTree
}

var _ driver.Driver = (*Driver)(nil)

// New returns a driver.
func New(o Options) (*Driver, error) {
	o = o.withDefaults()
	if len(o.Supervisor) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("exec: cannot find executable of supervisor: %w", err)
		}
		o.Supervisor = []string{self, SupervisorArg}
	}
	d := &Driver{o: o}
	if o.User == "" && o.UIDs.Count > 0 && os.Geteuid() == 0 {
		var err error
		if d.uids, err = openUIDTable(o.UIDs, o.UIDFile, o.AllocDir); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Start starts a task with its own supervisor.
func (d *Driver) Start(s *driver.Spec) (driver.Process, error) {
	set, err := taskconfig.ParseExec(s.Config)
	if err != nil {
		return nil, err
	}
	who, err := d.account(s)
	if err != nil {
		return nil, err
	}
	o := &order{
		Env: s.Env, Dir: s.Dir, User: who, LogSize: d.o.LogSize, LogKeep: d.o.LogKeep, Bound: d.o.Bound,
		WorkDir: filepath.Join(s.Dir, dirWork), Memory: d.o.memoryLimit(s.MemoryMB),
	}
	if err := makeWorkDir(o.WorkDir, who); err != nil {
		return nil, err
	}
	if w := expand(set.WorkDir, s.Env); filepath.IsAbs(w) {
		o.WorkDir = w
	} else if w != "" {
		o.WorkDir = filepath.Join(o.WorkDir, w)
	}
	o.Args = []string{expand(set.Command, s.Env)}
	for _, a := range set.Args {
		o.Args = append(o.Args, expand(a, s.Env))
	}
	if o.Path, err = lookPath(o.Args[0], o.WorkDir, s.Env); err != nil {
		return nil, err
	}
	return d.supervise(s, o)
}

func makeWorkDir(dir string, who *account) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if who == nil {
		return nil
	}
	return os.Chown(dir, int(who.UID), int(who.GID))
}

// lookPath finds a program in the PATH of env, as a shell of the task would.
func lookPath(command, workDir string, env []string) (string, error) {
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(workDir, command)
		}
		return command, nil // if it does not exist, starting it fails
	}
	path := ""
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, command)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("exec: program %q not found in PATH of task (%s)", command, path)
}

// supervise starts a supervisor. The supervisor's end of the pipe `alive` is opened
// before the process exists. Otherwise a process of the task could run while the pipe
// indicates that there is none.
func (d *Driver) supervise(s *driver.Spec, o *order) (driver.Process, error) {
	alive, theirs, err := openAlive(s.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }() // the supervisor has inherited its own
	control, err := openControl(s.Dir)
	if err != nil {
		return nil, errors.Join(err, alive.Close())
	}
	defer func() { _ = control.Close() }()
	cmd := osexec.Command(d.o.Supervisor[0], d.o.Supervisor[1:]...)
	cmd.Dir, cmd.Env = s.Dir, []string{cookie(s.Dir), "GOMAXPROCS=1", "GOGC=50"}
	cmd.ExtraFiles = []*os.File{theirs, control}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, alive.Close())
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, alive.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("exec: supervisor: %w", err), alive.Close())
	}
	a, err := instruct(in, out, o)
	p := &process{dir: s.Dir, alive: alive, done: make(chan struct{}), tree: &d.tree}
	if d.o.Bound && err == nil {
		p.tie = in
	} else {
		_ = in.Close() // it has received the order, or it has exited
	}
	if err == nil && a.Err != "" {
		err = errors.New("exec: " + a.Err)
	}
	if err != nil {
		_ = cmd.Process.Kill() // it may have exited already
		_ = cmd.Wait()
		return nil, errors.Join(err, alive.Close())
	}
	go func() { _ = cmd.Wait() }() // exit.json contains the result
	p.watch()
	return p, nil
}

// instruct sends the order to a supervisor and returns its answer.
func instruct(in io.Writer, out io.Reader, o *order) (a answer, err error) {
	line, err := json.Marshal(o)
	if err != nil {
		return a, err
	}
	_, err = in.Write(append(line, '\n'))
	reply, errRead := bufio.NewReader(out).ReadBytes('\n')
	if errRead != nil {
		return a, fmt.Errorf("exec: supervisor exited without a reply (does %q call Supervise?): %w", SupervisorArg, errors.Join(err, errRead))
	}
	return a, errors.Join(err, json.Unmarshal(reply, &a))
}

// openAlive creates the pipe and opens both of its ends.
func openAlive(dir string) (ours, theirs *os.File, err error) {
	path := filepath.Join(dir, fileAlive)
	if err := fifo(path); err != nil {
		return nil, nil, err
	}
	ours, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs, err = os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}

// openControl opens the pipe for reading and writing: if the supervisor holds a
// writer itself, it never reads end of file.
func openControl(dir string) (*os.File, error) {
	path := filepath.Join(dir, fileControl)
	if err := fifo(path); err != nil {
		return nil, err
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func fifo(path string) error {
	if err := unix.Mkfifo(path, 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	return nil
}

// Restore returns a task that an earlier agent started, from its folder. If the pipe of a
// started task is missing, the task is killed: without the pipe its end goes unnoticed,
// and a second one would be started.
func (d *Driver) Restore(s *driver.Spec, _ json.RawMessage) (driver.Process, error) {
	p := &process{dir: s.Dir, done: make(chan struct{}), tree: &d.tree}
	alive, err := os.OpenFile(filepath.Join(s.Dir, fileAlive), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist) && wasStarted(s.Dir):
		p.exit = p.read(err)
		close(p.done)
		return p, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, driver.ErrNeverStarted
	case err != nil:
		return nil, err
	}
	p.alive = alive
	p.watch()
	return p, nil
}

// wasStarted reports whether a folder has a file that is created after the pipe of the
// supervisor.
func wasStarted(dir string) bool {
	for _, name := range []string{fileControl, fileTask, fileExit} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
