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
	m := &Module{host: h, limits: limits.WithDefaults(h.options.Limits), log: newGuestLog(h.log)}
	if err := m.load(ctx, code); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Module) load(ctx context.Context, code []byte) error {
	if len(code) > MaxModule { // before anything reads all of it
		return m.refuse(fault(policy.FaultLimit, "strip names and debug information (go build -ldflags='-s -w'; wasm-opt --strip-debug)",
			"the module has %s, and %s is the most", mebibytes(int64(len(code))), mebibytes(MaxModule)))
	}
	sum := sha256.Sum256(code)
	m.digest = "sha256:" + hex.EncodeToString(sum[:])
	m.log.rename(m.digest)
	metered, err := meter.Instrument(code, meter.Options{MaxSize: MaxModule, StartFuel: m.startFuel()})
	if err != nil {
		return m.refuse(unmetered(err))
	}
	if err := check(metered); err != nil {
		return m.refuse(&policy.Error{Fault: policy.FaultABI, Err: list(err)})
	}
	if err := m.checkMemory(metered); err != nil {
		return m.refuse(err)
	}
	if err := m.compile(ctx, metered); err != nil {
		return m.refuse(err)
	}
	return m.introduce()
}

// unmetered names what keeps a module from being metered.
func unmetered(err error) *policy.Error {
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

// list writes joined errors on one line.
func list(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// checkMemory refuses a module that cannot even start within its limit.
func (m *Module) checkMemory(metered *meter.Module) *policy.Error {
	most := pages(m.limits.Memory)
	if memory := metered.Memory; memory != nil && memory.Min > most {
		return fault(policy.FaultLimit, hintMemory, "it starts with %s of memory, and %s is the limit",
			mebibytes(int64(memory.Min)*pageSize), mebibytes(int64(most)*pageSize))
	}
	return nil
}

// compile makes an engine for the module alone, since the limit of memory is the
// engine's; compiled code is shared all the same.
func (m *Module) compile(ctx context.Context, metered *meter.Module) *policy.Error {
	m.host.compiling.Lock()
	defer m.host.compiling.Unlock()
	m.runtime = wazero.NewRuntimeWithConfig(ctx, m.host.config(pages(m.limits.Memory)))
	if err := provide(ctx, m.runtime, metered.Imports); err != nil {
		return fault(policy.FaultHost, "", "its imports cannot be provided: %w", err)
	}
	ctx = experimental.WithCompilationWorkers(ctx, m.host.options.CompilationWorkers)
	compiled, err := m.runtime.CompileModule(ctx, metered.Code)
	if err != nil && damagedCache(err) && m.host.forgetCompiled() {
		compiled, err = m.runtime.CompileModule(ctx, metered.Code)
	}
	switch {
	case err == nil:
		m.compiled = compiled
		return nil
	case ctx.Err() != nil:
		return fault(policy.FaultHost, "", "compiling it was stopped: %w", ctx.Err())
	case damagedCache(err):
		return fault(policy.FaultHost, "remove what is in "+m.host.options.CacheDir, "the cache of compiled policies is damaged: %s", trapText(err))
	}
	return fault(policy.FaultABI, "build it again; a compiler would not have made this", "it is no valid WebAssembly: %s", clean(trapText(err), maxWords))
}

// damagedCache is whether a module could not be compiled because of what lies in
// the folder of compiled ones. The engine has no other sign for it.
func damagedCache(err error) bool { return strings.Contains(err.Error(), "compilationcache: ") }

// introduce starts the first instance and learns from it what the policy is.
// The instance is kept for the first Start.
func (m *Module) introduce() error {
	in, err := m.instantiate()
	if err != nil {
		return m.refuse(err)
	}
	d, err := in.introduce()
	if err == nil {
		m.name = d.Info.Name
		err = m.accept(in, d)
	}
	if err != nil {
		in.Close()
		return m.refuse(err)
	}
	m.takes, m.version = d.Configurable, clean(d.Version, abi.VersionCap)
	m.log.rename(m.name)
	m.spare = in
	return nil
}

// accept checks what a policy says of itself, and takes its settings.
func (m *Module) accept(i *instance, d *abi.Description) (err error) {
	var errs []error
	if d.Info.Name == "" || d.Info.Name != clean(d.Info.Name, abi.NameCap) || strings.ContainsRune(d.Info.Name, ' ') {
		errs = append(errs, fmt.Errorf("it calls itself %q; a name is printable, without spaces, and at most %d bytes long",
			clean(d.Info.Name, abi.NameCap), abi.NameCap))
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
	return &policy.Error{Fault: policy.FaultABI, Err: list(errors.Join(errs...)), Hint: rebuild}
}

// refuse says which module is not loaded.
func (m *Module) refuse(err error) error {
	e := new(policy.Error)
	if !errors.As(err, &e) {
		e = &policy.Error{Fault: policy.FaultGuest, Err: err}
	}
	named := *e
	named.Policy, named.Version = m.title(), m.digest
	if named.Hook == "" {
		named.Hook = "load"
	}
	return &named
}

// title is what a module is called in errors.
func (m *Module) title() string {
	switch {
	case m.name != "":
		return clean(m.name, abi.NameCap)
	case m.digest != "":
		return m.digest[:len("sha256:")+12]
	}
	return "module"
}
