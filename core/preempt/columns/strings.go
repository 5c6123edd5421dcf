package columns

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Strings numbers the strings of a search; 0 is the empty one.
type Strings struct {
	ids    map[string]int32
	List   []string
	groups map[*model.Group]GroupIDs
}

// GroupIDs are the ids of a group's namespace, its job, and itself.
type GroupIDs struct{ Namespace, Job, Group int32 }

// reset forgets everything: a search numbers anew, so that no string of work
// that is long gone is kept.
func (s *Strings) Reset() {
	clear(s.ids)
	clear(s.groups)
	s.List = s.List[:min(1, len(s.List))]
}

// group finds a group's ids. Many rows are of one group, whose names need to be
// put together only once.
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

func SortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
