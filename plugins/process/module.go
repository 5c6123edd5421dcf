package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// LoadOptions select an executable and how to run it.
type LoadOptions struct {
	// SHA256 is the required checksum in hexadecimal, with or without the prefix "sha256:".
	// If it is empty, any executable at the path is accepted.
	SHA256 string
	// Limits of calls; zero fields select the host's limits.
	Limits policy.Limits
	// Args and Env are passed to the process, which receives no other environment. They are
	// not part of the policy's identity: if decisions depend on them, equal versions can
	// decide differently.
	Args, Env []string
}

// A Module is an executable from which policy processes are started.
type Module struct {
	host        *Host
	digest      string
	name        string
	version     string
	limits      policy.Limits
	takesConfig bool // the policy accepts configuration
	settings    []sdk.Setting
	program     program
	backoff     backoff
	log         *slog.Logger

	mu      sync.Mutex
	spare   *instance // started and described, for the next Start
	retired bool
}

var _ policy.Module = (*Module)(nil)

// Load prepares an executable, starts it once, and reads its description. Errors are of
// type *policy.Error.
func (h *Host) Load(ctx context.Context, path string, o LoadOptions) (*Module, error) {
	file, digest, err := h.acquireExecutable(ctx, path, o.SHA256)
	if err != nil {
		return nil, loadError("", digest, err)
	}
	m := &Module{
		host: h, digest: digest, limits: o.Limits.WithDefaults(h.options.Limits),
		backoff: backoff{restart: h.options.Restart}, log: h.log.With("digest", digest),
	}
	m.program = program{file: file, args: o.Args, env: o.Env, memory: m.limits.Memory, log: guestlog.New(m.log, abi.MaxLog)}
	if err := m.describeFirst(ctx); err != nil {
		m.Close()
		return nil, loadError(m.name, digest, err)
	}
	return m, nil
}

// loadError returns err with the name of the policy, or the start of its digest if the name
// is unknown.
func loadError(name, digest string, err error) error {
	e, ok := errors.AsType[*policy.Error](err)
	if !ok {
		e = &policy.Error{Fault: policy.FaultHost, Err: err}
	}
	named := *e
	named.Policy, named.Version = name, digest
	if name == "" && digest != "" {
		named.Policy = digest[:len(digestPrefix)+12]
	}
	named.Hook = cmp.Or(named.Hook, "load")
	return &named
}

// describeFirst starts the first instance and reads the description of the policy. It keeps
// the instance for the first Start.
func (m *Module) describeFirst(ctx context.Context) error {
	i, d, err := m.launch(ctx)
	if err != nil {
		return err
	}
	if err := m.validate(d); err != nil {
		i.Close()
		return err
	}
	m.name, m.version, m.takesConfig = d.Info.Name, clean(d.Version), d.Configurable
	m.log = m.log.With("policy", m.name)
	m.program.log.Rename(m.log)
	m.spare = i
	if m.host.isolation == "" {
		m.log.WarnContext(ctx, "policy process is not isolated: it can read the files of this user", "hint", "use a kernel with Landlock, or a WebAssembly module")
	}
	return nil
}

