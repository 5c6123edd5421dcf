package comparisons

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/confine"
)

// errLimit is the cause if a comparison takes too long.
var errLimit = errors.New("time limit")

// run plays the input in a process.
func run(ctx context.Context, command []string, in *Input, progress func(Progress)) (*Report, *Error) {
	l := in.Limits
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, l.Time, errLimit)
	defer cancel()
	input, err := json.Marshal(in)
	if err != nil {
		return nil, &Error{Message: err.Error()}
	}
	var diagnosis tail
	cmd := exec.CommandContext(ctx, command[0], slices.Concat(command[1:], []string{Arg})...)
	cmd.Env = []string{
		fmt.Sprintf("GOMEMLIMIT=%d", l.Memory/4*3), "GOGC=100", "GOMAXPROCS=1", "GOTRACEBACK=none", "HOME=" + os.TempDir(), "TMPDIR=" + os.TempDir(),
	}
	cmd.Stdin = bytes.NewReader(append(input, '\n'))
	cmd.Stderr = &diagnosis
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, &Error{Message: fmt.Sprintf("start process: %v", err)}
	}
	if err := cmd.Start(); err != nil {
		return nil, &Error{Message: fmt.Sprintf("start process: %v", err)}
	}
	last, readErr := read(out, l.Output, progress)
	if readErr != nil {
		cancel() // the process cannot write to its output any more
	}
	err = cmd.Wait()
	switch {
	case errors.Is(context.Cause(ctx), errLimit):
		return nil, &Error{Message: fmt.Sprintf("the comparison takes more than %v", l.Time), Hint: smaller}
	case errors.Is(readErr, errOutput):
		return nil, &Error{Message: fmt.Sprintf("the report is larger than %d MiB", l.Output>>20), Hint: smaller}
	case readErr != nil && caller.Err() == nil:
		return nil, &Error{Message: fmt.Sprintf("read the answer of the process: %v", readErr)}
	case err != nil:
		return nil, failure(err, l, diagnosis.String())
	case last.Error != nil:
		return nil, last.Error
	case last.Report == nil:
		return nil, &Error{Message: "the process ended without an answer"}
	}
	return last.Report, nil
}

const smaller = "use fewer seeds or a smaller scenario, or play it with cede compare on another machine"

// errOutput means that the process writes more than its limit.
var errOutput = errors.New("output is too large")

// read reads messages until the last one, which it returns.
func read(out io.Reader, limit int, progress func(Progress)) (last message, err error) {
	// JSON quotes the characters < and > of HTML with six bytes.
	const growth = 6
	r := bufio.NewReader(out)
	for {
		line, err := readLine(r, limit*growth)
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return last, err
		}
		last = message{}
		if err := json.Unmarshal(line, &last); err != nil {
			return last, err
		}
		if last.Report != nil && last.Report.size() > limit {
			return last, errOutput
		}
		if last.Progress != nil {
			progress(*last.Progress)
		}
	}
}

// readLine returns a line of at most limit bytes.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > limit:
			return nil, errOutput
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// failure returns the error of a process that did not answer.
func failure(err error, l Limits, diagnosis string) *Error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		switch byKernel, outOfTime := confine.Killed(exit, l.CPU); {
		case outOfTime:
			return &Error{Message: fmt.Sprintf("the comparison takes more than %v of processor time", l.CPU), Hint: smaller}
		case byKernel:
			return &Error{Message: "the comparison requires more memory than the machine has", Hint: smaller}
		case confine.OutOfMemory(diagnosis):
			return &Error{Message: fmt.Sprintf("the comparison requires more than %d MiB of memory", l.Memory>>20), Hint: smaller}
		}
	}
	return &Error{Message: strings.TrimSpace(fmt.Sprintf("the process failed: %v: %s", err, diagnosis))}
}

// tail retains the first bytes that are written to it.
type tail struct{ bytes.Buffer }

// Write never fails, so the writing process does not stop.
func (b *tail) Write(p []byte) (int, error) {
	const most = 4 << 10
	b.Buffer.Write(p[:min(len(p), max(0, most-b.Len()))])
	return len(p), nil
}
