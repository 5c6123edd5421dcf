package compiler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/confine"
)

// A Budget bounds the compilation of one module. A zero field means the default.
type Budget struct {
	Memory int64         // data of the process in bytes; default: 768 MiB
	CPU    time.Duration // rounded up to seconds; default: 15s
	Time   time.Duration // default: 60s
	Output int64         // size of the native code in bytes; default: 128 MiB
}

func (b Budget) withDefaults() Budget {
	if b.Memory <= 0 {
		b.Memory = 768 << 20
	}
	if b.CPU <= 0 {
		b.CPU = 15 * time.Second
	}
	if b.Time <= 0 {
		b.Time = time.Minute
	}
	if b.Output <= 0 {
		b.Output = 128 << 20
	}
	return b
}

// ErrBudget means that the compilation of a module exceeds its budget.
var ErrBudget = errors.New("compilation exceeds its budget")

// ErrProcess means that the process that compiles could not be started, or failed.
var ErrProcess = errors.New("compile policy in a process")

// A Compiler compiles modules in processes, one at a time.
type Compiler struct {
	budget Budget
	turn   chan struct{} // holds a value while a process runs
}

// New returns a compiler that starts this program for each module.
func New(b Budget) *Compiler {
	return &Compiler{budget: b.withDefaults(), turn: make(chan struct{}, 1)}
}

// A Request describes what to compile.
type Request struct {
	CacheDir string
	Pages    uint32 // maximum size of the memory
	Observed int    // index of the function that is observed; -1 if none is
	Workers  int    // number of goroutines
	Budget   Budget
	Log      *slog.Logger `json:"-"` // receives a line for each repair
}

// A reply is the result that the process reports.
type reply struct {
	Error    string // of the engine; the module is not valid
	TooLarge bool   // the native code exceeds its limit
}

// Compile writes the native code of a module to the cache directory, unless an intact copy is
// there. It returns ErrBudget if that takes more than the budget, ErrCache if the directory
// cannot be used, and otherwise the error of the engine.
func (c *Compiler) Compile(ctx context.Context, r Request, module []byte) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	r.Budget = c.budget
	found := r.entry(module)
	intact, err := found.isIntact()
	if intact {
		return nil
	}
	if err != nil {
		r.Log.WarnContext(ctx, "compiled policy is damaged and is compiled again", "path", found.path, "err", err)
	}
	own := r
	if own.CacheDir, err = os.MkdirTemp(r.CacheDir, "new-*"); err != nil {
		return fmt.Errorf("%w: %w", ErrCache, err)
	}
	defer func() { _ = os.RemoveAll(own.CacheDir) }() // nothing reads it
	if err := c.run(ctx, &own, module); err != nil {
		return err
	}
	if err := found.publish(own.CacheDir); err != nil {
		return fmt.Errorf("%w: %w", ErrCache, err)
	}
	return nil
}

// run compiles a module in a process.
func (c *Compiler) run(ctx context.Context, r *Request, module []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.budget.Time, ErrBudget)
	defer cancel()
	head, err := json.Marshal(r)
	if err != nil {
		return err
	}
	self := Self()
	if len(self) == 0 {
		return fmt.Errorf("%w: the file of this program is unknown", ErrProcess)
	}
	var out, diagnosis limitedBuffer
	cmd := exec.CommandContext(ctx, self[0], Arg)
	cmd.Env = c.environment()
	cmd.Stdin = bytes.NewReader(append(append(head, '\n'), module...))
	cmd.Stdout, cmd.Stderr = &out, &diagnosis
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return c.failure(ctx, err, diagnosis.String())
	}
	var answer reply
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return fmt.Errorf("%w: unexpected answer %q of %s", ErrProcess, out.String(), self[0])
	}
	switch {
	case answer.TooLarge:
		return fmt.Errorf("%w: its native code is larger than %d MiB", ErrBudget, c.budget.Output>>20)
	case answer.Error != "":
		return errors.New(answer.Error)
	}
	return nil
}

// Self returns the command that starts this program. It refers to the running program, even
// if its file has been replaced.
func Self() []string {
	if runtime.GOOS == "linux" {
		return []string{"/proc/self/exe"}
	}
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{path}
}

// environment returns the environment of the process. The soft memory limit makes its garbage
// collector work harder before the hard one ends it.
func (c *Compiler) environment() []string {
	return []string{
		fmt.Sprintf("GOMEMLIMIT=%d", c.budget.Memory/4*3), "GOTRACEBACK=none",
		"HOME=" + os.TempDir(), "TMPDIR=" + os.TempDir(),
	}
}

// failure returns the error of a process that did not answer.
func (c *Compiler) failure(ctx context.Context, err error, diagnosis string) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, ErrBudget) {
			return fmt.Errorf("%w: it takes more than %v", ErrBudget, c.budget.Time)
		}
		return cause
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		switch byKernel, outOfTime := confine.Killed(exit, c.budget.CPU); {
		case outOfTime:
			return fmt.Errorf("%w: it takes more than %v of processor time", ErrBudget, c.budget.CPU)
		case byKernel:
			return fmt.Errorf("%w: it requires more memory than the machine has", ErrBudget)
		case confine.OutOfMemory(diagnosis):
			return fmt.Errorf("%w: it requires more than %d MiB of memory", ErrBudget, c.budget.Memory>>20)
		}
	}
	return fmt.Errorf("%w: %w: %s", ErrProcess, err, strings.TrimSpace(diagnosis))
}

// limitedBuffer retains the first bytes that are written to it.
type limitedBuffer struct{ bytes.Buffer }

// Write never fails, so the writing process does not stop.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	const most = 8 << 10
	b.Buffer.Write(p[:min(len(p), max(0, most-b.Len()))])
	return len(p), nil
}
