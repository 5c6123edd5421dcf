package columns

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Strings number the strings of a call: columns hold numbers, and policies look up the
// string in List. Number 0 is the empty string.
type Strings struct {
	List   []string
	ids    map[string]int32
	groups map[*model.Group]GroupIDs
}

// GroupIDs are the numbers of a group's namespace, its job and the group itself.
type GroupIDs struct{ Namespace, Job, Group int32 }

// Reset removes all strings. Each search numbers anew, so that the names of jobs that
// have long stopped are not retained.
func (s *Strings) Reset() {
	clear(s.ids)
	clear(s.groups)
	s.List = s.List[:min(1, len(s.List))]
}

// Group returns the numbers of a group. Many rows share a group, so that its names are
// concatenated only once.
func (s *Strings) Group(g *model.Group) GroupIDs {
	ids, ok := s.groups[g]
	if !ok {
		job := g.Job.Namespace + "\x00" + g.Job.ID
		ids = GroupIDs{s.ID(g.Job.Namespace), s.ID(job), s.ID(job + "\x00" + g.Name)}
		if s.groups == nil {
			s.groups = map[*model.Group]GroupIDs{}
		}
		s.groups[g] = ids
	}
	return ids
}

// ID returns the number of a string and adds it if necessary.
func (s *Strings) ID(text string) int32 {
	if text == "" {
		return 0
	}
	if id, ok := s.ids[text]; ok {
		return id
	}
	if s.ids == nil {
		s.ids, s.List = map[string]int32{}, []string{""}
	}
	id := int32(len(s.List))
	s.ids[text] = id
	s.List = append(s.List, text)
	return id
}

// sortedKeys returns the keys of a map in ascending order, so that map order never
// reaches a policy.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
