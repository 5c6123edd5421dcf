package process

import (
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
)

var (
	// ErrClosed means that the host ended the process: the host, the module or the instance
	// was closed.
	ErrClosed = errors.New("policy process was closed")
	// ErrChecksum means that an executable has another checksum than the permitted one.
	ErrChecksum = errors.New("executable does not have the permitted checksum")
	// ErrTooManyFailures means that a module failed too often to be started again.
	ErrTooManyFailures = errors.New("failed too often")

	errBroken    = errors.New("connection broke")
	errUnlimited = errors.New("cannot limit memory")
	errSandbox   = errors.New("cannot isolate the process")
)

// fault returns the error of a call. core/policy adds the name and version of the policy.
func fault(kind policy.Fault, hint, format string, args ...any) *policy.Error {
	return &policy.Error{Fault: kind, Err: fmt.Errorf(format, args...), Hint: hint}
}

// Hints for faults without a more specific remedy.
const (
	hintTime    = "raise the time in the policy's limits, or do less per row"
	hintMemory  = "raise the memory in the policy's limits, or use less"
	hintRebuild = "build the policy again with the SDK of this version of cede"
	hintNewer   = "use a newer version of cede, or build the policy with this version's SDK"
	hintServe   = "build it with `cede policy build` or `go build -tags process`; its main must call serve.Serve and print nothing before"
)

func closedFault() *policy.Error { return &policy.Error{Fault: policy.FaultHost, Err: ErrClosed} }

// withOperation returns err as a *policy.Error that names the operation.
func withOperation(op abi.Op, err error) error {
	e, ok := errors.AsType[*policy.Error](err)
	if !ok {
		e = &policy.Error{Fault: policy.FaultGuest, Err: err}
	}
	named := *e
	named.Hook = abi.Names[op]
	return &named
}

// checkVersion returns an error if the guest requires another ABI version than this host
// supports.
func checkVersion(v uint32) *policy.Error {
	major, minor := v>>16, v&0xffff
	hint := hintRebuild
	switch {
	case major == abi.Major && minor <= abi.Minor:
		return nil
	case major >= abi.Major:
		hint = hintNewer
	}
	return fault(policy.FaultABI, hint, "built for version %d.%d of the policy ABI, this host supports %d.%d", major, minor, abi.Major, abi.Minor)
}
