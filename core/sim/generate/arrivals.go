package generate

import (
	"slices"
	"strings"
	"time"
)

// arrivals is a resolved Arrival.
type arrivals struct {
	process     string
	at          []int64
	every       int64
	perHour     float64
	from, until int64
	number      int     // number of jobs; byLoad or byChance if it is not fixed
	weight      float64 // share of the band's load; for byLoad
}

const (
	byLoad   = -1 // until the band's load is reached
	byChance = -2 // determined by the arrival process
)

// planArrival resolves the arrival times of a class and the source of its job count.
func (p *plan) planArrival(k *class) arrivals {
	a := &k.Arrival
	path := k.path + ".arrival"
	t := arrivals{
		process: orDefault(a.Process, "burst"), every: int64(a.Every), perHour: a.PerHour,
		from: int64(a.From), until: int64(a.Until), number: byLoad, weight: 1,
	}
	for _, at := range a.At {
		t.at = append(t.at, int64(at))
	}
	if t.until == 0 {
		t.until = int64(p.spec.Horizon)
	}
	p.checkArrival(path, a, &t)
	if t.from >= t.until || t.until > int64(p.spec.Horizon) {
		p.badf(path, "arrive before the horizon", "from %v until %v; the horizon is %v", a.From, Duration(t.until), p.spec.Horizon)
	}
	for _, at := range t.at {
		if at >= int64(p.spec.Horizon) && p.spec.Horizon > 0 {
			p.badf(path+".at", "arrive before the horizon", "%v is not before the horizon (%v)", Duration(at), p.spec.Horizon)
		}
	}
	p.planNumber(k, &t)
	return t
}

// checkArrival checks that the process has the fields it requires and no others.
func (p *plan) checkArrival(path string, a *Arrival, t *arrivals) {
	uses := map[string][]string{
		"burst": {"at"}, "at": {"at"}, "every": {"every", "from", "until"}, "poisson": {"perHour", "from", "until"},
	}
	use, known := uses[t.process]
	if !known {
		p.badf(path+".process", "omit it for burst", "unknown process %.40q; expected burst, poisson, every or at", t.process)
		return
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"at", len(a.At) > 0}, {"every", a.Every != 0}, {"perHour", a.PerHour != 0}, {"from", a.From != 0}, {"until", a.Until != 0}} {
		if f.set && !slices.Contains(use, f.name) {
			p.badf(path+"."+f.name, "remove it", "process %s does not use %s; it uses %s", t.process, f.name, strings.Join(use, ", "))
		}
	}
	switch {
	case t.process == "at" && len(t.at) == 0:
		p.bad(path, "times are missing", "write at: [10s, 5m]")
	case t.process == "every" && t.every == 0:
		p.bad(path, "the period is missing", "write every: 30s")
	case !(t.perHour >= 0 && t.perHour <= 1e9):
		p.badf(path+".perHour", "write jobs per hour", "%v; expected 0 or more", t.perHour)
	}
	if t.process == "burst" && len(t.at) == 0 {
		t.at = []int64{0}
	}
}

// planNumber resolves the job count. It reports a problem unless exactly one field of
// the class determines it.
func (p *plan) planNumber(k *class, t *arrivals) {
	var sources []string
	switch {
	case t.process == "at":
		t.number, sources = len(t.at), append(sources, "arrival.at")
	case t.process == "every" && t.every > 0 && t.until > t.from:
		n := (t.until - t.from + t.every - 1) / t.every
		if n > maxJobs {
			p.badf(k.path+".arrival.every", "arrive less often", "%d jobs; expected at most %d", n, maxJobs)
			n = 0
		}
		t.number, sources = int(n), append(sources, "arrival.every")
	case t.process == "poisson" && t.perHour > 0:
		t.number, sources = byChance, append(sources, "arrival.perHour")
		if t.perHour*float64(t.until-t.from)/float64(time.Hour) > maxJobs/2 {
			p.badf(k.path+".arrival.perHour", "arrive less often", "more than %d jobs", maxJobs/2)
			t.number = 0
		}
	}
	if k.Jobs != nil {
		t.number, sources = *k.Jobs, append(sources, "jobs")
		if t.number < 0 || t.number > maxJobs {
			p.badf(k.path+".jobs", "write a number of jobs", "%d; expected 0 to %d", t.number, maxJobs)
			t.number = 0
		}
	}
	if k.Weight != nil {
		t.weight, sources = *k.Weight, append(sources, "weight")
		if !(t.weight > 0 && t.weight <= 1e6) {
			p.badf(k.path+".weight", "omit it for 1", "%v; expected a number above 0", t.weight)
		}
	}
	loaded := k.band >= 0 && p.spec.Bands[k.band].Load > 0
	switch {
	case len(sources) > 1:
		p.badf(k.path, "keep one and remove the others", "%s each determine the number of jobs", strings.Join(sources, " and "))
	case len(sources) == 0 && !loaded, k.Weight != nil && !loaded:
		p.bad(k.path, "the number of jobs is missing", "add jobs, or set the load of its band")
	}
}

// next draws the times of n jobs in ascending order, in whole milliseconds. It ignores n
// if the process determines the count.
func (t *arrivals) next(r *rng, n int) []int64 {
	const ms = int64(time.Millisecond)
	var list []int64
	switch {
	case t.process == "poisson" && t.number == byChance:
		mean := float64(time.Hour/time.Millisecond) / t.perHour
		for at := float64(t.from / ms); ; {
			at += float64(r.exponential() * mean)
			if at >= float64(t.until/ms) || len(list) == maxJobs {
				return list
			}
			list = append(list, int64(at)*ms)
		}
	case t.process == "poisson":
		// Given their number, the arrivals of a Poisson process are independent and
		// uniformly distributed.
		for range n {
			list = append(list, t.draw(r))
		}
		slices.Sort(list)
	case t.process == "every":
		for i := range n {
			list = append(list, t.from+int64(i)*t.every)
		}
	default:
		for i := range n {
			list = append(list, t.at[i%len(t.at)])
		}
		slices.Sort(list)
	}
	return list
}

// draw returns the time of one job if the number of jobs is determined by the load.
func (t *arrivals) draw(r *rng) int64 {
	const ms = int64(time.Millisecond)
	if t.process != "poisson" {
		return t.at[r.below(int64(len(t.at)))]
	}
	return t.from/ms*ms + r.below(max(1, (t.until-t.from)/ms))*ms
}
