package policymgr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// activeSet keeps the active set of policies equal to the newest state.
type activeSet struct {
	store    *state.Store
	versions *versionTable
	logger   *slog.Logger
	set      *policy.ActiveSet
	fallback *policy.Version            // the builtin default
	builtins map[string]*policy.Version // by name, each with a reference
	// onChange is called with the active versions by name, and the fallback, whenever they
	// change.
	onChange func(versions map[string]*policy.Version, fallback *policy.Version)

	mu        sync.Mutex
	roles     []activeRole // that the set was made of, ascending by name
	missing   []activeRole // active, and not opened here
	complete  chan struct{}
	listeners []func(name string)
	closed    bool
}

// activeRole is a version that is active under a name.
type activeRole struct{ name, version string }

func newActiveSet(store *state.Store, versions *versionTable, builtins []*policy.Version, logger *slog.Logger, onChange func(map[string]*policy.Version, *policy.Version)) (*activeSet, error) {
	a := &activeSet{store: store, versions: versions, logger: logger, onChange: onChange, builtins: map[string]*policy.Version{}, complete: make(chan struct{})}
	close(a.complete)
	for _, v := range builtins {
		a.builtins[v.Name] = v
		v.AddRef()
	}
	set, err := policy.NewSet(builtins...)
	if err != nil {
		return nil, err
	}
	a.fallback = set.Default()
	a.set = policy.NewActiveSet(set)
	onChange(maps.Clone(a.builtins), a.fallback)
	return a, nil
}

// pin returns the active set of the newest state. The caller must unpin it.
func (a *activeSet) pin() *policy.Set {
	a.update()
	return a.set.Pin()
}

// update replaces the active set if the newest state requires another one.
func (a *activeSet) update() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if states := a.store.Snapshot().PolicyStates(); !a.closed && !matchesRoles(a.roles, states) {
		a.replace(states)
	}
}

// matchesRoles reports whether roles are those of the state.
func matchesRoles(roles []activeRole, states []*model.PolicyState) bool {
	for _, s := range states {
		if s.Active == "" {
			continue
		}
		if len(roles) == 0 || roles[0].name != s.Name || roles[0].version != s.Active {
			return false
		}
		roles = roles[1:]
	}
	return len(roles) == 0
}

// replace makes the active set that the states require. a.mu is held.
func (a *activeSet) replace(states []*model.PolicyState) {
	before := a.roles
	versions := maps.Clone(a.builtins)
	a.roles, a.missing = nil, nil
	for _, s := range states {
		if s.Active == "" {
			continue
		}
		role := activeRole{s.Name, s.Active}
		a.roles = append(a.roles, role)
		v := a.versions.acquire(s.Active)
		if v == nil {
			a.missing = append(a.missing, role)
			v = missingVersion(role)
		} else {
			defer v.ReleaseRef() // by then the set holds a reference of its own
			if !slices.Contains(before, role) {
				v.Breaker.Reset() // faults of an earlier activation do not count
			}
		}
		versions[s.Name] = v
	}
	set, err := policy.NewSetWithFallback(a.fallback, slices.Collect(maps.Values(versions))...)
	if err != nil {
		panic("policymgr: " + err.Error()) // names of a map are unique
	}
	a.set.Swap(set)
	for _, listener := range a.listeners {
		for name := range versions {
			listener(name)
		}
	}
	a.onChange(versions, a.fallback)
	a.updateComplete()
	for _, role := range a.roles {
		if !slices.Contains(before, role) {
			a.logger.Info("policy activated", "policy", role.name, "version", role.version, "ready", !slices.Contains(a.missing, role))
		}
	}
}

// opened replaces the active set if a version was missing and has been opened.
func (a *activeSet) opened(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed && slices.ContainsFunc(a.missing, func(r activeRole) bool { return r.version == id }) {
		a.replace(a.store.Snapshot().PolicyStates())
	}
}

// onName calls f for every name under which a policy is active, now and in future.
func (a *activeSet) onName(f func(name string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listeners = append(a.listeners, f)
	set := a.set.Pin() // not a.pin, which locks a.mu
	defer set.Unpin()
	for _, v := range set.Versions() {
		f(v.Name)
	}
}

// isActive reports whether a version is active under its name in the state. A builtin
// policy that no state names is not: there is no version to roll back to.
func (a *activeSet) isActive(v *policy.Version) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.roles, activeRole{v.Name, v.ID})
}

// updateComplete opens or closes the gate for workers. a.mu is held.
func (a *activeSet) updateComplete() {
	open := true
	select {
	case <-a.complete:
	default:
		open = false
	}
	switch {
	case len(a.missing) > 0 && open:
		a.complete = make(chan struct{})
	case len(a.missing) == 0 && !open:
		close(a.complete)
	}
}

func (a *activeSet) waitReady(ctx context.Context) error {
	for {
		a.update()
		a.mu.Lock()
		complete, missing := a.complete, len(a.missing) > 0
		a.mu.Unlock()
		if !missing {
			return nil
		}
		select {
		case <-complete:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *activeSet) ready() (ready bool, detail string) {
	a.update()
	a.mu.Lock()
	defer a.mu.Unlock()
	var reasons []string
	for _, role := range a.missing {
		reason := "it is being opened"
		if e, tried := a.versions.get(role.version); tried && e.failure != "" {
			reason = e.failure
		}
		reasons = append(reasons, fmt.Sprintf("%s %s is active and not ready here: %s", role.name, model.ShortVersion(role.version), reason))
	}
	return len(a.missing) == 0, strings.Join(reasons, "; ")
}

// close activates the builtin policies for good, and reports whether it had not been
// called before.
func (a *activeSet) close() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.closed = true
	set, err := policy.NewSetWithFallback(a.fallback, slices.Collect(maps.Values(a.builtins))...)
	if err != nil {
		panic("policymgr: " + err.Error()) // names of a map are unique
	}
	a.set.Swap(set)
	return true
}

// errMissing is the fault of an active version that this server has not opened.
var errMissing = errors.New("this server has not opened the active version; its workers wait for it")

// missingVersion returns a stand-in for an active version that is not opened. Workers
// wait, so that only evaluations in progress call it; it evicts nothing.
func missingVersion(r activeRole) *policy.Version {
	v, err := policy.NewVersion(policy.Source{
		Name:   r.name,
		Module: policy.Native(r.version, func() sdk.Policy { return missingPolicy{r.name} }),
	})
	if err != nil {
		panic("policymgr: " + err.Error()) // a native policy cannot fail
	}
	return v
}

type missingPolicy struct{ name string }

var (
	_ sdk.DeltaHook    = missingPolicy{}
	_ sdk.VictimScorer = missingPolicy{}
)

func (p missingPolicy) Info() sdk.Info { return sdk.Info{Name: p.name} }

func (missingPolicy) PriorityDelta(*sdk.Candidates, []int32, *sdk.Recheck) error {
	return missingFault()
}

func (missingPolicy) ScoreVictims(*sdk.Candidates, *sdk.VictimScores) error { return missingFault() }

func missingFault() error { return &policy.Error{Fault: policy.FaultHost, Err: errMissing} }
