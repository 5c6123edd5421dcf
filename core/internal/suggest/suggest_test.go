package suggest

import "testing"

func TestNearest_IsWhatWasProbablyMeant(t *testing.T) {
	known := []string{"priority", "preemptible", "groups", "n1", "n2", "cpu"}
	for written, want := range map[string]string{
		"prioritty":   "priority",
		"Priority":    "priority", // whatever its case
		"gruops":      "groups",   // neighbours swapped
		"group":       "groups",
		"preemptable": "preemptible",
		"n3":          "", // no mistyped n1
		"xy":          "", // everything is near a short name
		"datacenter":  "",
		"":            "",
	} {
		if got := Nearest(written, known); got != want {
			t.Errorf("%q: %q, want %q", written, got, want)
		}
	}
	if got := Nearest("abcd", []string{"abce", "abcf"}); got != "abce" {
		t.Errorf("of two as near the first: %q", got)
	}
}
