package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/confine"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/sdk/serve/policypb"
)

// maxQuote is the maximum number of bytes of a quoted line.
const maxQuote = 80

// startError returns the fault of a process that did not become ready. It kills the
// process.
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
		return fault(policy.FaultTimeout, hintServe, "not ready after %v%s", p.host.options.StartTimeout, p.outputSuffix())
	case ours && p.host.isClosing():
		return closedFault()
	case !ours && (r.firstLine() == "" || errors.Is(err, errBroken)):
		return p.exitFault("at its start")
	}
	return p.handshakeError(err)
}

// handshakeError returns the fault of a process with an invalid handshake.
func (p *process) handshakeError(err error) *policy.Error {
	line := p.runner.firstLine()
	_, ours := p.runner.exitStatus()
	switch text := err.Error(); {
	case !isHandshake(line):
		return fault(policy.FaultABI, hintServe, "printed %q before its handshake%s", guestlog.Clean(line, maxQuote), p.outputSuffix())
	case strings.Contains(text, "incompatible API version"):
		return fault(policy.FaultABI, hintNewer, "uses version %s of the policy protocol, this host supports %d",
			guestlog.Clean(strings.Split(line, "|")[1], maxQuote), policypb.Protocol)
	case !ours:
		return p.exitFault("at its start")
	default:
		return fault(policy.FaultABI, hintServe, "handshake failed: %s%s", guestlog.Clean(text, maxOutputText), p.outputSuffix())
	}
}

// waitOrKill waits up to grace for a process that is ending, so that its exit can be
// reported, and kills it afterwards.
func (p *process) waitOrKill(grace time.Duration) {
	select {
	case <-p.runner.exited:
	case <-time.After(grace):
		p.runner.kill()
		<-p.runner.exited
	}
}

// execError returns the fault of a file that cannot be executed.
func (p *process) execError(err error) *policy.Error {
	text := err.Error()
	_, gone := os.Stat(p.file)
	switch {
	case errors.Is(err, os.ErrNotExist) && gone != nil:
		return fault(policy.FaultHost, "load it again, and do not modify the run directory", "executable was removed: %w", err)
	case strings.Contains(text, "exec format error"):
		return fault(policy.FaultABI, "build it for this system", "cannot be executed: %w", err)
	case errors.Is(err, os.ErrPermission):
		return fault(policy.FaultHost, "configure a run directory on a file system that permits execution", "execution is not permitted: %w", err)
	case errors.Is(err, os.ErrNotExist):
		return fault(policy.FaultABI, "link it statically (CGO_ENABLED=0)", "requires an interpreter that is not installed: %w", err)
	case errors.Is(err, ErrClosed):
		return closedFault()
	}
	return fault(policy.FaultHost, "", "cannot be started: %w", err)
}

// isHandshake reports whether a line has the form of go-plugin's handshake.
func isHandshake(line string) bool {
	parts := strings.Split(line, "|")
	if len(parts) < 4 {
		return false
	}
	_, err := strconv.Atoi(parts[0])
	return err == nil
}

// exitFault returns the fault of a process that ended itself.
func (p *process) exitFault(when string) *policy.Error {
	why, _ := p.runner.exitStatus()
	words := p.runner.output.summary()
	if confine.OutOfMemory(words) {
		return fault(policy.FaultLimit, hintMemory, "process died %s: %v: %s", when, why, words)
	}
	hint := ""
	if when == "at its start" {
		hint = hintServe
	}
	return fault(policy.FaultGuest, hint, "process died %s: %v%s", when, why, p.outputSuffix())
}

// outputSuffix returns the last output of the process for an error, or "".
func (p *process) outputSuffix() string {
	if words := p.runner.output.summary(); words != "" {
		return fmt.Sprintf(" (output: %s)", words)
	}
	return ""
}
