package cmdutil

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

// An Env is the environment of a command: arguments, streams, variables, files and
// clock.
type Env struct {
	Args   []string // without the program name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	// StdoutTerminal and StderrTerminal report whether the streams are terminals.
	StdoutTerminal, StderrTerminal bool
	// Width returns the number of columns of the terminal behind a stream; 0: unknown.
	Width func(io.Writer) int

	Getenv func(string) string
	// Environ returns all environment variables as NAME=value.
	Environ func() []string
	Files   Files
	Clock   clock.Clock
	Build   app.Build
	Cores   int          // usable processors
	Memory  func() int64 // usable memory in bytes; 0: unknown
	Exit    func(code int)
	// Policies opens policies.
	Policies Policies
	// Close releases the runtimes of policies.
	Close func() error

	// StaleWarned is the set of policy directories for which a stale module was
	// reported. It is a sync.Map because policies are opened concurrently.
	StaleWarned sync.Map

	JSONErrors bool
	stdinUsed  bool
	// HandlesInterrupt is set by a command that shuts down by itself after an
	// interrupt, without a time limit.
	HandlesInterrupt atomic.Bool
}

// Policies loads policies.
type Policies interface {
	Open(context.Context, policies.Request) (*policies.Policy, error)
	OpenBundle(context.Context, *bundle.Bundle) (*policies.Policy, error)
	// WithLog returns another loader with the same cache, of policies that log to log. The
	// caller must close it.
	WithLog(log *slog.Logger) *policies.Loader
}

// System returns the environment of the process.
func System() *Env {
	loader := policies.New(policies.Options{CacheDir: cacheDir(), Log: guestLog(os.Stderr, os.Getenv(envLogLevel))})
	return &Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdoutTerminal: term.IsTerminal(os.Stdout), StderrTerminal: term.IsTerminal(os.Stderr),
		Width:  term.Width,
		Getenv: os.Getenv, Environ: os.Environ, Files: OS{}, Clock: clock.Real{}, Build: app.Info(),
		Cores: runtime.GOMAXPROCS(0), Memory: availableMemory, Exit: os.Exit, Policies: loader, Close: loader.Close,
	}
}

// Columns returns the number of columns to which text on stdout is folded; 0: stdout is not a
// terminal, and each row is one line.
func (env *Env) Columns() int {
	if !env.StdoutTerminal {
		return 0
	}
	return cmp.Or(env.Width(env.Stdout), term.DefaultWidth)
}

// StdoutStyle returns the style of results.
func (env *Env) StdoutStyle() term.Style { return term.StyleFor(env.StdoutTerminal, env.Getenv) }

// Progress returns a progress display on stderr.
func (env *Env) Progress() *term.Progress {
	live := env.StderrTerminal && env.Getenv("TERM") != "dumb"
	return term.NewProgress(env.Stderr, live, func() int { return env.Width(env.Stderr) }, env.Clock)
}

// Waiting shows for how long an operation lasts of which only a server could report the
// progress, until done is called.
func (env *Env) Waiting(operation string) (done func()) {
	progress := env.Progress()
	progress.Repeat(func(elapsed time.Duration) string {
		return term.ProgressLine(-1, elapsed, operation, elapsed.Round(time.Second).String())
	})
	return progress.Done
}

// cacheDir returns the folder of compiled policies; empty if there is none.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "cede", "wasm")
}

// Sleep returns after d, or when ctx ends.
func (env *Env) Sleep(ctx context.Context, d time.Duration) {
	over := make(chan struct{})
	timer := env.Clock.AfterFunc(d, func() { close(over) })
	defer timer.Stop()
	select {
	case <-over:
	case <-ctx.Done():
	}
}
