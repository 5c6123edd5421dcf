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

// NewSet makes a set. One of the versions must be named default: it decides
// what others leave open.
func NewSet(versions ...*Version) (*Set, error) {
	for _, v := range versions {
		if v.Name == DefaultName {
			return NewSetWithFallback(v, versions...)
		}
	}
	return nil, fmt.Errorf("a set of policies needs one named %s", DefaultName)
}

// NewSetWithFallback makes a set in which fallback decides what others leave open,
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

// Override returns a set in which v decides for every job.
func (s *Set) Override(v *Version) *Set {
	o := &Set{byName: s.byName, fallback: s.fallback, override: v, pins: 1}
	for _, v := range o.Versions() {
		v.AddRef()
	}
	return o
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
	for _, v := range s.Versions() {
		v.ReleaseRef()
	}
}

// Select is the version for a job that names jobPolicy under a configuration
// that names clusterPolicy; empty names do not count.
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
		return nil, fmt.Errorf("there is no policy named %q; loaded are %s", name, strings.Join(s.Names(), ", "))
	}
	if v := s.byName[DefaultName]; v != nil {
		return v, nil
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

// Versions lists the versions, ascending by name, and after them the one that
// overrides them and the one behind them where they are others.
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
