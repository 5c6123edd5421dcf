package wasm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/plugins/wasm/compiler"
	"github.com/cede-scheduler/cede/plugins/wasm/meter"
	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// MaxModule is the maximum size of a module in bytes.
const MaxModule = 8 << 20

// Load prepares the code of a policy. Errors are of type *policy.Error and list every
// problem; Policy is the name in the module's description, or the start of its digest if
// there is none.
//
// Load checks the size, rewrites the module to count fuel, checks imports and exports,
// compiles it, starts one instance, and reads its ABI version and description.
func (h *Host) Load(ctx context.Context, code []byte, limits policy.Limits) (*Module, error) {
	m := &Module{host: h, limits: limits.WithDefaults(h.options.Limits).Bounded(), log: guestlog.New(h.log, abi.MaxLog)}
	if err := m.load(ctx, code); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Module) load(ctx context.Context, code []byte) error {
	if len(code) > MaxModule { // before all of it is read
		return m.loadError(fault(policy.FaultLimit, "strip names and debug information (go build -ldflags='-s -w'; wasm-opt --strip-debug)",
			"module has %s: must be at most %s", formatBytes(int64(len(code))), formatBytes(MaxModule)))
	}
	sum := sha256.Sum256(code)
	m.digest = "sha256:" + hex.EncodeToString(sum[:])
	m.log.Rename(m.host.log.With("policy", m.digest))
	metered, err := meter.Instrument(code, meter.Options{MaxSize: MaxModule})
	if err != nil {
		return m.loadError(meterError(err))
	}
	if err := check(metered); err != nil {
		return m.loadError(&policy.Error{Fault: policy.FaultABI, Err: oneLine(err)})
	}
	if err := m.checkMemory(metered); err != nil {
		return m.loadError(err)
	}
	if err := m.compile(ctx, metered); err != nil {
		return m.loadError(err)
	}
	m.lines = metered.Lines
	return m.describeFirst()
}

// meterError returns the fault of a module that cannot be metered.
func meterError(err error) *policy.Error {
	bad := new(meter.Error)
	if !errors.As(err, &bad) {
		return &policy.Error{Fault: policy.FaultHost, Err: err}
	}
	kind := policy.FaultABI
	if errors.Is(err, meter.ErrLimit) {
		kind = policy.FaultLimit
	}
	hint := bad.Hint
	bare := *bad
	bare.Hint = ""
	return &policy.Error{Fault: kind, Err: &bare, Hint: hint}
}

// oneLine joins the lines of an error.
func oneLine(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// checkMemory returns an error if the initial memory exceeds the limit.
func (m *Module) checkMemory(metered *meter.Module) *policy.Error {
	most := pageLimit(m.limits.Memory)
	if memory := metered.Memory; memory != nil && memory.Min > most {
		return fault(policy.FaultLimit, hintMemory, "initial memory is %s, limit is %s",
			formatBytes(int64(memory.Min)*pageSize), formatBytes(int64(most)*pageSize))
	}
	return nil
}

// compile creates a runtime for this module only, because the memory limit belongs to the
// runtime. Compiled code is shared nevertheless.
func (m *Module) compile(ctx context.Context, metered *meter.Module) *policy.Error {
	if err := m.precompile(ctx, metered); err != nil {
		return err
	}
	m.host.compiling.Lock()
	defer m.host.compiling.Unlock()
	m.runtime = wazero.NewRuntimeWithConfig(ctx, compiler.Engine(m.host.cache, pageLimit(m.limits.Memory), m.host.options.Interpreter))
	if err := provide(ctx, m.runtime, metered.Imports); err != nil {
		return fault(policy.FaultHost, "", "cannot provide imports: %w", err)
	}
	ctx = experimental.WithCompilationWorkers(compiler.Observed(ctx, metered.Yield, sliceListener{}), m.host.options.CompilationWorkers)
	compiled, err := m.runtime.CompileModule(ctx, metered.Code)
	if err != nil {
		return m.compileError(ctx, err)
	}
	m.compiled = compiled
	return nil
}

// precompile writes the native code of a module to the cache directory, unless an intact copy
// is there.
func (m *Module) precompile(ctx context.Context, metered *meter.Module) *policy.Error {
	h := m.host
	if h.options.Interpreter {
		return nil
	}
	err := h.compiler.Compile(ctx, compiler.Request{
		CacheDir: h.options.CacheDir, Pages: pageLimit(m.limits.Memory), Observed: metered.Yield, Workers: h.options.CompilationWorkers, Log: h.log,
	}, metered.Code)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, compiler.ErrBudget):
		return fault(policy.FaultLimit, "split large functions, and use fewer locals and blocks", "%w", err)
	}
	return m.compileError(ctx, err)
}

