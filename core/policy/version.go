package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// GrantKeepRedundant lets the victim lists of a version stand whole.
const GrantKeepRedundant = "keepRedundant"

// Grants lists what an operator may grant a version.
var Grants = []string{GrantKeepRedundant}

// Source says what a version is made of, and how the operator wants it run.
type Source struct {
	Name   string // the name operators use
	Module Module
	Config []byte // JSON object; empty means {}
	Grants []string

	OnFault OnFault
	// Observe is told of every call of a hook; nil: nobody is. It is called from
	// many goroutines.
	Observe func(Call)
	// OnClosed is called once the version is retired and its last instance closed;
	// nil: nobody is told.
	OnClosed func()
}

// Version is a policy that is ready to be asked: a module with its
// configuration, identified by one hash.
type Version struct {
	Name    string
	ID      string // sha256 over module digest and canonical configuration
	Digest  string // of the module
	Grants  []string
	OnFault OnFault
	Breaker Breaker

	info    sdk.Info
	hooks   Hooks
	module  Module
	config  *sdk.Config
	observe func(Call)
	closed  func()

	mu      sync.Mutex
	idle    []Instance
	out     int  // instances that were handed out
	holders int  // sets and others
	retired bool // by the last of them

	calls, faults, fallbacks atomic.Int64
}

// NewVersion starts one instance, to learn what the policy is, and keeps it
// for the first Acquire.
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
		info: first.Info(), hooks: first.Hooks(), module: src.Module, config: config, idle: []Instance{first},
	}
	if v.info.Adaptive && !v.hooks.Has(HookScoreVictims) {
		first.Close()
		return nil, fmt.Errorf("policy %s declares adaptive but has no ScoreVictims", src.Name)
	}
	return v, nil
}

// startError is why a first instance did not start; a refusal that is no fault
// is about the configuration.
func startError(name string, err error) error {
	if fault, ok := errors.AsType[*Error](err); ok {
		named := *fault // a host has another name for it
		named.Policy = name
		return &named
	}
	return fmt.Errorf("policy %s: configuration: %w", name, err)
}

// Info is what the policy says of itself.
func (v *Version) Info() sdk.Info { return v.info }

// Hooks is what the policy implements.
func (v *Version) Hooks() Hooks { return v.hooks }

// Settings is the configuration that the policy takes.
func (v *Version) Settings() []sdk.Setting { return v.module.Settings() }

// Config is the configuration in its canonical spelling.
func (v *Version) Config() []byte { return settings.Canonical(v.config) }

// KeepsRedundant is whether the lists of SelectVictims stand whole: the policy
// asks for it and the operator granted it.
func (v *Version) KeepsRedundant() bool {
	return v.info.KeepRedundant && slices.Contains(v.Grants, GrantKeepRedundant)
}

// Acquire hands out an instance for one goroutine; give it back with Release.
// What was started once and cannot be started again is a fault.
func (v *Version) Acquire() (Instance, error) { return v.AcquireObserved(nil) }

// AcquireObserved is Acquire for somebody who wants to be told of every call of the
// instance; nil: nobody does.
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
		in.Close() // a process can die while nobody asks it
	}
	in, err := v.module.Start(v.config)
	if err != nil {
		v.back()
	}
	return in, err
}

// idler takes the instance that was given back last; nil: there is none.
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

// back counts an instance that is no longer in use.
func (v *Version) back() {
	v.mu.Lock()
	v.out--
	last := v.retired && v.out == 0
	v.mu.Unlock()
	if last && v.closed != nil {
		v.closed()
	}
}

// Release takes an instance back, and closes it where it is of no more use.
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

// AddRef keeps the version ready until Drop. Every set holds its versions.
func (v *Version) AddRef() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.retired {
		panic("policy: a version is held that everybody dropped")
	}
	v.holders++
}

// ReleaseRef ends a Hold. With the last of them the version is retired: idle
// instances are closed, others when they come back.
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

// RecordCall counts a call and, when err is a fault, the fault. It returns err as
// an *Error that names the version and the hook; nil stays nil.
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
	named := *fault // a host knows neither the version nor its name
	named.Policy, named.Version, named.Hook = v.Name, v.ID, hook
	return &named
}

// RecordBadAnswer is the fault of an answer that breaks a rule.
func (v *Version) RecordBadAnswer(hook, format string, args ...any) error {
	v.faults.Add(1)
	return &Error{Policy: v.Name, Version: v.ID, Hook: hook, Fault: FaultAnswer, Err: fmt.Errorf(format, args...)}
}

// RecordFallback counts an evaluation in which default decided instead.
func (v *Version) RecordFallback() { v.fallbacks.Add(1) }

// Stats counts hook calls and faults so far.
func (v *Version) Stats() (calls, faults int64) { return v.calls.Load(), v.faults.Load() }

// Instances counts those that wait to be asked and those that are handed out.
func (v *Version) Instances() (idle, busy int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.idle), v.out
}

// Fallbacks counts evaluations in which default decided instead.
func (v *Version) Fallbacks() int64 { return v.fallbacks.Load() }

func versionID(digest string, config []byte) string {
	h := sha256.New()
	h.Write([]byte(digest))
	h.Write([]byte{0})
	h.Write(config)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// BuiltinDigest stands for a module's digest where there is no module: it
// hashes the built-in's name and the version of its rules.
func BuiltinDigest(name, rules string) string {
	sum := sha256.Sum256([]byte("builtin\x00" + name + "\x00" + rules))
	return "sha256:" + hex.EncodeToString(sum[:])
}
