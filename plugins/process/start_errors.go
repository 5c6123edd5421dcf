package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/sdk/serve/policypb"
)

// maxQuote is how much of a strange line is quoted, in bytes.
const maxQuote = 80

// startError names what kept a process from being ready. It kills the process.
func (p *process) startError(err error) *policy.Error {
	r := &p.runner
	if r.ID() == "" {
		return p.execError(err)
	}
	if errors.Is(err, errUnlimited) {
		r.kill()
		return &policy.Error{Fault: policy.FaultHost, Err: err}
	}
	p.waitOrKill(outputGrace)
	switch _, ours := r.exitStatus(); {
	case p.startTimedOut.Load():
		return fault(policy.FaultTimeout, hintServe, "it was not ready after %v%s", p.host.options.StartTimeout, p.outputSuffix())
	case ours && p.host.isClosing():
		return closedFault()
	case !ours && (r.firstLine() == "" || errors.Is(err, errBroken)):
		return p.exitFault("at its start")
	}
	return p.handshakeError(err)
}

// handshakeError names what is wrong with what a process said of itself.
func (p *process) handshakeError(err error) *policy.Error {
	line := p.runner.firstLine()
	_, ours := p.runner.exitStatus()
	switch text := err.Error(); {
	case !isHandshake(line):
		return fault(policy.FaultABI, hintServe, "it printed %q before its handshake%s", guestlog.Clean(line, maxQuote), p.outputSuffix())
	case strings.Contains(text, "incompatible API version"):
		return fault(policy.FaultABI, hintNewer, "it speaks version %s of the protocol of policies, and this host has %d",
			guestlog.Clean(strings.Split(line, "|")[1], maxQuote), policypb.Protocol)
	case !ours:
		return p.exitFault("at its start")
	default:
		return fault(policy.FaultABI, hintServe, "its handshake failed: %s%s", guestlog.Clean(text, maxOutputText), p.outputSuffix())
	}
}

// waitOrKill gives a process that is dying the time to do so, so that it can be
// said how it died, and kills it then.
func (p *process) waitOrKill(grace time.Duration) {
	select {
	case <-p.runner.exited:
	case <-time.After(grace):
		p.runner.kill()
		<-p.runner.exited
	}
}

// execError names what keeps a file from being executed.
func (p *process) execError(err error) *policy.Error {
	text := err.Error()
	_, gone := os.Stat(p.file)
	switch {
	case errors.Is(err, os.ErrNotExist) && gone != nil:
		return fault(policy.FaultHost, "load it again, and leave the run directory to the host", "its copy was removed: %w", err)
	case strings.Contains(text, "exec format error"):
		return fault(policy.FaultABI, "build it for this system", "it cannot be executed: %w", err)
	case errors.Is(err, os.ErrPermission):
		return fault(policy.FaultHost, "name a run directory where programs may be executed", "it may not be executed: %w", err)
	case errors.Is(err, os.ErrNotExist):
		return fault(policy.FaultABI, "link it statically (CGO_ENABLED=0)", "it needs an interpreter that is not here: %w", err)
	case errors.Is(err, ErrClosed):
		return closedFault()
	}
	return fault(policy.FaultHost, "", "it cannot be started: %w", err)
}

// isHandshake is whether a line could be one of go-plugin.
func isHandshake(line string) bool {
	parts := strings.Split(line, "|")
	if len(parts) < 4 {
		return false
	}
	_, err := strconv.Atoi(parts[0])
	return err == nil
}

// outOfMemoryMarkers is what runtimes say when the kernel gives them no more memory: those
// of Go, with cgo, of C++ and of Rust.
var outOfMemoryMarkers = []string{"out of memory", "cannot allocate memory", "pthread_create failed", "bad_alloc", "memory allocation of"}

// exitFault says how a process ended that nobody killed.
func (p *process) exitFault(when string) *policy.Error {
	why, _ := p.runner.exitStatus()
	words := p.runner.output.summary()
	if slices.ContainsFunc(outOfMemoryMarkers, func(s string) bool { return strings.Contains(words, s) }) {
		return fault(policy.FaultLimit, hintMemory, "the process died %s: %v: %s", when, why, words)
	}
	hint := ""
	if when == "at its start" {
		hint = hintServe
	}
	return fault(policy.FaultGuest, hint, "the process died %s: %v%s", when, why, p.outputSuffix())
}

// outputSuffix is what the process printed last, if anything.
func (p *process) outputSuffix() string {
	if words := p.runner.output.summary(); words != "" {
		return fmt.Sprintf(" (it printed: %s)", words)
	}
	return ""
}
