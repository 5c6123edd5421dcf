package wasm

import (
	"errors"
	"fmt"
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
)

// trapError converts an error of the engine. spent reports whether the fuel is used up,
// said is the guest's output during the call.
func trapError(err error, spent bool, fuel int64, said []byte) *policy.Error {
	words := lastOutput(said)
	what := "trap: " + trapText(err)
	exit := new(sys.ExitError)
	switch {
	case spent:
		return fault(policy.FaultLimit, hintFuel, "used up its %d ticks of fuel", fuel)
	case trapText(err) == "stack overflow":
		return fault(policy.FaultLimit, "recurse less deeply", "stack overflow")
	case strings.Contains(words, "out of memory"):
		return fault(policy.FaultLimit, hintMemory, "%s", words)
	case errors.As(err, &exit):
		what = fmt.Sprintf("exited with code %d", exit.ExitCode())
	}
	if words != "" {
		return fault(policy.FaultGuest, "", "%s (%s)", words, what)
	}
	return fault(policy.FaultGuest, "", "%s", what)
}

// trapText returns the first line of an engine error, without the stack trace.
func trapText(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(strings.TrimPrefix(text, "wasm error: "), " (recovered by wazero)")
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
