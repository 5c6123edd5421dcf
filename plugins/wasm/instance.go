package wasm

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// instance is one running copy of a module.
type instance struct {
	guest

	m      *Module
	module api.Module
	ctx    context.Context // tells host functions which guest calls; made once, since a call must not allocate
	alloc  api.Function
	ops    [len(abi.Exports)]api.Function
	stack  [2]uint64

	encoder   abi.Encoder
	frame     uint32 // address of the guest's buffer
	frameSize uint32 // its size

	info        sdk.Info
	hooks       policy.Hooks
	used        int64  // fuel of the last call
	maxReusable uint32 // of memory, above which the instance is not used again
	dead        bool   // its state is not to be trusted
	closed      bool
}

var _ policy.Instance = (*instance)(nil)

// instantiate makes an instance and runs what it wants to run first. The error
// is a *policy.Error.
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
		return nil, m.instantiateError(err, i.output)
	}
	i.module = module
	i.attach(module)
	if err := i.start(); err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// start finds the functions and runs the initializer.
func (i *instance) start() *policy.Error {
	m := i.m
	i.alloc = i.module.ExportedFunction(abi.ExportAlloc)
	for op := abi.OpDescribe; op <= abi.OpPreemptBindings; op++ {
		i.ops[op] = i.module.ExportedFunction(abi.Exports[op])
	}
	if init := i.module.ExportedFunction(abi.ExportInitialize); init != nil {
		if err := i.run(init, 0, m.startFuel()); err != nil {
			return withFunction(err, abi.ExportInitialize)
		}
	}
	version := i.module.ExportedFunction(abi.ExportVersion)
	if err := i.run(version, 0, m.startFuel()); err != nil {
		return withFunction(err, abi.ExportVersion)
	}
	return checkVersion(uint32(i.stack[0]))
}

// Info is what the policy says of itself.
func (i *instance) Info() sdk.Info { return i.info }

// Hooks is what the policy implements.
func (i *instance) Hooks() policy.Hooks { return i.hooks }

// Fuel is what the last call used.
func (i *instance) Fuel() uint64 { return uint64(i.used) }

// Memory is how much the instance holds, in bytes. It never shrinks.
func (i *instance) Memory() int64 { return int64(i.memory.Size()) }

// Alive is false after a trap, and once the instance holds so much memory that a
// fresh one is better: memory of a module never shrinks.
func (i *instance) Alive() bool {
	return !i.dead && !i.closed && i.memory.Size() <= i.maxReusable
}

// Close frees the instance, and its module if that is retired.
func (i *instance) Close() {
	if i.closed {
		return
	}
	i.closed = true
	if i.module != nil {
		_ = i.module.Close(i.ctx) // fails for files alone
	}
	i.m.removeInstance()
}
