package metrics

// maxBuckets bounds the resolution of a series: with an end that is not known,
// a run has between half of it and all of it.
const maxBuckets = 240

// series keeps what happened by time, in buckets of one width. When the run
// outgrows them, pairs are merged and the width doubles, so memory is constant
// and every bucket stays exact.
type series struct {
	width   int64
	columns int
	buckets []bucket
}

// bucket is a span of time.
type bucket struct {
	columns     []integrals
	waiting     integral
	preemptions int
	victims     int
	depth       int // deepest
}

// init takes the end if it is known, so that the buckets fill the run.
func (s *series) init(columns int, until int64) {
	*s = series{width: 1e6, columns: columns}
	if until > 0 {
		s.width = max(1, (until+maxBuckets-1)/maxBuckets)
	}
}

// at is the bucket of a time.
func (s *series) at(t int64) *bucket {
	for t/s.width >= maxBuckets {
		s.halve()
	}
	for int(t/s.width) >= len(s.buckets) {
		s.buckets = append(s.buckets, bucket{columns: make([]integrals, s.columns)})
	}
	return &s.buckets[t/s.width]
}

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

// advance spreads what holds from one time to another over the buckets.
func (s *series) advance(from, to int64, totals []amounts, waiting int) {
	// An end on the edge belongs to the bucket before it. Reaching it first
	// fixes the width, so that from is not cut in pieces that are merged at once.
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

// preempted counts a preemption at a time.
func (s *series) preempted(at int64, victims, depth int) {
	b := s.at(at)
	b.preemptions++
	b.victims += victims
	b.depth = max(b.depth, depth)
}
