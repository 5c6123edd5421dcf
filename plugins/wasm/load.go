package wasm

import (
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
	"github.com/cede-scheduler/cede/plugins/wasm/meter"
	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// MaxModule is the size of the largest module that is loaded, in bytes.
const MaxModule = 8 << 20

// Load makes a policy's code ready to be started. An error is a *policy.Error
// that lists every problem that was found; its Policy is the name that the module
// gives itself, or where it came to none the beginning of its digest.
//
// What Load does in order: look at the size, rewrite the module so that it counts
// fuel, check what it imports and exports, compile it, start one instance, ask it
// for its version of the ABI and for what it is.
func (h *Host) Load(ctx context.Context, code []byte, limits policy.Limits) (*Module, error) {
	m := &Module{host: h, limits: limits.WithDefaults(h.options.Limits), log: guestlog.New(h.log, abi.MaxLog)}
	if err := m.load(ctx, code); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Module) load(ctx context.Context, code []byte) error {
	if len(code) > MaxModule { // before anything reads all of it
		return m.loadError(fault(policy.FaultLimit, "strip names and debug information (go build -ldflags='-s -w'; wasm-opt --strip-debug)",
			"the module has %s, and %s is the most", formatBytes(int64(len(code))), formatBytes(MaxModule)))
	}
	sum := sha256.Sum256(code)
	m.digest = "sha256:" + hex.EncodeToString(sum[:])
	m.log.Rename(m.host.log.With("policy", m.digest))
	metered, err := meter.Instrument(code, meter.Options{MaxSize: MaxModule, StartFuel: m.startFuel()})
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
	return m.describeFirst()
}

// meterError names what keeps a module from being metered.
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

// oneLine writes joined errors on one line.
func oneLine(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// checkMemory refuses a module that cannot even start within its limit.
func (m *Module) checkMemory(metered *meter.Module) *policy.Error {
	most := pageLimit(m.limits.Memory)
	if memory := metered.Memory; memory != nil && memory.Min > most {
		return fault(policy.FaultLimit, hintMemory, "it starts with %s of memory, and %s is the limit",
			formatBytes(int64(memory.Min)*pageSize), formatBytes(int64(most)*pageSize))
	}
	return nil
}

// compile makes an engine for the module alone, since the limit of memory is the
// engine's; compiled code is shared all the same.
func (m *Module) compile(ctx context.Context, metered *meter.Module) *policy.Error {
	m.host.compiling.Lock()
	defer m.host.compiling.Unlock()
	m.runtime = wazero.NewRuntimeWithConfig(ctx, m.host.config(pageLimit(m.limits.Memory)))
	if err := provide(ctx, m.runtime, metered.Imports); err != nil {
		return fault(policy.FaultHost, "", "its imports cannot be provided: %w", err)
	}
	ctx = experimental.WithCompilationWorkers(ctx, m.host.options.CompilationWorkers)
	compiled, err := m.runtime.CompileModule(ctx, metered.Code)
	if err != nil && isCacheDamaged(err) && m.host.clearCache() {
		compiled, err = m.runtime.CompileModule(ctx, metered.Code)
	}
	switch {
	case err == nil:
		m.compiled = compiled
		return nil
	case ctx.Err() != nil:
		return fault(policy.FaultHost, "", "compiling it was stopped: %w", ctx.Err())
	case isCacheDamaged(err):
		return fault(policy.FaultHost, "remove what is in "+m.host.options.CacheDir, "the cache of compiled policies is damaged: %s", trapText(err))
	}
	return fault(policy.FaultABI, "build it again; a compiler would not have made this", "it is no valid WebAssembly: %s", guestlog.Clean(trapText(err), maxOutputText))
}

// isCacheDamaged is whether a module could not be compiled because of what lies in
// the folder of compiled ones. The engine has no other sign for it.
func isCacheDamaged(err error) bool { return strings.Contains(err.Error(), "compilationcache: ") }

// describeFirst starts the first instance and learns from it what the policy is.
// The instance is kept for the first Start.
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

// validate checks what a policy says of itself, and takes its settings.
func (m *Module) validate(i *instance, d *abi.Description) (err error) {
	var errs []error
	if d.Info.Name == "" || d.Info.Name != guestlog.Clean(d.Info.Name, abi.NameCap) || strings.ContainsRune(d.Info.Name, ' ') {
		errs = append(errs, fmt.Errorf("it calls itself %q; a name is printable, without spaces, and at most %d bytes long",
			guestlog.Clean(d.Info.Name, abi.NameCap), abi.NameCap))
	}
	if err := i.checkHooks(d); err != nil {
		errs = append(errs, err)
	}
	if !d.Configurable && len(d.Settings) > 0 && string(d.Settings) != "[]" {
		errs = append(errs, errors.New("it declares settings and does not say that it takes configuration"))
	}
	if m.settings, err = settings.Decode(d.Settings); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil
	}
	return &policy.Error{Fault: policy.FaultABI, Err: oneLine(errors.Join(errs...)), Hint: hintRebuild}
}

// loadError says which module is not loaded.
func (m *Module) loadError(err error) error {
	e := new(policy.Error)
	if !errors.As(err, &e) {
		e = &policy.Error{Fault: policy.FaultGuest, Err: err}
	}
	named := *e
	named.Policy, named.Version = m.displayName(), m.digest
	if named.Hook == "" {
		named.Hook = "load"
	}
	return &named
}

// displayName is what a module is called in errors.
func (m *Module) displayName() string {
	switch {
	case m.name != "":
		return guestlog.Clean(m.name, abi.NameCap)
	case m.digest != "":
		return m.digest[:len("sha256:")+12]
	}
	return "module"
}
