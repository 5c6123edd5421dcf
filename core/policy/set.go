package policy

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/suggest"
)

// DefaultName is the policy that decides what others leave open.
const DefaultName = model.DefaultPolicy

// A Set maps names to the versions that a scheduler uses. It is immutable; a change
// creates another set, and a scheduler uses one set for a whole evaluation.
//
// The creator of a set holds it. It is released by Unpin, called by the creator and
// by every caller of Pin. After the last Unpin, versions that are in no other set
// close their instances.
type Set struct {
	byName   map[string]*Version
	fallback *Version
	override *Version // used for every job

	mu   sync.Mutex
	pins int
}

// NewSet returns a set of versions. It returns an error if none is named default,
// which is used for jobs that name no policy.
func NewSet(versions ...*Version) (*Set, error) {
	for _, v := range versions {
		if v.Name == DefaultName {
			return NewSetWithFallback(v, versions...)
		}
	}
	return nil, fmt.Errorf("a set of policies needs one named %s", DefaultName)
}

// NewSetWithFallback returns a set that uses fallback for jobs that name no policy,
// whatever is named default.
func NewSetWithFallback(fallback *Version, versions ...*Version) (*Set, error) {
	s := &Set{byName: make(map[string]*Version, len(versions)), fallback: fallback, pins: 1}
	for _, v := range versions {
		if s.byName[v.Name] != nil {
			return nil, fmt.Errorf("two policies are named %s", v.Name)
		}
		s.byName[v.Name] = v
	}
	for _, v := range s.Versions() {
		v.AddRef()
	}
	return s, nil
}

// Override returns a set that uses v for every job.
func (s *Set) Override(v *Version) *Set {
	o := &Set{byName: s.byName, fallback: s.fallback, override: v, pins: 1}
	for _, v := range o.Versions() {
		v.AddRef()
	}
	return o
}

// Copy returns a set of copies of the versions, to make decisions again without a trace on
// them: see Version.Copy. s must be pinned until Copy returns.
func (s *Set) Copy(wrap func(*Version, Module) Module) (*Set, error) {
	copies := map[*Version]*Version{}
	defer func() {
		for _, c := range copies {
			c.ReleaseRef() // by then the set holds a reference
		}
	}()
	for _, v := range s.Versions() {
		c, err := v.Copy(wrap)
		if err != nil {
			return nil, err
		}
		c.AddRef()
		copies[v] = c
	}
	o := &Set{byName: make(map[string]*Version, len(s.byName)), fallback: copies[s.fallback], override: copies[s.override], pins: 1}
	for name, v := range s.byName {
		o.byName[name] = copies[v]
	}
	for _, c := range copies {
		c.AddRef()
	}
	return o, nil
}

// Pin keeps the versions of the set ready until Unpin.
func (s *Set) Pin() *Set {
	if !s.tryPin() {
		panic("policy: pinned a released set")
	}
	return s
}

func (s *Set) tryPin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins == 0 {
		return false
	}
	s.pins++
	return true
}

// Unpin releases the set.
func (s *Set) Unpin() {
	s.mu.Lock()
	s.pins--
	last := s.pins == 0
	s.mu.Unlock()
	if !last {
		return
	}
	for _, v := range s.Versions() {
		v.ReleaseRef()
	}
}

// Select returns the version for a job that names jobPolicy, under a configuration
// that names clusterPolicy; empty names are ignored. It returns an error if the
// name is unknown.
func (s *Set) Select(jobPolicy, clusterPolicy string) (*Version, error) {
	if s.override != nil {
		return s.override, nil
	}
	for _, name := range []string{jobPolicy, clusterPolicy} {
		if name == "" {
			continue
		}
		if v := s.byName[name]; v != nil {
			return v, nil
		}
		return nil, fmt.Errorf("unknown policy %q: %s", name, s.remedy(name))
	}
	if v := s.byName[DefaultName]; v != nil {
		return v, nil
	}
	return s.fallback, nil
}

// remedy returns how to use a policy that is not in the set. Settings are part of a loaded
// version: its name does not contain them.
func (s *Set) remedy(name string) string {
	names := s.Names()
	base, _, configured := strings.Cut(name, "?")
	if _, known := s.byName[base]; configured && known {
		return fmt.Sprintf("settings are given when a policy is loaded: cede policy load '%s' --activate, and then use the name %s; --name gives another name", name, base)
	}
	return suggest.DidYouMean(name, names, "load it, or use one of "+strings.Join(names, ", "))
}

// Default returns the version for jobs that name no policy.
func (s *Set) Default() *Version { return s.fallback }

// Names returns the names of the versions, ascending.
func (s *Set) Names() []string {
	names := make([]string, 0, len(s.byName))
	for name := range s.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Versions returns the versions, ascending by name, followed by the override and
// the fallback if they are not among them.
func (s *Set) Versions() []*Version {
	var list []*Version
	for _, name := range s.Names() {
		list = append(list, s.byName[name])
	}
	for _, v := range []*Version{s.override, s.fallback} {
		if v != nil && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}
