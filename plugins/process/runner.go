package process

import (
	"context"
	"crypto/rand"
	"encoding/binary"
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

// runner runs one process for go-plugin. go-plugin's own runner would share the host's
// standard input with the process, accept any address from it, trust the types in its log,
// and wait forever if a child keeps its output open.
type runner struct {
	command func() *exec.Cmd // without output
	// sandbox restricts the thread that starts the process, which may create a process group
	// with the given key; nil: no restriction.
	sandbox func(key uint32) error
	memory  int64
	socket  string // directory of the process's socket
	output  output

	// Pipe of standard output; the first line is the handshake.
	handshake     *io.PipeReader
	handshaking   *io.PipeWriter
	once          sync.Once
	handshakeLine string // first line of standard output
	handshakeSeen chan struct{}

	mu           sync.Mutex
	cmd          *exec.Cmd
	stdin        *os.File // host's end; closing it ends the process
	pid          int
	killed       bool // the process is no longer needed
	killedByHost bool // killed before it ended itself
	reaped       bool
	exitErr      error         // exit error
	exited       chan struct{} // closed when it is reaped and its output is read
	running      bool
}

var _ goplugin.Runner = (*runner)(nil)

const (
	// maxHandshake exceeds the size of a handshake with a certificate.
	maxHandshake = 8 << 10
	// maxLine exceeds hclog's encoding of the longest logged line.
	maxLine = 4 * abi.MaxLog
	// outputGrace bounds how long output is read after the exit, if a child keeps it open.
	outputGrace = 200 * time.Millisecond
)

// init prepares the pipe of the handshake.
func (r *runner) init() {
	r.handshake, r.handshaking = io.Pipe()
	r.handshakeSeen, r.exited = make(chan struct{}), make(chan struct{})
}

// Start starts the process. It returns ErrClosed if it was killed before.
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

// spawn retries until the copy can be executed: a child that another thread just forked may
// briefly hold the new file open for writing.
func (r *runner) spawn(stdout, stderr io.Writer) error {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Close() }()
	for wait := time.Millisecond; ; wait *= 2 {
		cmd := r.command()
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = theirs, stdout, stderr, outputGrace
		key := newGroupKey()
		setProcAttr(cmd, key)
		err := startOnThread(func() error { return r.restrict(key) }, cmd.Start, r.exited)
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

// newGroupKey returns a random key with which one process may create its process group.
func newGroupKey() uint32 {
	var key [4]byte
	_, _ = rand.Read(key[:]) // never fails
	return binary.LittleEndian.Uint32(key[:])
}

// restrict restricts the calling thread if the process runs in a sandbox.
func (r *runner) restrict(key uint32) error {
	if r.sandbox == nil {
		return nil
	}
	if err := r.sandbox(key); err != nil {
		return fmt.Errorf("%w: %w", errSandbox, err)
	}
	return nil
}

// stdout handles a line of standard output. The first one is the handshake.
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
	// If go-plugin has given up, nothing reads; reap closes the pipe then.
	_, _ = io.WriteString(r.handshaking, line+"\n")
}

// firstLine returns the first line of standard output, or "" if there is none yet.
func (r *runner) firstLine() string {
	select {
	case <-r.handshakeSeen:
		return r.handshakeLine
	default:
		return ""
	}
}

// reap waits for the exit and kills remaining children.
func (r *runner) reap(stdout, stderr *lineWriter) {
	awaitExit(r.pid)
	r.mu.Lock()
	killGroup(r.pid)
	r.reaped = true
	r.mu.Unlock()
	// Output must not block if go-plugin has closed the reader.
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

// exitError describes how a process ended.
func exitError(cmd *exec.Cmd, err error) error {
	if cmd.ProcessState != nil {
		return errors.New(cmd.ProcessState.String()) // such as "signal: killed" or "exit status 2"
	}
	return err
}

// kill ends the process. It may be called at any time and repeatedly.
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

// wait returns when the process has ended, if it was started.
func (r *runner) wait() {
	r.mu.Lock()
	running := r.running
	r.mu.Unlock()
	if running {
		<-r.exited
	}
}

// exitStatus returns how the process ended, and whether the host killed it.
func (r *runner) exitStatus() (why error, ours bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exitErr, r.killedByHost
}

// isAlive reports whether the process runs and was not killed.
func (r *runner) isAlive() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running && !r.killed && !r.reaped
}

// Kill implements goplugin.Runner.
func (r *runner) Kill(context.Context) error {
	r.kill()
	return nil
}

// Wait implements goplugin.Runner. go-plugin calls it after reading all output.
func (r *runner) Wait(context.Context) error {
	<-r.exited
	why, _ := r.exitStatus()
	return why
}

// Stdout returns the handshake only.
func (r *runner) Stdout() io.ReadCloser { return r.handshake }

// Stderr returns an empty reader: the host reads it itself, because go-plugin panics on
// lines with unexpected JSON types.
func (r *runner) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name returns the name in go-plugin's log, which is disabled.
func (r *runner) Name() string { return "policy" }

// ID returns the process ID, or "" if the process was not started.
func (r *runner) ID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pid == 0 {
		return ""
	}
	return strconv.Itoa(r.pid)
}

// Diagnose returns "": callers diagnose the error.
func (r *runner) Diagnose(context.Context) string { return "" }

// PluginToHost validates the address that the process announces. It must be in the
// directory created for it, otherwise a process could make the host connect anywhere.
func (r *runner) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" || filepath.Dir(filepath.Clean(address)) != r.socket {
		return "", "", fmt.Errorf("listens on %s %s, which is not in its directory", network, address)
	}
	return network, address, nil
}

// HostToPlugin returns the address unchanged: there are no callbacks.
func (r *runner) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
