package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func notesOf(t *testing.T, dump string) []Note {
	t.Helper()
	d, err := Read(strings.NewReader(dump))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Translate(d)
	if err != nil {
		t.Fatal(err)
	}
	return c.Report.List
}

func TestTranslate_CountsInvalidTimestamps(t *testing.T) {
	notes := notesOf(t, `{"kind":"List","items":[{"kind":"Node","metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"4"}}},
		{"kind":"Pod","metadata":{"name":"a","namespace":"shop","creationTimestamp":"zz"},"spec":{"nodeName":"n1","containers":[{"name":"c"}]}},
		{"kind":"Pod","metadata":{"name":"b","namespace":"shop"},"spec":{"nodeName":"n1","containers":[{"name":"c"}]},"status":{"startTime":"zz"}},
		{"kind":"Pod","metadata":{"name":"c","namespace":"shop"},"spec":{"nodeName":"n1","containers":[{"name":"c"}]}}]}`)
	if !slices.ContainsFunc(notes, func(n Note) bool {
		return n.Count == 2 && strings.Contains(n.Subject, "invalid startTime") && strings.HasSuffix(n.Handling, "the first: shop/a")
	}) {
		t.Errorf("%+v", notes)
	}
}

func TestTranslate_ReportsDumpWithoutNodes(t *testing.T) {
	notes := notesOf(t, `{"kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n1","containers":[{"name":"c"}]}}`)
	if len(notes) == 0 || !strings.HasPrefix(notes[0].Subject, "dump without nodes") || !notes[0].AffectsPlacement {
		t.Errorf("%+v", notes)
	}
}

// A priority class that the model rejects is left out; its pods keep their priority.
func TestTranslate_LeavesOutInvalidPriorityClass(t *testing.T) {
	d, err := Read(strings.NewReader(`{"items": [{"kind":"Node","metadata":{"name":"n"}},
		{"kind":"PriorityClass","metadata":{"name":"system-node-critical"},"value":2000001000},
		{"kind":"PriorityClass","metadata":{"name":"system-mine"},"value":7},
		{"kind":"PriorityClass","metadata":{"name":"huge"},"value":1000000001},
		{"kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"n","priorityClassName":"huge"},"status":{"phase":"Running"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Translate(d)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Classes) != 1 || c.Classes[0].Name != "system-node-critical" || c.Jobs[0].Priority != 1_000_000_001 {
		t.Errorf("classes %+v, priority %d", c.Classes, c.Jobs[0].Priority)
	}
	notes := fmt.Sprint(c.Report.List)
	for _, want := range []string{"system-mine", "huge"} {
		if !strings.Contains(notes, want) {
			t.Errorf("missing note on %s: %s", want, notes)
		}
	}
}
