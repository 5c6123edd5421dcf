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

// Source says what a version is made of.
type Source struct {
	Name   string // the name operators use
	Module Module
	Config []byte // JSON object; empty means {}
	Grants []string
}

// Version is a policy that is ready to be asked: a module with its
// configuration, identified by one hash.
type Version struct {
	Name   string
	ID     string // sha256 over module digest and canonical configuration
	Grants []string

	info   sdk.Info
	hooks  Hooks
	module Module
	config *sdk.Config

	mu   sync.Mutex
	idle []Instance

	calls, faults atomic.Int64
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
	first, err := start(src.Name, src.Module, config)
	if err != nil {
		return nil, err
	}
	v := &Version{
		Name: src.Name, ID: versionID(src.Module.Digest(), settings.Canonical(config)), Grants: slices.Clone(src.Grants),
		info: first.Info(), hooks: first.Hooks(), module: src.Module, config: config, idle: []Instance{first},
	}
	if v.info.Adaptive && !v.hooks.Has(HookScoreVictims) {
		return nil, fmt.Errorf("policy %s declares adaptive but has no ScoreVictims", src.Name)
	}
	return v, nil
}

// start makes an instance; a refusal that is no fault is about the configuration.
func start(name string, m Module, config *sdk.Config) (Instance, error) {
	in, err := m.Start(config)
	if err == nil {
		return in, nil
	}
	if _, fault := errors.AsType[*Error](err); fault {
		return nil, err
	}
	return nil, fmt.Errorf("policy %s: configuration: %w", name, err)
}

// Info is what the policy says of itself.
func (v *Version) Info() sdk.Info { return v.info }

// Hooks is what the policy implements.
func (v *Version) Hooks() Hooks { return v.hooks }

// KeepsRedundant is whether the lists of SelectVictims stand whole: the policy
// asks for it and the operator granted it.
func (v *Version) KeepsRedundant() bool {
	return v.info.KeepRedundant && slices.Contains(v.Grants, GrantKeepRedundant)
}

// Acquire hands out an instance for one goroutine; give it back with Release.
func (v *Version) Acquire() (Instance, error) {
	v.mu.Lock()
	if n := len(v.idle); n > 0 {
		in := v.idle[n-1]
		v.idle = v.idle[:n-1]
		v.mu.Unlock()
		return in, nil
	}
	v.mu.Unlock()
	return start(v.Name, v.module, v.config)
}

// Release takes an instance back, and closes it where it is of no more use.
func (v *Version) Release(in Instance) {
	if !in.Alive() {
		in.Close()
		return
	}
	v.mu.Lock()
	v.idle = append(v.idle, in)
	v.mu.Unlock()
}

// Count adds calls made and, when err is a fault, the fault. It returns err as
// an *Error that names the version and the hook; nil stays nil.
func (v *Version) Count(hook string, err error) error {
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

// Misanswer is the fault of an answer that breaks a rule.
func (v *Version) Misanswer(hook, format string, args ...any) error {
	v.faults.Add(1)
	return &Error{Policy: v.Name, Version: v.ID, Hook: hook, Fault: FaultAnswer, Err: fmt.Errorf(format, args...)}
}

// Stats counts hook calls and faults so far.
func (v *Version) Stats() (calls, faults int64) { return v.calls.Load(), v.faults.Load() }

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
