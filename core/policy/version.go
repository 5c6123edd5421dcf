package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// GrantKeepRedundant allows a version to retain redundant victims.
const GrantKeepRedundant = "keepRedundant"

// Grants lists the grants that an operator may give a version.
var Grants = []string{GrantKeepRedundant}

// A Source describes a version and how the operator configured it.
type Source struct {
	Name   string // name for operators
	Module Module
	Config []byte // JSON object; empty means {}
	Grants []string

	OnFault OnFault
	// Observe is called after every call of a hook, from many goroutines; nil
	// disables it.
	Observe func(Call)
	// OnClosed is called once the version is retired and its last instance is
	// closed; nil disables it.
	OnClosed func()
}

// A Version is a policy that is ready to be called: a module with its
// configuration, identified by one hash.
type Version struct {
	Name    string
	ID      string // sha256 over module digest and canonical configuration
	Digest  string // of the module
	Grants  []string
	OnFault OnFault
	Breaker Breaker

	declared
	module  Module
	config  *sdk.Config
	observe func(Call)
	closed  func()

	mu      sync.Mutex
	idle    []Instance
	out     int  // acquired instances
	holders int  // references by sets and others
	retired bool // after the last reference was released

	calls, faults, fallbacks atomic.Int64
}

// declared is how the first instance describes the policy.
type declared struct {
	info    sdk.Info
	hooks   Hooks
	columns map[Hooks]sdk.Columns // by hook, if they differ; not modified
}

func describe(in Instance) declared {
	d := declared{info: in.Info(), hooks: in.Hooks()}
	if c, ok := in.(interface{ HookColumns() map[Hooks]sdk.Columns }); ok {
		d.columns = c.HookColumns()
	}
	return d
}

// NoIsolation is the isolation of a policy in a process without a sandbox, which has all
// rights of the user of this process.
const NoIsolation = "none"

// Isolation describes the sandbox in which the policy runs, such as WebAssembly. It is
// NoIsolation if there is none, and "" if the policy is part of this program.
func (v *Version) Isolation() string {
	if m, ok := v.module.(interface{ Isolation() string }); ok {
		return m.Isolation()
	}
	return ""
}

// PartOf returns the part of a composition that answers a hook, or several in the order in
// which they count; "" if the policy is not a composition.
func (v *Version) PartOf(hook Hooks) string {
	if m, ok := v.module.(interface{ Parts(hook Hooks) []string }); ok {
		return strings.Join(m.Parts(hook), ", then ")
	}
	return ""
}

// NewVersion starts one instance to read the policy's info, and keeps it for the
// first Acquire.
func NewVersion(src Source) (*Version, error) {
	config, err := settings.Read(src.Module.Settings(), src.Config)
	if err != nil {
		return nil, fmt.Errorf("policy %s: configuration: %w", src.Name, err)
	}
	for _, g := range src.Grants {
		if !slices.Contains(Grants, g) {
			return nil, fmt.Errorf("policy %s: unknown grant %q: want one of %v", src.Name, g, Grants)
		}
	}
	first, err := src.Module.Start(config)
	if err != nil {
		return nil, startError(src.Name, err)
	}
	v := &Version{
		Name: src.Name, ID: versionID(src.Module.Digest(), settings.Canonical(config)), Digest: src.Module.Digest(),
		Grants: slices.Clone(src.Grants), OnFault: src.OnFault, observe: src.Observe, closed: src.OnClosed,
		declared: describe(first), module: src.Module, config: config, idle: []Instance{first},
	}
	if v.info.Adaptive && !v.hooks.Has(HookScoreVictims) {
		first.Close()
		return nil, fmt.Errorf("policy %s declares adaptive but has no ScoreVictims", src.Name)
	}
	return v, nil
}

// startError returns the error of the first start. An error that is not a fault is
// about the configuration.
func startError(name string, err error) error {
	if fault, ok := errors.AsType[*Error](err); ok {
		named := *fault // the host uses another name
		named.Policy = name
		return &named
	}
	return fmt.Errorf("policy %s: configuration: %w", name, err)
}

// Copy returns a version of the same code and configuration with its own breaker, counters
// and instances, so that decisions can be made again without a trace on v. Calls of the copy
// are not observed. wrap replaces the module, for instance to record calls; nil does not. v
// must be referenced until Copy returns; it stays ready until the copy is retired.
func (v *Version) Copy(wrap func(*Version, Module) Module) (*Version, error) {
	v.AddRef()
	module := v.module
	if wrap != nil {
		module = wrap(v, module)
	}
	c, err := NewVersion(Source{Name: v.Name, Module: module, Config: v.Config(), Grants: v.Grants, OnFault: v.OnFault, OnClosed: v.ReleaseRef})
	if err != nil {
		v.ReleaseRef()
	}
	return c, err
}

// Info returns the policy's description of itself.
func (v *Version) Info() sdk.Info { return v.info }

// Columns returns the columns that a hook reads: those of Info, or fewer if the parts of a
// composition answer different hooks.
func (v *Version) Columns(hook Hooks) sdk.Columns {
	if columns, ok := v.columns[hook]; ok {
		return columns
	}
	return v.info.Columns
}

// ReadsWeights reports whether the policy reads the weights of namespaces.
func (v *Version) ReadsWeights() bool { return v.info.Columns.Has(sdk.SharedTables) }

