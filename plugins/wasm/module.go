package wasm

import (
	"context"
	"sync"

	"github.com/tetratelabs/wazero"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/plugins/wasm/meter"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// A Module is the compiled code of a policy.
type Module struct {
	host        *Host
	digest      string
	name        string
	version     string
	limits      policy.Limits
	takesConfig bool // the policy accepts configuration
	settings    []sdk.Setting
	lines       *meter.Lines // nil if the code has no line table
	runtime     wazero.Runtime
	compiled    wazero.CompiledModule
	log         *guestlog.Log

	mu      sync.Mutex
	spare   *instance // started and described, for the next Start
	live    int       // open instances, including the spare one
	retired bool
}

var _ policy.Module = (*Module)(nil)

// Digest returns the SHA-256 of the loaded bytes.
func (m *Module) Digest() string { return m.digest }

// Name returns the name in the policy's description.
func (m *Module) Name() string { return m.name }

// Version returns the policy's own version, which may be empty.
func (m *Module) Version() string { return m.version }

// Isolation returns the sandbox of the module.
func (m *Module) Isolation() string { return "WebAssembly" }

// Limits returns the limits of its calls.
func (m *Module) Limits() policy.Limits { return m.limits }

// Settings returns the settings that the policy accepts.
func (m *Module) Settings() []sdk.Setting { return m.settings }

// Start creates and configures an instance.
func (m *Module) Start(c *sdk.Config) (policy.Instance, error) {
	in, err := m.spareOrNew()
	if err != nil {
		return nil, m.loadError(err)
	}
	if err := in.configure(c); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// spareOrNew returns an instance that is described and not configured.
func (m *Module) spareOrNew() (*instance, error) {
	m.mu.Lock()
	in := m.spare
	m.spare = nil
	m.mu.Unlock()
	if in != nil {
		return in, nil
	}
	in, err := m.instantiate()
	if err != nil {
		return nil, err
	}
	if _, err := in.describe(); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// addInstance counts a new instance. It returns an error if the module is closed.
func (m *Module) addInstance() *policy.Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.retired {
		return fault(policy.FaultHost, "load it again", "module was closed")
	}
	m.live++
	return nil
}

// removeInstance uncounts an instance, and releases the module after the last one if it is
// retired.
func (m *Module) removeInstance() {
	m.mu.Lock()
	m.live--
	last := m.retired && m.live == 0
	m.mu.Unlock()
	if last {
		m.release()
	}
}

// Close retires the module, which starts no more instances. Existing ones continue, and the
// compiled code is released with the last. It may be called again.
func (m *Module) Close() {
	m.mu.Lock()
	if m.retired {
		m.mu.Unlock()
		return
	}
	m.retired = true
	in, last := m.spare, m.live == 0
	m.spare = nil
	m.mu.Unlock()
	if in != nil {
		in.Close() // releases the module if it was the last one
	} else if last {
		m.release()
	}
}

// release frees the runtime and the compiled code. Closing them fails only for open files,
// which guests do not have.
func (m *Module) release() {
	m.host.compiling.Lock()
	defer m.host.compiling.Unlock()
	ctx := context.Background()
	if m.compiled != nil {
		_ = m.compiled.Close(ctx)
	}
	if m.runtime != nil {
		_ = m.runtime.Close(ctx)
	}
}
