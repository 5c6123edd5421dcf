package preempt

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// dictionary numbers the strings of a search; 0 is the empty one.
type dictionary struct {
	ids    map[string]int32
	list   []string
	groups map[*model.Group]groupIDs
}

// groupIDs are the ids of a group's namespace, its job, and itself.
type groupIDs struct{ namespace, job, group int32 }

// reset forgets everything: a search numbers anew, so that no string of work
// that is long gone is kept.
func (s *dictionary) reset() {
	clear(s.ids)
	clear(s.groups)
	s.list = s.list[:min(1, len(s.list))]
}

// group finds a group's ids. Many rows are of one group, whose names need to be
// put together only once.
func (s *dictionary) group(g *model.Group) groupIDs {
	ids, ok := s.groups[g]
	if !ok {
		job := g.Job.Namespace + "\x00" + g.Job.ID
		ids = groupIDs{s.id(g.Job.Namespace), s.id(job), s.id(job + "\x00" + g.Name)}
		if s.groups == nil {
			s.groups = map[*model.Group]groupIDs{}
		}
		s.groups[g] = ids
	}
	return ids
}

func (s *dictionary) id(text string) int32 {
	if text == "" {
		return 0
	}
	if id, ok := s.ids[text]; ok {
		return id
	}
	if s.ids == nil {
		s.ids, s.list = map[string]int32{}, []string{""}
	}
	id := int32(len(s.list))
	s.ids[text] = id
	s.list = append(s.list, text)
	return id
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
