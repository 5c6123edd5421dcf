package process

import (
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

// LoadOptions say which executable is meant, and how it is run.
type LoadOptions struct {
	// SHA256 is the checksum that the executable must have, in hexadecimal, with
	// or without "sha256:" before it. Empty: any; whoever names the path vouches.
	SHA256 string
	// Limits of calls; where a field is zero, the host's.
	Limits policy.Limits
	// Args and Env are given to the process, which gets no other environment.
	// They are no part of the policy's identity: a policy that decides by them
	// breaks the rule that its version says all.
	Args, Env []string
}

// Module is an executable that policies are started from.
type Module struct {
	host        *Host
	digest      string
	name        string
	version     string
	limits      policy.Limits
	takesConfig bool // configuration
	settings    []sdk.Setting
	program     program
	backoff     backoff
	log         *slog.Logger

	mu      sync.Mutex
	spare   *instance // started and described, for the next Start
	retired bool
}

var _ policy.Module = (*Module)(nil)

// Load takes an executable for a policy, starts it once, and asks it what it
// is. An error is a *policy.Error.
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

// loadError says which policy is not loaded: by its name, or by the beginning of
// its digest where it came to none.
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
	if named.Hook == "" {
		named.Hook = "load"
	}
	return &named
}

// describeFirst starts the first instance and learns from it what the policy is.
// The instance is kept for the first Start.
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
	return nil
}

// validate checks what a policy says of itself, and takes its settings.
func (m *Module) validate(d *abi.Description) (err error) {
	var errs []error
	if d.Info.Name == "" || d.Info.Name != guestlog.Clean(d.Info.Name, abi.NameCap) || strings.ContainsRune(d.Info.Name, ' ') {
		errs = append(errs, fmt.Errorf("it calls itself %q; a name is printable, without spaces, and at most %d bytes long",
			guestlog.Clean(d.Info.Name, abi.NameCap), abi.NameCap))
	}
	if !d.Configurable && len(d.Settings) > 0 && string(d.Settings) != "[]" {
		errs = append(errs, errors.New("it declares settings and does not say that it takes configuration"))
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
		return errors.New("it implements no hook")
	case d.Hooks&^all != 0:
		return fmt.Errorf("it says that it has hooks which there are not: %#x", d.Hooks&^all)
	}
	return nil
}

// Digest identifies the executable: sha256 of its bytes.
func (m *Module) Digest() string { return m.digest }

// Name is what the policy calls itself.
func (m *Module) Name() string { return m.name }

// Version is the policy's own version, for people; it may be empty.
func (m *Module) Version() string { return m.version }

// Limits are the limits that its calls are held to.
func (m *Module) Limits() policy.Limits { return m.limits }

// Settings is the configuration that the policy takes.
func (m *Module) Settings() []sdk.Setting { return m.settings }

// Start starts a process and configures it. After a failure it waits a while,
// after too many in a row it refuses.
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

// spareOrNew is an instance that was described and not configured.
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

// launch starts an instance and asks it what it is.
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

// configure hands the configuration over; what the policy says of itself after
// that counts.
func (i *instance) configure(c *sdk.Config) error {
	if !i.m.takesConfig {
		return nil
	}
	i.encoder.Configure(c)
	if _, err := i.request(abi.OpConfigure); err != nil {
		if _, isFault := errors.AsType[*policy.Error](err); isFault {
			return withOperation(abi.OpConfigure, err)
		}
		return err // its own objection to what it was given
	}
	d, err := i.describe()
	if err != nil {
		return err
	}
	if d.Info.Name != i.m.name {
		return withOperation(abi.OpDescribe, fault(policy.FaultABI, "answer the same name always", "it has another name since it was configured"))
	}
	if err := checkHooks(d); err != nil {
		return withOperation(abi.OpDescribe, fault(policy.FaultABI, hintRebuild, "%w", err))
	}
	return nil
}

// recordOutcome counts a strike where the process is lost, and clears them where it has
// answered.
func (m *Module) recordOutcome(i *instance, err error) {
	bad, isFault := errors.AsType[*policy.Error](err)
	switch {
	case err == nil:
		m.backoff.reset(i.epoch)
	case !isFault || bad.Fault == policy.FaultHost || i.p != nil && i.Alive():
		// its own objection, or ours, or nothing that a restart would mend
	default:
		wait, left := m.backoff.recordFailure(i.epoch, bad)
		if m.name == "" {
			return // it is being loaded, and will not be
		}
		m.log.Warn("the process of the policy was lost", "err", bad, "restart_in", wait, "strikes_left", left)
	}
}

func (m *Module) isRetired() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.retired
}

// Close retires the module: it starts no more processes. Those there are go on
// until they are closed. It may be called again.
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
