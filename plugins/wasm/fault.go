package wasm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
)

// fault is an error of a call, before it is known who called: core/policy adds
// the version and its name.
func fault(kind policy.Fault, hint, format string, args ...any) *policy.Error {
	return &policy.Error{Fault: kind, Err: fmt.Errorf(format, args...), Hint: hint}
}

// What to do about faults that have no better remedy than others of their kind.
const (
	hintFuel   = "raise the fuel of a call in the policy's limits, or do less per row"
	hintMemory = "raise the memory in the policy's limits, or keep less"
)

// trapError names what ended a call of the engine. spent is whether the fuel is
// gone, said is what the guest printed.
func trapError(err error, spent bool, fuel int64, said []byte) *policy.Error {
	words := lastOutput(said)
	what := "trap: " + trapText(err)
	exit := new(sys.ExitError)
	switch {
	case spent:
		return fault(policy.FaultLimit, hintFuel, "it used up its %d ticks of fuel", fuel)
	case trapText(err) == "stack overflow":
		return fault(policy.FaultLimit, "recurse less deeply", "its stack overflowed")
	case strings.Contains(words, "out of memory"):
		return fault(policy.FaultLimit, hintMemory, "%s", words)
	case errors.As(err, &exit):
		what = fmt.Sprintf("it exited with code %d", exit.ExitCode())
	}
	if words != "" {
		return fault(policy.FaultGuest, "", "%s (%s)", words, what)
	}
	return fault(policy.FaultGuest, "", "%s", what)
}

// trapText is the first line of an error of the engine: a stack follows it.
func trapText(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(strings.TrimPrefix(text, "wasm error: "), " (recovered by wazero)")
}

// lastOutput are what a guest printed before it died, up to where a Go runtime
// begins to print its stacks.
func lastOutput(said []byte) string {
	text := string(said)
	for _, end := range []string{"\n\ngoroutine ", "\n\nruntime stack:", "\ngoroutine "} {
		text, _, _ = strings.Cut(text, end)
	}
	return guestlog.Clean(strings.TrimSpace(text), maxOutputText)
}

// maxOutputText is how much of a guest's own words an error carries, in bytes.
const maxOutputText = 512
