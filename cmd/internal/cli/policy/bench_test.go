package policy

import "testing"

func TestGobench_NamesWithoutSlashesAndSpaces(t *testing.T) {
	l := benchLine{Policy: "../my policies/decay.wasm", Hook: "ScoreVictims", Construction: "nodes=100"}
	want := "BenchmarkScoreVictims/nodes=100/policy=..-my-policies-decay.wasm-2\t"
	if got := l.gobench(2); got[:min(len(got), len(want))] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
