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

// notStarted names what kept a process from being ready. It kills the process.
func (p *process) notStarted(err error) *policy.Error {
	r := &p.runner
	if r.ID() == "" {
		return p.notExecuted(err)
	}
	if errors.Is(err, errUnlimited) {
		r.kill()
		return &policy.Error{Fault: policy.FaultHost, Err: err}
	}
	p.settle(afterExit)
	switch _, ours := r.end(); {
	case p.late.Load():
		return fault(policy.FaultTimeout, hintServe, "it was not ready after %v%s", p.host.options.StartTimeout, p.aside())
	case ours && p.host.isClosing():
		return closedFault()
	case !ours && (r.line() == "" || errors.Is(err, errBroken)):
		return p.died("at its start")
	}
	return p.noHandshake(err)
}

// noHandshake names what is wrong with what a process said of itself.
func (p *process) noHandshake(err error) *policy.Error {
	line := p.runner.line()
	_, ours := p.runner.end()
	switch text := err.Error(); {
	case !isHandshake(line):
		return fault(policy.FaultABI, hintServe, "it printed %q before its handshake%s", guestlog.Clean(line, maxQuote), p.aside())
	case strings.Contains(text, "incompatible API version"):
		return fault(policy.FaultABI, hintNewer, "it speaks version %s of the protocol of policies, and this host has %d",
			guestlog.Clean(strings.Split(line, "|")[1], maxQuote), policypb.Protocol)
	case !ours:
		return p.died("at its start")
	default:
		return fault(policy.FaultABI, hintServe, "its handshake failed: %s%s", guestlog.Clean(text, maxWords), p.aside())
	}
}

// settle gives a process that is dying the time to do so, so that it can be
// said how it died, and kills it then.
func (p *process) settle(grace time.Duration) {
	select {
	case <-p.runner.exited:
	case <-time.After(grace):
		p.runner.kill()
		<-p.runner.exited
	}
}

// notExecuted names what keeps a file from being executed.
func (p *process) notExecuted(err error) *policy.Error {
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

// starved is what runtimes say when the kernel gives them no more memory: those
// of Go, with cgo, of C++ and of Rust.
var starved = []string{"out of memory", "cannot allocate memory", "pthread_create failed", "bad_alloc", "memory allocation of"}

// died says how a process ended that nobody killed.
func (p *process) died(when string) *policy.Error {
	why, _ := p.runner.end()
	words := p.runner.said.words()
	if slices.ContainsFunc(starved, func(s string) bool { return strings.Contains(words, s) }) {
		return fault(policy.FaultLimit, hintMemory, "the process died %s: %v: %s", when, why, words)
	}
	hint := ""
	if when == "at its start" {
		hint = hintServe
	}
	return fault(policy.FaultGuest, hint, "the process died %s: %v%s", when, why, p.aside())
}

// aside is what the process printed last, if anything.
func (p *process) aside() string {
	if words := p.runner.said.words(); words != "" {
		return fmt.Sprintf(" (it printed: %s)", words)
	}
	return ""
}
