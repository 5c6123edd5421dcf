package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// CheckExpect compares a result with the file's expectations and returns the
// differences, one sentence each.
func CheckExpect(f *scenario.File, r *Result) []string {
	if f.Expect == nil {
		return nil
	}
	var d []string
	d = append(d, checkPlacements(f.Expect.Placements, r.Placements)...)
	d = append(d, checkUnplaced(f.Expect.Unplaced, r.Unplaced)...)
	d = append(d, checkBindings(f.Expect.Bindings, r.Bindings)...)
	return append(d, checkRunning(f, r)...)
}

func checkPlacements(want *[]scenario.ExpectPlacement, got []Placement) (d []string) {
	return subset("placements", want, got, func(w scenario.ExpectPlacement, g Placement) bool {
		return matches((*int64)(w.At), int64(g.At)) && matches(w.Alloc, g.Alloc) && matches(w.Job, g.Job) &&
			matches(w.Group, g.Group) && matches(w.Node, g.Node) &&
			(w.Preempted == nil || sameSet(*w.Preempted, g.Preempted)) &&
			(w.PreemptedElsewhere == nil || sameSets(w.PreemptedElsewhere, g.PreemptedElsewhere))
	})
}

func checkUnplaced(want *[]scenario.ExpectUnplaced, got []Unplaced) []string {
	return subset("unplaced", want, got, func(w scenario.ExpectUnplaced, g Unplaced) bool {
		return matches(w.Job, g.Job) && matches(w.Group, g.Group) && matches(w.Binding, g.Binding) &&
			matches(w.Count, g.Count)
	})
}

func checkBindings(want *[]scenario.ExpectBinding, got []Binding) []string {
	return subset("bindings", want, got, func(w scenario.ExpectBinding, g Binding) bool {
		return matches((*int64)(w.At), int64(g.At)) && matches(w.Binding, g.Binding) && onClusters(w.Clusters, g.Clusters) &&
			(w.Preempted == nil || sameSet(*w.Preempted, g.Preempted))
	})
}

func onClusters(want *scenario.ExpectClusters, got map[string]int) bool {
	switch {
	case want == nil:
		return true
	case want.Replicas != nil:
		return maps.Equal(want.Replicas, got)
	}
	return sameSet(want.Names, slices.Collect(maps.Keys(got)))
}

// subset is the rule for lists: each expected entry must be found, and an empty list
// means that there must be none.
func subset[W, G any](name string, want *[]W, got []G, match func(W, G) bool) (d []string) {
	if want == nil {
		return nil
	}
	if len(*want) == 0 && len(got) > 0 {
		return []string{fmt.Sprintf("%s: want none, got %s", name, asJSON(got))}
	}
	for _, w := range *want {
		if !slices.ContainsFunc(got, func(g G) bool { return match(w, g) }) {
			d = append(d, fmt.Sprintf("%s: want %s, got %s", name, asJSON(w), asJSON(got)))
		}
	}
	return d
}

func checkRunning(f *scenario.File, r *Result) []string {
	if f.Expect.Running == nil {
		return nil
	}
	initial := []string{}
	for _, a := range f.Running {
		if slices.Contains(r.Running, a.ID) {
			initial = append(initial, a.ID)
		}
	}
	if sameSet(*f.Expect.Running, initial) {
		return nil
	}
	slices.Sort(initial)
	return []string{fmt.Sprintf("running: want %s, got %s", asJSON(sorted(*f.Expect.Running)), asJSON(initial))}
}

func matches[T comparable](want *T, got T) bool { return want == nil || *want == got }

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

func sameSet(a, b []string) bool { return slices.Equal(sorted(a), sorted(b)) }

func sameSets(a, b map[string][]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, list := range a {
		if other, ok := b[key]; !ok || !sameSet(list, other) {
			return false
		}
	}
	return true
}

// shown is the maximum number of bytes of a list in a difference.
const shown = 400

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(b) > shown {
		return string(b[:shown]) + "…"
	}
	return string(b)
}
