package wasm

import (
	"context"
	"sync"

	"github.com/tetratelabs/wazero"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Module is the code of a policy, compiled.
type Module struct {
	host        *Host
	digest      string
	name        string
	version     string
	limits      policy.Limits
	takesConfig bool // configuration
	settings    []sdk.Setting
	runtime     wazero.Runtime
	compiled    wazero.CompiledModule
	log         *guestlog.Log

	mu      sync.Mutex
	spare   *instance // started and described, for the next Start
	live    int       // instances that are not closed; the spare one is counted
	retired bool
}

var _ policy.Module = (*Module)(nil)

// Digest identifies the module: sha256 of the bytes that were loaded.
func (m *Module) Digest() string { return m.digest }

// Name is what the policy calls itself.
func (m *Module) Name() string { return m.name }

// Version is the policy's own version, for people; it may be empty.
func (m *Module) Version() string { return m.version }

// Limits are the limits that its calls are held to.
func (m *Module) Limits() policy.Limits { return m.limits }

// Settings is the configuration that the policy takes.
func (m *Module) Settings() []sdk.Setting { return m.settings }

// Start makes an instance and configures it.
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

// spareOrNew is an instance that was described and not configured.
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

// addInstance counts one more instance.
func (m *Module) addInstance() *policy.Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.retired {
		return fault(policy.FaultHost, "load it again", "the module was closed")
	}
	m.live++
	return nil
}

// removeInstance counts one instance less.
func (m *Module) removeInstance() {
	m.mu.Lock()
	m.live--
	last := m.retired && m.live == 0
	m.mu.Unlock()
	if last {
		m.release()
	}
}

// Close retires the module: it starts no more instances. Those there are go on,
// and with the last of them the compiled code goes. It may be called again.
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
		in.Close() // frees the module if it was the last one
	} else if last {
		m.release()
	}
}

// release gives back what the engine holds. Closing only fails for files, and a
// guest has none.
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
