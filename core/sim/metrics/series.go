package metrics

// A Series holds the data of a run that reports draw in addition to its Metrics.
// Slices are parallel to Resources or Bands as documented.
type Series struct {
	Resources []string `json:"resources"` // ordered by dimension, device kinds last
	Bands     []string `json:"bands"`     // of priorities, ascending
	Width     float64  `json:"width"`     // seconds covered by one point; the last one may be shorter
	End       float64  `json:"end"`       // seconds
	Points    []Point  `json:"points"`    // ordered by time, without gaps
	Delays    []Curve  `json:"delays"`    // distribution of queue delays, by band
	// Victims[p][v] counts victims of band v evicted by preemptors of band p.
	Victims [][]int `json:"victims"`
	// Wasted[v][r] is the resource-seconds of resource r that victims of band v lost.
	Wasted [][]float64 `json:"wasted"`
	// RegretCapped counts preemptions for which the regret search was cut off. If it
	// is positive, regretVictims may be too low.
	RegretCapped int `json:"regretCapped,omitempty"`
}

// A Point aggregates one span of time.
type Point struct {
	At            float64   `json:"at"`            // seconds, start of the span
	Utilisation   []float64 `json:"utilisation"`   // by resource, mean over the span
	Fragmentation []float64 `json:"fragmentation"` // by resource, mean over the span; repeats the previous value if nothing was free
	Waiting       float64   `json:"waiting"`       // instances, mean over the span
	Preemptions   int       `json:"preemptions"`
	Victims       int       `json:"victims"`
	Depth         int       `json:"depth"` // of the deepest preemption
}

// A Curve is a distribution function: Share[i] of the waits lasted at most
// Seconds[i].
type Curve struct {
	Seconds []float64 `json:"seconds,omitempty"`
	Share   []float64 `json:"share,omitempty"`
}

// curvePoints is the resolution of a Curve.
const curvePoints = 200

// Series returns the data to draw. It must be called after Finish.
func (c *Collector) Series() *Series {
	s := &Series{
		Resources: c.cols.names, Width: seconds(c.series.width), End: seconds(c.now),
		RegretCapped: c.evicted.capped,
	}
	for i := range c.series.buckets {
		p := c.point(i)
		for r := range p.Fragmentation {
			// If nothing was free, fragmentation is undefined. A drop to 0 would look
			// like an improvement.
			if i > 0 && c.series.buckets[i].columns[r].free.zero() {
				p.Fragmentation[r] = s.Points[i-1].Fragmentation[r]
			}
		}
		s.Points = append(s.Points, p)
	}
	bands := c.demand.bands()
	for i := range bands {
		s.Bands = append(s.Bands, bands[i].name)
		s.Delays = append(s.Delays, curve(bands[i].delays()))
		s.Wasted = append(s.Wasted, bands[i].wasted(c.cols.len()))
		row := make([]int, len(bands))
		for v := range bands {
			row[v] = bands[v].victimsOf(&bands[i])
		}
		s.Victims = append(s.Victims, row)
	}
	return s
}

func (c *Collector) point(i int) Point {
	b, n := &c.series.buckets[i], c.cols.len()
	at := int64(i) * c.series.width
	p := Point{
		At: seconds(at), Utilisation: make([]float64, n), Fragmentation: make([]float64, n),
		Preemptions: b.preemptions, Victims: b.victims, Depth: b.depth,
	}
	for r := range n {
		p.Utilisation[r] = Round(b.columns[r].held.ratio(b.columns[r].cap))
		p.Fragmentation[r] = Round(b.columns[r].stranded.ratio(b.columns[r].free))
	}
	if span := min(c.now-at, c.series.width); span > 0 {
		p.Waiting = Round(b.waiting.float() / float64(span))
	}
	return p
}

// curve returns sorted values as a distribution function of limited resolution.
func curve(sorted []int64) Curve {
	var c Curve
	n := len(sorted)
	for i, v := range sorted {
		if i+1 < n && (sorted[i+1] == v || (i+1)*curvePoints/n == i*curvePoints/n) {
			continue
		}
		c.Seconds = append(c.Seconds, seconds(v))
		c.Share = append(c.Share, Round(float64(i+1)/float64(n)))
	}
	return c
}

// wasted returns the work lost by victims of the band, by column.
func (b *band) wasted(columns int) []float64 {
	sums := make([]integral, columns)
	for _, l := range b.levels {
		for i := range l.wasted {
			sums[i].plus(l.wasted[i])
		}
	}
	out := make([]float64, columns)
	for i := range sums {
		out[i] = Round(sums[i].seconds())
	}
	return out
}

// victimsOf returns the number of the band's victims evicted by another band.
func (b *band) victimsOf(by *band) int {
	sum := 0
	for _, l := range b.levels {
		for _, p := range by.levels {
			sum += l.victims[p.priority]
		}
	}
	return sum
}
