package app

import (
	"runtime/debug"
	"testing"
)

func TestHeadroom_GOGCTakesPrecedence(t *testing.T) {
	was := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(was) })
	for gogc, keeps := range map[string]bool{"": true, "100": false} {
		t.Setenv("GOGC", gogc)
		stop := KeepHeadroom(1 << 40) // enough for more than the heap of this test
		percent := debug.SetGCPercent(100)
		stop()
		if keeps != (percent > 100) {
			t.Errorf("GOGC=%q: %d percent", gogc, percent)
		}
	}
}
