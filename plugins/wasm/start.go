package wasm

import (
	"errors"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// withFunction prefixes a fault with the name of a function.
func withFunction(err *policy.Error, function string) *policy.Error {
	return fault(err.Fault, err.Hint, "%s: %w", function, err.Err)
}

// checkVersion returns an error if the guest requires another ABI version than this host
// supports.
func checkVersion(v uint32) *policy.Error {
	major, minor := v>>16, v&0xffff
	switch {
	case major > abi.Major || major == abi.Major && minor > abi.Minor:
		return fault(policy.FaultABI, "use a newer version of cede, or build the policy with this version's SDK",
			"built for version %d.%d of the policy ABI, this host supports %d.%d", major, minor, abi.Major, abi.Minor)
	case major < abi.Major:
		return fault(policy.FaultABI, hintRebuild, "built for version %d.%d of the policy ABI, this host supports %d.%d",
			major, minor, abi.Major, abi.Minor)
	}
	return nil
}

// describe reads the description of the guest.
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

// configure sends the configuration. The description that follows replaces the first one.
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
		return err // error of the policy, not a fault
	}
	d, err := i.describe()
	switch {
	case err != nil:
		return i.m.loadError(err)
	case d.Info.Name != i.m.name:
		return i.m.loadError(withOperation(abi.OpDescribe, fault(policy.FaultABI, "return the same name always",
			"name changed after configuration")))
	}
	if err := i.checkHooks(d); err != nil {
		return i.m.loadError(withOperation(abi.OpDescribe, &policy.Error{Fault: policy.FaultABI, Err: oneLine(err), Hint: hintRebuild}))
	}
	return nil
}

// withOperation returns err as a *policy.Error that names the operation.
func withOperation(op abi.Op, err error) error {
	e := new(policy.Error)
	if !errors.As(err, &e) {
		e = &policy.Error{Fault: policy.FaultGuest, Err: err}
	}
	named := *e
	named.Hook = abi.Names[op]
	return &named
}

// maxReusableSize returns the memory size above which an instance is replaced: half of the
// limit, but at least twice the initial size.
func (i *instance) maxReusableSize() uint32 {
	return uint32(min(max(i.m.limits.Memory/2, 2*int64(i.memory.Size())), 1<<32-1))
}
