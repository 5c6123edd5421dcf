package metrics

// maxBuckets bounds the resolution of a series. If the end of the run is not
// configured, a series has between maxBuckets/2 and maxBuckets buckets.
const maxBuckets = 240

// series aggregates the run into time buckets of equal width. If the run outgrows
// them, adjacent pairs are merged and the width doubles: memory stays constant and
// every bucket stays exact.
type series struct {
	width   int64
	columns int
	buckets []bucket
}

// bucket aggregates one span of time.
type bucket struct {
	columns     []integrals
	waiting     integral
	preemptions int
	victims     int
	depth       int // deepest
}

// init resets the series. If until is positive, it sets the bucket width so that the
// buckets cover the run.
func (s *series) init(columns int, until int64) {
	*s = series{width: 1e6, columns: columns}
	if until > 0 {
		s.width = max(1, (until+maxBuckets-1)/maxBuckets)
	}
}

// at returns the bucket that contains time t. It merges buckets if t lies beyond the
// last one.
func (s *series) at(t int64) *bucket {
	for t/s.width >= maxBuckets {
		s.halve()
	}
	for int(t/s.width) >= len(s.buckets) {
		s.buckets = append(s.buckets, bucket{columns: make([]integrals, s.columns)})
	}
	return &s.buckets[t/s.width]
}

// halve merges adjacent pairs of buckets and doubles the width.
func (s *series) halve() {
	s.width *= 2
	for i := range s.buckets {
		if i%2 == 0 {
			s.buckets[i/2] = s.buckets[i]
			continue
		}
		into, from := &s.buckets[i/2], &s.buckets[i]
		for c := range into.columns {
			into.columns[c].plus(&from.columns[c])
		}
		into.waiting.plus(from.waiting)
		into.preemptions += from.preemptions
		into.victims += from.victims
		into.depth = max(into.depth, from.depth)
	}
	s.buckets = s.buckets[:(len(s.buckets)+1)/2]
}

// advance integrates the current totals and the number of waiting instances over
// [from, to).
func (s *series) advance(from, to int64, totals []amounts, waiting int) {
	// An end on the edge belongs to the bucket before it. Creating that bucket first
	// fixes the width, so that the span is not split into pieces that are merged at
	// once.
	s.at(to - 1)
	for from < to {
		b := s.at(from)
		dt := min(to, (from/s.width+1)*s.width) - from
		for c := range totals {
			b.columns[c].add(&totals[c], dt)
		}
		b.waiting.add(int64(waiting), dt)
		from += dt
	}
}

// preempted records a preemption in the bucket of its time.
func (s *series) preempted(at int64, victims, depth int) {
	b := s.at(at)
	b.preemptions++
	b.victims += victims
	b.depth = max(b.depth, depth)
}
