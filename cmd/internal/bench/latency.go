package bench

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Latency summarizes the durations of an operation, in milliseconds.
type Latency struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"` // milliseconds
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// latencies collects durations. It is safe for concurrent use.
type latencies struct {
	mu   sync.Mutex
	list []time.Duration
}

func (l *latencies) since(began time.Time) { l.add(time.Since(began)) }

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, d)
}

// forget drops the collected values, so that only later ones count.
func (l *latencies) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = nil
}

// summary returns the percentiles of the values.
func (l *latencies) summary() Latency {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.list)
	n := len(l.list)
	if n == 0 {
		return Latency{}
	}
	at := func(share float64) float64 {
		i := int(math.Ceil(share*float64(n))) - 1
		return float64(l.list[max(i, 0)]) / float64(time.Millisecond)
	}
	return Latency{Count: n, P50: at(.5), P99: at(.99), Max: at(1)}
}
