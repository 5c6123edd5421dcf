package metrics

import "strconv"

// Priority bands: up to maxDistinct distinct priorities, each priority is its own
// band, named by its number. Beyond that, neighbouring priorities share rangeBands
// bands of about equally many distinct priorities, named lowest..highest.
const (
	maxDistinct = 8
	rangeBands  = 4
)

// band is a range of priorities.
type band struct {
	name   string
	levels []*level
}

// bands groups the observed priorities, ascending.
func (d *demand) bands() []band {
	n := len(d.levels)
	count := n
	if n > maxDistinct {
		count = rangeBands
	}
	bands := make([]band, count)
	for i := range bands {
		levels := d.levels[i*n/count : (i+1)*n/count]
		low, high := levels[0].priority, levels[len(levels)-1].priority
		name := strconv.Itoa(int(low))
		if low != high {
			name += ".." + strconv.Itoa(int(high))
		}
		bands[i] = band{name, levels}
	}
	return bands
}
