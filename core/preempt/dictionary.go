package preempt

import (
	"cmp"
	"maps"
	"slices"
)

// dictionary numbers the strings of a search; 0 is the empty one.
type dictionary struct {
	ids  map[string]int32
	list []string
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
