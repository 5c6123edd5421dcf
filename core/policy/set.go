package policy

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// DefaultName is the policy that decides what others leave open.
const DefaultName = "default"

// Set is the versions a scheduler works with, by name. What it holds never
// changes; a change makes another one, and a scheduler keeps one for a whole
// evaluation.
//
// Who makes a set holds it. It is given up with Unpin, by the maker and by
// everybody who pinned it; with the last of them its versions lose it, and
// those that are in no other set close their instances.
type Set struct {
	byName   map[string]*Version
	fallback *Version
	override *Version // decides everything, whatever jobs ask for

	mu   sync.Mutex
	pins int
}

// NewSet makes a set. One of the versions must be named default.
func NewSet(versions ...*Version) (*Set, error) {
	s := &Set{byName: make(map[string]*Version, len(versions)), pins: 1}
	for _, v := range versions {
		if s.byName[v.Name] != nil {
			return nil, fmt.Errorf("two policies are named %s", v.Name)
		}
		s.byName[v.Name] = v
	}
	if s.fallback = s.byName[DefaultName]; s.fallback == nil {
		return nil, fmt.Errorf("a set of policies needs one named %s", DefaultName)
	}
	for _, v := range versions {
		v.Hold()
	}
	return s, nil
}

// Override returns a set in which v decides for every job.
func (s *Set) Override(v *Version) *Set {
	o := &Set{byName: s.byName, fallback: s.fallback, override: v, pins: 1}
	for _, v := range o.all() {
		v.Hold()
	}
	return o
}

// all are the versions of the set, the one that overrides them too.
func (s *Set) all() []*Version {
	list := s.Versions()
	if s.override != nil && s.byName[s.override.Name] != s.override {
		list = append(list, s.override)
	}
	return list
}

// Pin keeps the set's versions ready until Unpin.
func (s *Set) Pin() *Set {
	if !s.tryPin() {
		panic("policy: a set is pinned that nobody holds")
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

// Unpin gives the set up.
func (s *Set) Unpin() {
	s.mu.Lock()
	s.pins--
	last := s.pins == 0
	s.mu.Unlock()
	if !last {
		return
	}
	for _, v := range s.all() {
		v.Drop()
	}
}

// Pick is the version for a job that names jobPolicy under a configuration
// that names clusterPolicy; empty names do not count.
func (s *Set) Pick(jobPolicy, clusterPolicy string) (*Version, error) {
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
		return nil, fmt.Errorf("there is no policy named %q; loaded are %s", name, strings.Join(s.Names(), ", "))
	}
	return s.fallback, nil
}

// Default is the version that decides what others leave open.
func (s *Set) Default() *Version { return s.fallback }

// Names lists the versions' names, ascending.
func (s *Set) Names() []string {
	names := make([]string, 0, len(s.byName))
	for name := range s.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Versions lists the versions, ascending by name.
func (s *Set) Versions() []*Version {
	names := s.Names()
	list := make([]*Version, len(names))
	for i, name := range names {
		list[i] = s.byName[name]
	}
	return list
}
