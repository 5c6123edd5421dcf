package calibrate

import (
	"math"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/statistics"
)

// Report states how close a replay is to its recording.
type Report struct {
	Recorded int       `json:"recorded"` // instances
	Replayed int       `json:"replayed"`
	Both     int       `json:"both"` // instances that the recording and the replay have
	Measures []Measure `json:"measures"`
}

// A Measure compares one time of the instances, in seconds. Errors are the replayed times minus
// the recorded ones, of the instances that have both.
type Measure struct {
	Name         string    `json:"name"` // duration, killTime or startDelay
	Pairs        int       `json:"pairs"`
	OnlyRecorded int       `json:"onlyRecorded"` // instances with the recorded time only
	OnlyReplayed int       `json:"onlyReplayed"`
	Recorded     Quantiles `json:"recorded"` // of all recorded times
	Replayed     Quantiles `json:"replayed"`
	Error        Quantiles `json:"absoluteError"`
	Bias         *float64  `json:"bias"`          // mean of the errors; null without pairs
	Relative     *float64  `json:"relativeError"` // sum of absolute errors / sum of recorded times; null if that is 0
}

// Quantiles are by nearest rank; all are null if there are no values.
type Quantiles struct {
	P50 *float64 `json:"p50"`
	P90 *float64 `json:"p90"`
	P99 *float64 `json:"p99"`
	Max *float64 `json:"max"`
}

func quantiles(xs []float64) (q Quantiles) {
	if len(xs) == 0 {
		return q
	}
	sorted := slices.Clone(xs)
	slices.Sort(sorted)
	at := func(permille int) *float64 { return new(statistics.Rank(sorted, permille)) }
	return Quantiles{at(500), at(900), at(990), at(1000)}
}

// measures are the compared times. The function returns NaN if an instance has no such time.
var measures = []struct {
	name string
	of   func(*life, group, bool) float64
}{
	{"duration", func(l *life, _ group, _ bool) float64 { return l.finished - l.started }},
	{"killTime", func(l *life, _ group, _ bool) float64 { return l.gone - l.stopping }},
	{"startDelay", func(l *life, g group, first bool) float64 {
		if !first {
			return math.NaN() // a replacement waits since its predecessor ended
		}
		return l.started - g.submitted
	}},
}

// Compare compares a recording with a replay of the scenario.
func Compare(f *scenario.File, recorded, replayed *Lives) *Report {
	in := newInstances(f)
	r := &Report{Recorded: len(recorded.order), Replayed: len(replayed.order)}
	for _, id := range recorded.order {
		if replayed.byAlloc[id] != nil {
			r.Both++
		}
	}
	for _, m := range measures {
		value := func(l *Lives, id string) float64 {
			one := l.byAlloc[id]
			if one == nil {
				return math.NaN()
			}
			g, first, _ := in.of(id)
			return m.of(one, g, first)
		}
		out := Measure{Name: m.name}
		var a, b, errors []float64
		var sum, signed, absolute float64
		for _, id := range recorded.order {
			x, y := value(recorded, id), value(replayed, id)
			if math.IsNaN(x) {
				continue
			}
			if a = append(a, x); math.IsNaN(y) {
				out.OnlyRecorded++
				continue
			}
			sum, signed, absolute = sum+x, signed+y-x, absolute+math.Abs(y-x)
			errors = append(errors, math.Abs(y-x))
		}
		for _, id := range replayed.order {
			y := value(replayed, id)
			if math.IsNaN(y) {
				continue
			}
			if b = append(b, y); math.IsNaN(value(recorded, id)) {
				out.OnlyReplayed++
			}
		}
		out.Pairs = len(errors)
		out.Recorded, out.Replayed, out.Error = quantiles(a), quantiles(b), quantiles(errors)
		if len(errors) > 0 {
			out.Bias = new(signed / float64(len(errors)))
			if sum > 0 {
				out.Relative = new(absolute / sum)
			}
		}
		r.Measures = append(r.Measures, out)
	}
	return r
}

// Parameter is a setting of a group that Set has changed.
type Parameter struct {
	Job   string            `json:"job"`
	Group string            `json:"group"`
	Name  string            `json:"name"` // duration or killTimeout
	From  scenario.Duration `json:"from"`
	To    scenario.Duration `json:"to"`
	Of    int               `json:"instances"` // from which it was computed
}

// Set returns a copy of a scenario whose groups have the medians of the recorded durations and
// kill times, and the changes. Groups without a recorded time retain their settings. The median
// minimizes the mean absolute error of a group, as all its instances have one value.
func Set(f *scenario.File, recorded *Lives) (*scenario.File, []Parameter) {
	in := newInstances(f)
	durations, kills := map[[2]int][]float64{}, map[[2]int][]float64{}
	for _, id := range recorded.order {
		g, _, _ := in.of(id)
		at, one := [2]int{g.job, g.group}, recorded.byAlloc[id]
		if d := one.finished - one.started; d > 0 {
			durations[at] = append(durations[at], d)
		}
		if d := one.gone - one.stopping; d >= 0 {
			kills[at] = append(kills[at], d)
		}
	}
	with := *f
	with.Jobs = slices.Clone(f.Jobs)
	var changed []Parameter
	for i := range with.Jobs {
		j := &with.Jobs[i]
		j.Groups = slices.Clone(j.Groups)
		for k := range j.Groups {
			g := &j.Groups[k]
			for _, p := range []struct {
				name   string
				values []float64
				to     *scenario.Duration
			}{{"duration", durations[[2]int{i, k}], &g.Duration}, {"killTimeout", kills[[2]int{i, k}], &g.KillTimeout}} {
				if len(p.values) == 0 {
					continue
				}
				median := scenario.Duration(math.Round(statistics.Median(p.values)*1e3)) * scenario.Duration(time.Millisecond)
				if median == 0 && p.name == "duration" || median == *p.to {
					continue
				}
				changed = append(changed, Parameter{j.ID, g.Name, p.name, *p.to, median, len(p.values)})
				*p.to = median
			}
		}
	}
	return &with, changed
}
