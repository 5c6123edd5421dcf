package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// MaxHeadroom is the headroom of a server with enough memory, in bytes. A decision about a gang
// of 40 on 5,000 nodes allocates 0.6 MB, so that one of 400 meets a collection.
const MaxHeadroom = 256 << 20

// Headroom returns the headroom of a server on a machine with some usable memory, in bytes: a
// sixteenth of it, and at most MaxHeadroom. If memory is 0, it is unknown, and there is none.
func Headroom(memory int64) int64 { return min(memory/16, MaxHeadroom) }

const (
	// goPercent is the default of Go: the heap may double.
	goPercent = 100
	// leastLive is the heap that Go counts as live before the first collection, and at least.
	leastLive = 4 << 20
)

// Keep lets the heap grow by at least headroom bytes after a collection, and to twice the live
// heap as usual if that is more. It returns a function that restores the default of Go.
//
// A server of a small cluster retains little, and would otherwise collect after a few dozen
// decisions, each of which then shares the processors with the collector. A constant percentage
// would cost a server of a large cluster several times its memory for the same effect.
//
// The percentage follows the live heap: a cleanup runs after each collection and sets that of the
// next one. Until it ran, the heap may grow by the percentage for the earlier live heap. A limit
// on memory, such as GOMEMLIMIT, applies in any case.
func Keep(headroom int64) (stop func()) {
	k := &keeper{headroom: headroom, percent: goPercent}
	k.adjust()
	k.watch()
	return k.stop
}

// A keeper sets the percentage after each collection.
type keeper struct {
	headroom int64

	mu      sync.Mutex // cleanups run on goroutines of the runtime
	percent int        // as it was set last
	stopped bool
}

// A sentinel is garbage as soon as it is made. It contains a pointer, since the cleanup of an
// object in a block with others would wait for all of them.
type sentinel struct{ _ *keeper }

// watch adjusts the percentage after the next collection, and after each that follows.
func (k *keeper) watch() {
	runtime.AddCleanup(&sentinel{}, func(k *keeper) {
		if k.adjust() {
			k.watch()
		}
	}, k)
}

// adjust sets the percentage for the live heap, and returns false if the keeper has been stopped.
// Small differences are ignored, because setting it stops all goroutines for a moment.
func (k *keeper) adjust() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	percent := percentFor(k.headroom, live())
	if off := percent - k.percent; !k.stopped && (off*10 >= k.percent || -off*10 >= k.percent) {
		k.percent = percent
		debug.SetGCPercent(percent)
	}
	return !k.stopped
}

// stop restores the default of Go.
func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	debug.SetGCPercent(goPercent)
}

// percentFor returns by how many percent of itself a live heap may grow.
func percentFor(headroom, live int64) int {
	return int(max(goPercent, headroom*100/max(live, leastLive)))
}

// live returns the bytes that the last collection found to be in use; 0 before the first one.
func live() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
