package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	goplugin "github.com/hashicorp/go-plugin/runner"

	"github.com/cede-scheduler/cede/sdk/abi"
)

// runner runs one process. go-plugin has one of its own, which would give the
// process the host's standard input, take any address from it, believe the types
// of what it logs, and wait for ever where something that the process started
// holds its output open.
type runner struct {
	command func() *exec.Cmd // without output
	spawner *spawner
	memory  int64
	socket  string // the folder in which the process listens
	output  output

	// first and further lines of standard output; the first is the handshake.
	handshake     *io.PipeReader
	handshaking   *io.PipeWriter
	once          sync.Once
	handshakeLine string // the first line, once there is one
	handshakeSeen chan struct{}

	mu           sync.Mutex
	cmd          *exec.Cmd
	stdin        *os.File // our end; the process ends when it is closed
	pid          int
	killed       bool // nobody wants it any longer
	killedByHost bool // we killed it, and it had not ended by itself
	reaped       bool
	exitErr      error         // why it ended
	exited       chan struct{} // closed when it is reaped and its output is read
	running      bool
}

var _ goplugin.Runner = (*runner)(nil)

const (
	// maxHandshake is more than a handshake with a certificate needs.
	maxHandshake = 8 << 10
	// maxLine is more than hclog makes of the longest line that is logged.
	maxLine = 4 * abi.MaxLog
	// outputGrace is how long output is read that something else holds open.
	outputGrace = 200 * time.Millisecond
)

func (r *runner) init() {
	r.handshake, r.handshaking = io.Pipe()
	r.handshakeSeen, r.exited = make(chan struct{}), make(chan struct{})
}

// Start starts the process.
func (r *runner) Start(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killed {
		return ErrClosed
	}
	stdout := &lineWriter{maxLen: maxHandshake, emit: r.stdout}
	stderr := &lineWriter{maxLen: maxLine, emit: r.output.handleStderr}
	if err := r.spawn(stdout, stderr); err != nil {
		return err
	}
	r.pid, r.running = r.cmd.Process.Pid, true
	go r.reap(stdout, stderr)
	return setLimits(r.pid, r.memory)
}

// spawn tries until the copy can be executed: while another thread forks, its
// child may hold a file open for a moment that was just written.
func (r *runner) spawn(stdout, stderr io.Writer) error {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Close() }()
	for wait := time.Millisecond; ; wait *= 2 {
		cmd := r.command()
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = theirs, stdout, stderr, outputGrace
		setProcAttr(cmd)
		err := r.spawner.run(cmd.Start)
		if err == nil {
			r.cmd, r.stdin = cmd, ours
			return nil
		}
		if !errors.Is(err, syscall.ETXTBSY) || wait > time.Second {
			_ = ours.Close()
			return err
		}
		time.Sleep(wait)
	}
}

// stdout takes a line: the first is the handshake.
func (r *runner) stdout(line string) {
	first := false
	r.once.Do(func() {
		first = true
		r.handshakeLine = line
		close(r.handshakeSeen)
	})
	if !first {
		r.output.handlePlain(line)
		return
	}
	// Nobody reads if go-plugin has given up; reap closes the pipe then.
	_, _ = io.WriteString(r.handshaking, line+"\n")
}

// firstLine is the first line of standard output; empty while there is none.
func (r *runner) firstLine() string {
	select {
	case <-r.handshakeSeen:
		return r.handshakeLine
	default:
		return ""
	}
}

// reap waits for the end, and kills what the process may have started.
func (r *runner) reap(stdout, stderr *lineWriter) {
	awaitExit(r.pid)
	r.mu.Lock()
	killGroup(r.pid)
	r.reaped = true
	r.mu.Unlock()
	// Output of a process that closed the handshake's reader must not block.
	watch := time.AfterFunc(outputGrace, func() { _ = r.handshaking.Close() })
	err := r.cmd.Wait()
	watch.Stop()
	stderr.flush()
	stdout.flush()
	_ = r.handshaking.Close()
	_ = r.stdin.Close()
	r.mu.Lock()
	r.exitErr = exitError(r.cmd, err)
	r.mu.Unlock()
	close(r.exited)
}

// exitError says how a process ended.
func exitError(cmd *exec.Cmd, err error) error {
	if cmd.ProcessState != nil {
		return errors.New(cmd.ProcessState.String()) // "signal: killed", "exit status 2"
	}
	return err
}

// kill ends the process. It may be called at any time, and again.
func (r *runner) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed = true
	if !r.running || r.reaped {
		return
	}
	r.killedByHost = true
	_ = r.cmd.Process.Kill()
	killGroup(r.pid)
}

// wait returns when the process has ended, if it was ever started.
func (r *runner) wait() {
	r.mu.Lock()
	running := r.running
	r.mu.Unlock()
	if running {
		<-r.exited
	}
}

// exitStatus is how the process ended, and whether that was our doing.
func (r *runner) exitStatus() (why error, ours bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exitErr, r.killedByHost
}

// isAlive is whether the process runs and is wanted.
func (r *runner) isAlive() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running && !r.killed && !r.reaped
}

// Kill is kill as go-plugin knows it.
func (r *runner) Kill(context.Context) error {
	r.kill()
	return nil
}

// Wait is what go-plugin calls once it has read all output.
func (r *runner) Wait(context.Context) error {
	<-r.exited
	why, _ := r.exitStatus()
	return why
}

// Stdout is the handshake alone.
func (r *runner) Stdout() io.ReadCloser { return r.handshake }

// Stderr is empty: it is read here. go-plugin panics on a line whose JSON has
// other types than it expects.
func (r *runner) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name is what go-plugin calls it in its log, which is off.
func (r *runner) Name() string { return "policy" }

// ID is the number of the process, empty if it was never started.
func (r *runner) ID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pid == 0 {
		return ""
	}
	return strconv.Itoa(r.pid)
}

// Diagnose leaves the diagnosis to who called.
func (r *runner) Diagnose(context.Context) string { return "" }

// PluginToHost takes the address at which the process says that it listens. It
// is believed only where it is in the folder that was made for it: otherwise a
// process could have the host speak to whatever it likes.
func (r *runner) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" || filepath.Dir(filepath.Clean(address)) != r.socket {
		return "", "", fmt.Errorf("it listens on %s %s, and not in the folder that it was given", network, address)
	}
	return network, address, nil
}

// HostToPlugin is for callbacks, which there are none of.
func (r *runner) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
