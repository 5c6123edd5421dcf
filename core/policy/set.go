package policy

import (
	"fmt"
	"slices"
	"strings"
)

// DefaultName is the policy that decides what others leave open.
const DefaultName = "default"

// Set is the versions a scheduler works with, by name. It is immutable; a
// change makes another one, and a scheduler keeps one for a whole evaluation.
type Set struct {
	byName   map[string]*Version
	fallback *Version
	override *Version // decides everything, whatever jobs ask for
}

// NewSet makes a set. One of the versions must be named default.
func NewSet(versions ...*Version) (*Set, error) {
	s := &Set{byName: make(map[string]*Version, len(versions))}
	for _, v := range versions {
		if s.byName[v.Name] != nil {
			return nil, fmt.Errorf("two policies are named %s", v.Name)
		}
		s.byName[v.Name] = v
	}
	if s.fallback = s.byName[DefaultName]; s.fallback == nil {
		return nil, fmt.Errorf("a set of policies needs one named %s", DefaultName)
	}
	return s, nil
}

// Override returns a set in which v decides for every job.
func (s *Set) Override(v *Version) *Set {
	return &Set{byName: s.byName, fallback: s.fallback, override: v}
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
