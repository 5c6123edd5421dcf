package suggest

import "testing"

func TestNearest_ReturnsLikelyCorrection(t *testing.T) {
	t.Parallel()
	known := []string{"priority", "preemptible", "groups", "n1", "n2", "cpu"}
	for written, want := range map[string]string{
		"prioritty":   "priority",
		"Priority":    "priority", // different case
		"gruops":      "groups",   // adjacent characters swapped
		"group":       "groups",
		"preemptable": "preemptible",
		"n3":          "", // not a correction of n1
		"xy":          "", // every name is close to a short one
		"datacenter":  "",
		"":            "",
	} {
		if got := Nearest(written, known); got != want {
			t.Errorf("%q: %q, want %q", written, got, want)
		}
	}
	if got := Nearest("abcd", []string{"abce", "abcf"}); got != "abce" {
		t.Errorf("of two equally close names: %q", got)
	}
}