// compileError returns the fault of a failed compilation.
func (m *Module) compileError(ctx context.Context, err error) *policy.Error {
	switch {
	case ctx.Err() != nil:
		return fault(policy.FaultHost, "", "compilation was canceled: %w", ctx.Err())
	case errors.Is(err, compiler.ErrProcess):
		return fault(policy.FaultHost, "", "%w", err)
	case errors.Is(err, compiler.ErrCache):
		return fault(policy.FaultHost, "remove the files in "+m.host.options.CacheDir, "%w", err)
	}
	return fault(policy.FaultABI, "build it again; no compiler produces this module", "invalid WebAssembly: %s", guestlog.Clean(trapText(err), maxOutputText))
}

// describeFirst starts the first instance and reads the description of the policy. It keeps
// the instance for the first Start.
func (m *Module) describeFirst() error {
	in, err := m.instantiate()
	if err != nil {
		return m.loadError(err)
	}
	d, err := in.describe()
	if err == nil {
		m.name = d.Info.Name
		err = m.validate(in, d)
	}
	if err != nil {
		in.Close()
		return m.loadError(err)
	}
	m.takesConfig, m.version = d.Configurable, guestlog.Clean(d.Version, abi.VersionCap)
	m.log.Rename(m.host.log.With("policy", m.name))
	m.spare = in
	return nil
}

// validate checks the description of a policy and decodes its settings.
func (m *Module) validate(i *instance, d *abi.Description) (err error) {
	var errs []error
	if d.Info.Name == "" || d.Info.Name != guestlog.Clean(d.Info.Name, abi.NameCap) || strings.ContainsRune(d.Info.Name, ' ') {
		errs = append(errs, fmt.Errorf("invalid name %q: must be printable, without spaces, and at most %d bytes long",
			guestlog.Clean(d.Info.Name, abi.NameCap), abi.NameCap))
	}
	if err := i.checkHooks(d); err != nil {
		errs = append(errs, err)
	}
	if !d.Configurable && len(d.Settings) > 0 && string(d.Settings) != "[]" {
		errs = append(errs, errors.New("settings are declared, but configuration is not accepted"))
	}
	if m.settings, err = settings.Decode(d.Settings); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil
	}
	return &policy.Error{Fault: policy.FaultABI, Err: oneLine(errors.Join(errs...)), Hint: hintRebuild}
}

// loadError returns err with the name and digest of the module.
func (m *Module) loadError(err error) error {
	e := new(policy.Error)
	if !errors.As(err, &e) {
		e = &policy.Error{Fault: policy.FaultGuest, Err: err}
	}
	named := *e
	named.Policy, named.Version = m.displayName(), m.digest
	named.Hook = cmp.Or(named.Hook, "load")
	return &named
}

// displayName returns the name of the module for errors.
func (m *Module) displayName() string {
	switch {
	case m.name != "":
		return guestlog.Clean(m.name, abi.NameCap)
	case m.digest != "":
		return m.digest[:len("sha256:")+12]
	}
	return "module"
}
