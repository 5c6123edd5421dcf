package wasm

import (
	"errors"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// instantiateError names what kept the engine from making an instance: of what it does
// then, only the start function can fail, or data that does not fit.
func (m *Module) instantiateError(err error, said []byte) *policy.Error {
	text := err.Error()
	exited := errors.As(err, new(*sys.ExitError))
	_, text, started := strings.Cut(text, "failed: ")
	switch {
	case exited:
		return withFunction(trapError(err, false, 0, said), "its start function")
	case !started:
		return fault(policy.FaultGuest, "", "it cannot be instantiated: %s", guestlog.Clean(trapText(err), maxOutputText))
	case strings.HasPrefix(text, "wasm error: unreachable") || errors.Is(err, errFuel):
		// The engine gives no instance whose fuel could be read.
		return fault(policy.FaultLimit, "do that in "+abi.ExportInitialize, "its start function trapped, or used up its %d ticks of fuel", m.startFuel())
	}
	return withFunction(trapError(errors.New(text), false, 0, said), "its start function")
}

// withFunction says which function it was.
func withFunction(err *policy.Error, function string) *policy.Error {
	return fault(err.Fault, err.Hint, "%s: %w", function, err.Err)
}

// checkVersion refuses guests that may need what this host does not have.
func checkVersion(v uint32) *policy.Error {
	major, minor := v>>16, v&0xffff
	switch {
	case major > abi.Major || major == abi.Major && minor > abi.Minor:
		return fault(policy.FaultABI, "use a newer version of cede, or build the policy with the SDK of this one",
			"it was built for version %d.%d of the policy ABI, and this host has %d.%d", major, minor, abi.Major, abi.Minor)
	case major < abi.Major:
		return fault(policy.FaultABI, hintRebuild, "it was built for version %d.%d of the policy ABI, and this host has %d.%d",
			major, minor, abi.Major, abi.Minor)
	}
	return nil
}

// describe asks the guest what it is.
func (i *instance) describe() (*abi.Description, error) {
	i.encoder.Describe()
	frame, err := i.request(abi.OpDescribe, 0, i.m.startFuel())
	if err != nil {
		return nil, withOperation(abi.OpDescribe, err)
	}
	d, err := i.encoder.Description(frame)
	if err != nil {
		return nil, withOperation(abi.OpDescribe, &policy.Error{Fault: policy.FaultABI, Err: err})
	}
	i.info, i.hooks = d.Info, policy.Hooks(d.Hooks)
	i.maxReusable = i.maxReusableSize()
	return &d, nil
}

// configure hands the configuration over; what the guest says of itself after
// that counts.
func (i *instance) configure(c *sdk.Config) error {
	if !i.m.takesConfig {
		return nil
	}
	i.encoder.Configure(c)
	if _, err := i.request(abi.OpConfigure, 0, i.m.startFuel()); err != nil {
		fault := new(policy.Error)
		if errors.As(err, &fault) {
			return i.m.loadError(withOperation(abi.OpConfigure, err))
		}
		return err // its own objection to what it was given
	}
	d, err := i.describe()
	switch {
	case err != nil:
		return i.m.loadError(err)
	case d.Info.Name != i.m.name:
		return i.m.loadError(withOperation(abi.OpDescribe, fault(policy.FaultABI, "answer the same name always",
			"it has another name since it was configured")))
	}
	if err := i.checkHooks(d); err != nil {
		return i.m.loadError(withOperation(abi.OpDescribe, &policy.Error{Fault: policy.FaultABI, Err: oneLine(err), Hint: hintRebuild}))
	}
	return nil
}

// withOperation says which operation failed.
func withOperation(op abi.Op, err error) error {
	e := new(policy.Error)
	if !errors.As(err, &e) {
		e = &policy.Error{Fault: policy.FaultGuest, Err: err}
	}
	named := *e
	named.Hook = abi.Names[op]
	return &named
}

// maxReusableSize is how much memory an instance may come to hold before it is
// replaced: half of its limit, but never less than twice what it starts with.
func (i *instance) maxReusableSize() uint32 {
	return uint32(min(max(i.m.limits.Memory/2, 2*int64(i.memory.Size())), 1<<32-1))
}
