package wasm

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/plugins/wasm/meter"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// An instance is a running copy of a module.
type instance struct {
	guest

	m      *Module
	module api.Module
	ctx    context.Context // identifies the guest to host functions; created once, because a call must not allocate
	alloc  api.Function
	ops    [len(abi.Exports)]api.Function
	stack  [2]uint64

	encoder   abi.Encoder
	frame     uint32 // address of the guest's buffer
	frameSize uint32 // its size in bytes

	info        sdk.Info
	hooks       policy.Hooks
	used        int64  // fuel of the last call
	maxReusable uint32 // memory size above which the instance is not reused, in bytes
	dead        bool   // the state can no longer be trusted
	spoiled     bool   // holds so much stack that it is not reused
	closed      bool
}

var _ policy.Instance = (*instance)(nil)

// instantiate creates an instance and runs its initialization. Errors are of type
// *policy.Error.
func (m *Module) instantiate() (*instance, error) {
	if err := m.addInstance(); err != nil {
		return nil, err
	}
	i := &instance{m: m}
	i.log = m.log
	i.monotonic = 1
	i.ctx = context.WithValue(context.Background(), guestKey{}, &i.guest)
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	module, err := m.runtime.InstantiateModule(i.ctx, m.compiled, config)
	if err != nil {
		m.removeInstance()
		return nil, fault(policy.FaultGuest, "", "cannot be instantiated: %s", guestlog.Clean(trapText(err), maxOutputText))
	}
	i.module = module
	i.attach(module)
	if err := i.start(); err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// start looks up the exported functions and runs the start function and the initializer.
func (i *instance) start() *policy.Error {
	m := i.m
	version := i.module.ExportedFunction(abi.ExportVersion)
	if err := checkEngine(version); err != nil {
		return err
	}
	i.timeLimit = m.timeLimitOf(version)
	if start := i.module.ExportedFunction(meter.StartExport); start != nil {
		if err := i.run(start, 0, m.startFuel()); err != nil {
			return withFunction(err, "start function")
		}
	}
	i.alloc = i.module.ExportedFunction(abi.ExportAlloc)
	for op := abi.OpDescribe; op <= abi.OpPreemptBindings; op++ {
		i.ops[op] = i.module.ExportedFunction(abi.Exports[op])
	}
	if init := i.module.ExportedFunction(abi.ExportInitialize); init != nil {
		if err := i.run(init, 0, m.startFuel()); err != nil {
			return withFunction(err, abi.ExportInitialize)
		}
	}
	if err := i.run(version, 0, m.startFuel()); err != nil {
		return withFunction(err, abi.ExportVersion)
	}
	return checkVersion(uint32(i.stack[0]))
}

// Info returns the description of the policy.
func (i *instance) Info() sdk.Info { return i.info }

// Hooks returns the hooks that the policy implements.
func (i *instance) Hooks() policy.Hooks { return i.hooks }

// Fuel returns the fuel used by the last call.
func (i *instance) Fuel() uint64 { return uint64(i.used) }

// Memory returns the memory size in bytes. It never decreases.
func (i *instance) Memory() int64 { return int64(i.memory.Size()) }

// Alive returns false after a trap, and if the instance holds so much memory or stack that a
// new one is better: neither ever shrinks.
func (i *instance) Alive() bool {
	return !i.dead && !i.spoiled && !i.closed && i.memory.Size() <= i.maxReusable
}

// Close releases the instance, and its module if that is retired.
func (i *instance) Close() {
	if i.closed {
		return
	}
	i.closed = true
	if i.module != nil {
		_ = i.module.Close(i.ctx) // fails only for open files
	}
	i.m.removeInstance()
}
