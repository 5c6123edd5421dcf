package policy

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestGobench_NamesWithoutSlashesAndSpaces(t *testing.T) {
	l := benchLine{Policy: "../my policies/decay.wasm", Hook: "ScoreVictims", Construction: "nodes=100"}
	want := "BenchmarkScoreVictims/nodes=100/policy=..-my-policies-decay.wasm-2\t"
	if got := l.gobench(2); got[:min(len(got), len(want))] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Long commands show a percentage and the time left within 80 columns.
func TestProgress_ShowsPercentageAndTimeLeft(t *testing.T) {
	long := strings.Repeat("long-name-", 9)
	for _, tc := range []struct{ got, want string }{
		{checkLine("thrifty", 875, 3500, 10*time.Second), "25 %, about 30s left, thrifty, 875 of 3,500 cases, 10s"},
		{progressOf("thrifty", 0.5, 12, time.Minute), "50 %, about 60s left, thrifty, 12 measurements, 1m0s"},
		{checkLine(long, 875, 3500, 10*time.Second), "25 %, about 30s left, 875 of 3,500 cases, 10s"},
	} {
		if tc.got != tc.want || utf8.RuneCountInString(tc.got) > 79 {
			t.Errorf("%q, want %q", tc.got, tc.want)
		}
	}
}
