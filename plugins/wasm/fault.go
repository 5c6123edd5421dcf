package wasm

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
)

// fault returns the error of a call. core/policy adds the name and version of the policy.
func fault(kind policy.Fault, hint, format string, args ...any) *policy.Error {
	return &policy.Error{Fault: kind, Err: fmt.Errorf(format, args...), Hint: hint}
}

// Hints for faults without a more specific remedy.
const (
	hintFuel   = "raise the fuel of a call in the policy's limits, or do less per row"
	hintMemory = "raise the memory in the policy's limits, or use less"
	hintTime   = "raise the time of a call in the policy's limits, or do less per call"
)

// trapError converts an error of the engine after a call with the given fuel.
func (i *instance) trapError(err error, fuel int64) *policy.Error {
	switch {
	case i.why == stopTime:
		return fault(policy.FaultTimeout, hintTime, "took longer than %v", i.timeLimit)
	case i.why == stopStack, trapText(err) == "stack overflow":
		return fault(policy.FaultLimit, "recurse less deeply", "stack overflow: the limit is %s", formatBytes(maxStack))
	case i.why == stopFuel:
		return fault(policy.FaultLimit, hintFuel, "used up its %d ticks of fuel", fuel)
	}
	words := lastOutput(i.output)
	if strings.Contains(words, "out of memory") {
		return fault(policy.FaultLimit, hintMemory, "%s", words)
	}
	what := "trap: " + trapText(err) + i.m.trapPlace(err)
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		what = fmt.Sprintf("exited with code %d", exit.ExitCode())
	}
	if place := goPlace(i.output); words != "" && place != "" {
		words += " at " + place
	}
	if words != "" {
		what = fmt.Sprintf("%s (%s)", words, what)
	}
	return fault(policy.FaultGuest, "", "%s", what)
}

// trapText returns the first line of an engine error, without the stack trace.
func trapText(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(strings.TrimPrefix(text, "wasm error: "), " (recovered by wazero)")
}

// maxPlaces is the maximum number of functions that an error names.
const maxPlaces = 3

// trapPlace returns the innermost functions of the engine's stack trace with their files and
// lines, or "". Functions without a name are shown by their index.
func (m *Module) trapPlace(err error) string {
	frames := trapFrames(err)
	if len(frames) == 0 {
		return ""
	}
	names := make([]string, len(frames))
	for i, f := range frames {
		names[i] = guestlog.Clean(f.function, maxNameText)
	}
	if m.lines != nil {
		for i, p := range m.lines.Find(offsetsOf(frames)) {
			if p.Line > 0 && p.File != "" {
				names[i] += fmt.Sprintf(" (%s:%d)", guestlog.Clean(path.Base(p.File), maxNameText), p.Line)
			}
		}
	}
	return " in " + strings.Join(names, ", called by ")
}

// trapFrame is a frame of the engine's stack trace.
type trapFrame struct {
	function string
	offset   uint32 // in the metered code section; 0 if unknown
}

func offsetsOf(frames []trapFrame) []uint32 {
	offsets := make([]uint32, len(frames))
	for i, f := range frames {
		offsets[i] = f.offset
	}
	return offsets
}

// trapFrames returns the innermost frames of the engine's stack trace. The line of a
// function can be followed by one with its offset.
func trapFrames(err error) (frames []trapFrame) {
	_, trace, _ := strings.Cut(err.Error(), "\nwasm stack trace:\n")
	for line := range strings.Lines(trace) {
		line = strings.TrimSpace(line)
		if offset, ok := codeOffset(line); ok && len(frames) > 0 {
			frames[len(frames)-1].offset = offset
			continue
		}
		at := strings.LastIndex(line, "(")
		if at < 0 || len(frames) == maxPlaces {
			break
		}
		name := strings.TrimPrefix(line[:at], ".")
		if index, unnamed := strings.CutPrefix(name, "$"); unnamed {
			name = "function " + index
		}
		frames = append(frames, trapFrame{function: name})
	}
	return frames
}

// codeOffset returns the offset of a frame, which the engine writes as 0x1f: code:1.
func codeOffset(line string) (offset uint32, ok bool) {
	digits, ok := strings.CutPrefix(line, "0x")
	if !ok {
		return 0, false
	}
	digits, _, ok = strings.Cut(digits, ": code:")
	v, err := strconv.ParseUint(digits, 16, 32)
	return uint32(v), ok && err == nil
}

// maxNameText is the maximum number of bytes of a function's name in an error.
const maxNameText = 120

// goPlace returns the function, the file and the line at which a Go guest panicked, or "" if
// the output has no stack trace. Functions of the runtime and of the guest library are
// skipped, because they only pass the panic on.
func goPlace(output []byte) string {
	_, trace, _ := strings.Cut(string(output), "\ngoroutine ")
	lines := strings.Split(trace, "\n")
	for i := 1; i+1 < len(lines); i += 2 {
		function, _, called := cutLast(lines[i], "(")
		place, isPlace := strings.CutPrefix(lines[i+1], "\t")
		if !called || !isPlace {
			return ""
		}
		if function == "panic" || strings.HasPrefix(function, "runtime.") || strings.Contains(function, "cede/sdk/serve.") {
			continue
		}
		file, _, _ := strings.Cut(place, " +0x")
		return guestlog.Clean(path.Base(function)+", "+path.Base(file), maxNameText)
	}
	return ""
}

// cutLast is like strings.Cut at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// lastOutput returns the output of a guest before it ended, without the stack traces of a
// Go runtime.
func lastOutput(said []byte) string {
	text := string(said)
	for _, end := range []string{"\n\ngoroutine ", "\n\nruntime stack:", "\ngoroutine "} {
		text, _, _ = strings.Cut(text, end)
	}
	return guestlog.Clean(strings.TrimSpace(text), maxOutputText)
}

// maxOutputText is the maximum number of bytes of a guest's output in an error.
const maxOutputText = 512
