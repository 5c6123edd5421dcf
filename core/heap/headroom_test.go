package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestHeadroom_IsAShareOfTheMemory(t *testing.T) {
	for memory, want := range map[int64]int64{0: 0, 1 << 30: 64 << 20, 64 << 30: MaxHeadroom} {
		if got := Headroom(memory); got != want {
			t.Errorf("headroom is %d of %d, want %d", got, memory, want)
		}
	}
}

func TestPercent_IsForTheLiveHeap(t *testing.T) {
	for _, c := range []struct {
		name           string
		headroom, live int64
		want           int
	}{
		{"before the first collection", 256 << 20, 0, 6400},
		{"a small heap", 256 << 20, 32 << 20, 800},
		{"a heap of the headroom", 256 << 20, 256 << 20, 100},
		{"a large heap grows by the default", 256 << 20, 4 << 30, 100},
		{"no headroom", 0, 32 << 20, 100},
	} {
		if got := percentFor(c.headroom, c.live); got != c.want {
			t.Errorf("%s: %d percent, want %d", c.name, got, c.want)
		}
	}
}

// The percentage follows the live heap as that grows, until Keep is stopped.
func TestKeep_FollowsTheLiveHeap(t *testing.T) {
	stop := Keep(64 << 20)
	if got := percent(); got < 200 {
		t.Errorf("%d percent with a small heap, want that of 64 MiB", got)
	}
	retained := make([]byte, 80<<20)
	if !collectUntil(func() bool { return percent() == goPercent }) {
		t.Errorf("%d percent of %d live bytes, want %d", percent(), live(), goPercent)
	}
	runtime.KeepAlive(retained)
	if !collectUntil(func() bool { return percent() > goPercent }) {
		t.Errorf("still %d percent of %d live bytes", percent(), live())
	}
	stop()
	runtime.GC()
	if got := percent(); got != goPercent {
		t.Errorf("%d percent after the end, want %d", got, goPercent)
	}
}

// collectUntil collects garbage until a condition holds, and reports whether it does.
func collectUntil(done func() bool) bool {
	for range 100 {
		if runtime.GC(); done() {
			return true
		}
		time.Sleep(10 * time.Millisecond) // cleanups run on a goroutine of the runtime, for which nothing can wait
	}
	return false
}

// percent returns the percentage that is set.
func percent() int {
	was := debug.SetGCPercent(goPercent)
	debug.SetGCPercent(was)
	return was
}