// Hooks returns the hooks that the policy implements.
func (v *Version) Hooks() Hooks { return v.hooks }

// Settings returns the settings that the policy accepts.
func (v *Version) Settings() []sdk.Setting { return v.module.Settings() }

// Config returns the configuration in canonical form.
func (v *Version) Config() []byte { return settings.Canonical(v.config) }

// KeepsRedundant reports whether redundant victims of SelectVictims are retained:
// the policy requests it and the operator granted it.
func (v *Version) KeepsRedundant() bool {
	return v.info.KeepRedundant && slices.Contains(v.Grants, GrantKeepRedundant)
}

// Acquire returns an instance for one goroutine; the caller returns it with
// Release. If no instance can be started any more, that is a fault.
func (v *Version) Acquire() (Instance, error) { return v.AcquireObserved(nil) }

// AcquireObserved is Acquire with an observer of every call of the instance; nil
// disables it.
func (v *Version) AcquireObserved(tell func(Call)) (Instance, error) {
	in, err := v.acquire()
	if err != nil {
		return nil, v.RecordCall("Start", err)
	}
	if v.observe != nil || tell != nil {
		return &observed{Instance: in, version: v, caller: tell}, nil
	}
	return in, nil
}

func (v *Version) acquire() (Instance, error) {
	v.mu.Lock()
	v.out++
	v.mu.Unlock()
	for in := v.idler(); in != nil; in = v.idler() {
		if in.Alive() {
			return in, nil
		}
		in.Close() // a process can die while idle
	}
	in, err := v.module.Start(v.config)
	if err != nil {
		v.back()
	}
	return in, err
}

// idler returns the most recently released instance, or nil if there is none.
func (v *Version) idler() Instance {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := len(v.idle)
	if n == 0 {
		return nil
	}
	in := v.idle[n-1]
	v.idle = v.idle[:n-1]
	return in
}

// back records that an instance is no longer in use.
func (v *Version) back() {
	v.mu.Lock()
	v.out--
	last := v.retired && v.out == 0
	v.mu.Unlock()
	if last && v.closed != nil {
		v.closed()
	}
}

// Release returns an instance, and closes it if it cannot be used any more.
func (v *Version) Release(in Instance) {
	if o, ok := in.(*observed); ok {
		in = o.Instance
	}
	v.mu.Lock()
	keep := in.Alive() && !v.retired
	if keep {
		v.idle = append(v.idle, in)
	}
	v.mu.Unlock()
	if !keep {
		in.Close()
	}
	v.back()
}

// AddRef keeps the version ready until ReleaseRef. Every set holds a reference to
// its versions.
func (v *Version) AddRef() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.retired {
		panic("policy: a version is held that everybody dropped")
	}
	v.holders++
}

// ReleaseRef releases a reference. The last one retires the version: idle instances
// are closed at once, others when they are released.
func (v *Version) ReleaseRef() {
	v.mu.Lock()
	v.holders--
	if v.holders > 0 {
		v.mu.Unlock()
		return
	}
	idle := v.idle
	v.retired, v.idle = true, nil
	last := v.out == 0
	v.mu.Unlock()
	for _, in := range idle {
		in.Close()
	}
	if last && v.closed != nil {
		v.closed()
	}
}

// RecordCall counts a call and, if err is a fault, the fault. It returns err as an
// *Error that names the version and the hook, or nil if err is nil.
func (v *Version) RecordCall(hook string, err error) error {
	v.calls.Add(1)
	if err == nil {
		return nil
	}
	v.faults.Add(1)
	fault, ok := errors.AsType[*Error](err)
	if !ok {
		return &Error{Policy: v.Name, Version: v.ID, Hook: hook, Fault: FaultGuest, Err: err}
	}
	named := *fault // the host has neither the version nor its name
	named.Policy, named.Version, named.Hook = v.Name, v.ID, hook
	return &named
}

// RecordBadAnswer records and returns the fault of an answer that violates a rule.
func (v *Version) RecordBadAnswer(hook, format string, args ...any) error {
	v.faults.Add(1)
	return &Error{Policy: v.Name, Version: v.ID, Hook: hook, Fault: FaultAnswer, Err: fmt.Errorf(format, args...)}
}

// RecordFallback counts an evaluation in which the default policy was used instead.
func (v *Version) RecordFallback() { v.fallbacks.Add(1) }

// Stats returns the number of hook calls and faults.
func (v *Version) Stats() (calls, faults int64) { return v.calls.Load(), v.faults.Load() }

// Instances returns the number of idle and of acquired instances.
func (v *Version) Instances() (idle, busy int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.idle), v.out
}

// Fallbacks returns the number of evaluations in which the default policy was used
// instead.
func (v *Version) Fallbacks() int64 { return v.fallbacks.Load() }

func versionID(digest string, config []byte) string {
	h := sha256.New()
	h.Write([]byte(digest))
	h.Write([]byte{0})
	h.Write(config)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// BuiltinDigest returns the digest of a policy without a module: the hash of its
// name and the version of its rules.
func BuiltinDigest(name, rules string) string {
	sum := sha256.Sum256([]byte("builtin\x00" + name + "\x00" + rules))
	return "sha256:" + hex.EncodeToString(sum[:])
}