// validate checks the description of a policy and decodes its settings.
func (m *Module) validate(d *abi.Description) (err error) {
	var errs []error
	if d.Info.Name == "" || d.Info.Name != guestlog.Clean(d.Info.Name, abi.NameCap) || strings.ContainsRune(d.Info.Name, ' ') {
		errs = append(errs, fmt.Errorf("invalid name %q: must be printable, without spaces, and at most %d bytes long",
			guestlog.Clean(d.Info.Name, abi.NameCap), abi.NameCap))
	}
	if !d.Configurable && len(d.Settings) > 0 && string(d.Settings) != "[]" {
		errs = append(errs, errors.New("settings are declared, but configuration is not accepted"))
	}
	if m.settings, err = settings.Decode(d.Settings); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, checkHooks(d))
	if err := errors.Join(errs...); err != nil {
		return withOperation(abi.OpDescribe, fault(policy.FaultABI, hintRebuild, "%s", strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
	return nil
}

func checkHooks(d *abi.Description) error {
	const all = abi.HookPriorityDelta | abi.HookScoreVictims | abi.HookSelectVictims | abi.HookScoreOptions |
		abi.HookPreemptBindings
	switch {
	case d.Hooks == 0:
		return errors.New("no hook is implemented")
	case d.Hooks&^all != 0:
		return fmt.Errorf("unknown hooks are declared: %#x", d.Hooks&^all)
	}
	return nil
}

// Digest returns the SHA-256 of the executable.
func (m *Module) Digest() string { return m.digest }

// Name returns the name in the policy's description.
func (m *Module) Name() string { return m.name }

// Version returns the policy's own version, which may be empty.
func (m *Module) Version() string { return m.version }

// Limits returns the limits of its calls.
func (m *Module) Limits() policy.Limits { return m.limits }

// Isolation describes the sandbox of its processes; see Host.Isolation.
func (m *Module) Isolation() string { return m.host.Isolation() }

// Settings returns the settings that the policy accepts.
func (m *Module) Settings() []sdk.Setting { return m.settings }

// Start starts and configures a process. After a failure it waits, and after too many in a
// row it returns ErrTooManyFailures.
func (m *Module) Start(c *sdk.Config) (policy.Instance, error) {
	i, err := m.spareOrNew()
	if err != nil {
		return nil, err
	}
	if err := i.configure(c); err != nil {
		i.Close()
		m.recordOutcome(i, err)
		return nil, err
	}
	return i, nil
}

// spareOrNew returns an instance that is described and not configured.
func (m *Module) spareOrNew() (*instance, error) {
	m.mu.Lock()
	i := m.spare
	m.spare = nil
	m.mu.Unlock()
	if i != nil && i.Alive() {
		return i, nil
	}
	if err := m.backoff.wait(m.host.done); err != nil {
		return nil, err
	}
	i, _, err := m.launch(context.Background())
	return i, err
}

// launch starts an instance and reads its description.
func (m *Module) launch(ctx context.Context) (*instance, *abi.Description, error) {
	i := &instance{m: m, epoch: m.backoff.currentEpoch()}
	if m.isRetired() {
		return nil, nil, closedFault()
	}
	p, bad := m.host.start(ctx, &m.program)
	if bad != nil {
		m.recordOutcome(i, bad)
		return nil, nil, bad
	}
	i.p = p
	d, err := i.describe()
	if err != nil {
		i.Close()
		m.recordOutcome(i, err)
		return nil, nil, err
	}
	return i, d, nil
}

// describe reads the description of the policy.
func (i *instance) describe() (*abi.Description, error) {
	i.encoder.Describe()
	frame, err := i.request(abi.OpDescribe)
	if err != nil {
		return nil, withOperation(abi.OpDescribe, err)
	}
	d, err := i.encoder.Description(frame)
	if err != nil {
		return nil, withOperation(abi.OpDescribe, &policy.Error{Fault: policy.FaultABI, Err: err})
	}
	i.info, i.hooks = d.Info, policy.Hooks(d.Hooks)
	return &d, nil
}

// configure sends the configuration. The description that follows replaces the first one.
func (i *instance) configure(c *sdk.Config) error {
	if !i.m.takesConfig {
		return nil
	}
	i.encoder.Configure(c)
	if _, err := i.request(abi.OpConfigure); err != nil {
		if _, isFault := errors.AsType[*policy.Error](err); isFault {
			return withOperation(abi.OpConfigure, err)
		}
		return err // error of the policy, not a fault
	}
	d, err := i.describe()
	if err != nil {
		return err
	}
	if d.Info.Name != i.m.name {
		return withOperation(abi.OpDescribe, fault(policy.FaultABI, "return the same name always", "name changed after configuration"))
	}
	if err := checkHooks(d); err != nil {
		return withOperation(abi.OpDescribe, fault(policy.FaultABI, hintRebuild, "%w", err))
	}
	return nil
}

// recordOutcome records a failure if the process is lost, and resets the backoff if it has
// answered.
func (m *Module) recordOutcome(i *instance, err error) {
	bad, isFault := errors.AsType[*policy.Error](err)
	switch {
	case err == nil:
		m.backoff.reset(i.epoch)
	case !isFault || bad.Fault == policy.FaultHost || i.p != nil && i.Alive():
		// an error of the policy or of the host, which a restart would not fix
	default:
		wait, left := m.backoff.recordFailure(i.epoch, bad)
		if m.name == "" {
			return // the module is not loaded yet and will not be
		}
		m.log.Warn("policy process was lost", "err", bad, "restart_in", wait, "strikes_left", left)
	}
}

// isRetired reports whether Close was called.
func (m *Module) isRetired() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.retired
}

// Close retires the module, which starts no more processes. Existing ones run until they
// are closed. It may be called again.
func (m *Module) Close() {
	m.mu.Lock()
	first, spare := !m.retired, m.spare
	m.retired, m.spare = true, nil
	m.mu.Unlock()
	if spare != nil {
		spare.Close()
	}
	if first {
		m.host.releaseExecutable(m.digest)
	}
}
