package cmdutil

import "testing"

func TestText(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	if got := Wrap("one two three", 9, "  "); got != "  one two\n  three" {
		t.Errorf("wrapped as %q", got)
	}
	if got := JoinOr([]string{"a", "b", "c"}); got != "a, b or c" {
		t.Errorf("got %q", got)
	}
}
