package process

import (
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
)

var (
	// ErrClosed means that the process was ended by the host: the host, the module
	// or the instance was closed, or a call before this one was its last.
	ErrClosed = errors.New("the process of the policy was closed")
	// ErrChecksum means that an executable is not the one that was allowed.
	ErrChecksum = errors.New("the executable is not the one that was allowed")
	// ErrTooManyFailures means that a module failed too often to be started again.
	ErrTooManyFailures = errors.New("it failed too often")

	errBroken    = errors.New("the connection broke")
	errUnlimited = errors.New("its memory cannot be limited")
)

// fault is an error of a call, before it is known who called: core/policy adds
// the version and its name.
func fault(kind policy.Fault, hint, format string, args ...any) *policy.Error {
	return &policy.Error{Fault: kind, Err: fmt.Errorf(format, args...), Hint: hint}
}

// What to do about faults that have no better remedy than others of their kind.
const (
	hintTime    = "raise the time in the policy's limits, or do less per row"
	hintMemory  = "raise the memory in the policy's limits, or keep less"
	hintRebuild = "build it again with the SDK of this version of cede"
	hintNewer   = "use a newer version of cede, or build the policy with the SDK of this one"
	hintServe   = "build it with `cede policy build` or `go build -tags process`; its main calls serve.Serve and prints nothing before"
)

func closedFault() *policy.Error { return &policy.Error{Fault: policy.FaultHost, Err: ErrClosed} }

// withOperation says which operation failed.
func withOperation(op abi.Op, err error) error {
	e, ok := errors.AsType[*policy.Error](err)
	if !ok {
		e = &policy.Error{Fault: policy.FaultGuest, Err: err}
	}
	named := *e
	named.Hook = abi.Names[op]
	return &named
}

// checkVersion refuses guests that may need what this host does not have.
func checkVersion(v uint32) *policy.Error {
	major, minor := v>>16, v&0xffff
	hint := hintRebuild
	switch {
	case major == abi.Major && minor <= abi.Minor:
		return nil
	case major >= abi.Major:
		hint = hintNewer
	}
	return fault(policy.FaultABI, hint, "it was built for version %d.%d of the policy ABI, and this host has %d.%d", major, minor, abi.Major, abi.Minor)
}
