package generate

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// load maps resources to the offered load, as fractions of the cluster's capacity over
// the horizon.
type load map[string]float64

// peak returns the highest fraction among the resources.
func (l load) peak() (m float64) {
	for _, v := range l {
		m = max(m, v)
	}
	return m
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// classResult holds the generated jobs of a class and their load.
type classResult struct {
	jobs  []generatedJob
	tasks int
	load  load
	unfit int // tasks that fit no node
}

// add adds a job and its load.
func (m *classResult) add(g *generator, at int64, j *scenario.Job) {
	if m.load == nil {
		m.load = make(load)
	}
	for i := range j.Groups {
		x := &j.Groups[i]
		tasks := len(g.all)
		if x.Count != nil {
			tasks = *x.Count
		}
		m.tasks += tasks
		if !g.fitsAnyNode(x) {
			m.unfit += tasks
		}
		time := int64(x.Duration)
		if time == 0 {
			time = int64(g.spec.Horizon) - at
		}
		part := float64(tasks) * (float64(time) / float64(g.spec.Horizon))
		for r, v := range x.Resources {
			m.load[r] += float64(part * float64(v) / g.capacity[r])
		}
		for _, d := range x.Devices {
			m.load[d.ID] += float64(part * float64(*d.Count) / g.countDevices(d.ID))
		}
	}
}

// fitsAnyNode reports whether some empty node can hold one task. It tries the node that
// fitted the previous task first, which usually succeeds.
func (g *generator) fitsAnyNode(x *scenario.Group) bool {
	for i := range g.all {
		if at := (g.lastFit + i) % len(g.all); g.all[at].fits(x) {
			g.lastFit = at
			return true
		}
	}
	return false
}

// fits reports whether the empty node has the resources and devices of one task.
func (n *node) fits(x *scenario.Group) bool {
	for r, v := range x.Resources {
		if n.capacity[r] < v {
			return false
		}
	}
	return true
}

// fill generates jobs of the classes that share the load of a band, until each class
// reaches its share of the load that the fixed classes of the band leave.
func (g *generator) fill() error {
	for b := range g.spec.Bands {
		used, weights := make(load), 0.0
		for i := range g.classes {
			k := &g.classes[i]
			switch {
			case k.band != b:
			case k.times.number == byLoad:
				weights += k.times.weight
			default:
				for r, v := range g.made[i].load {
					used[r] += v
				}
			}
		}
		left := max(0, g.spec.Bands[b].Load-used.peak())
		for i := range g.classes {
			k := &g.classes[i]
			if k.band != b || k.times.number != byLoad {
				continue
			}
			if err := g.fillClass(k, &g.made[i], left*k.times.weight/weights); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillClass generates jobs of one class until it reaches the target load.
func (g *generator) fillClass(k *class, m *classResult, target float64) error {
	r := stream(g.spec.Seed, "class/"+k.Name)
	for {
		at := k.times.draw(r)
		j := g.job(k, r)
		// Keep the last job if the result is closer to the target with it.
		var with classResult
		with.add(g, at, &j)
		now := m.load.peak()
		// Fail early if the job limit would be exceeded anyway.
		if n := len(m.jobs); n == 1000 && float64(n)*(target/now) > 4*maxJobs {
			return g.tooManyJobs(k)
		}
		if now+with.load.peak()/2 >= target {
			g.classN++
			return nil
		}
		if err := g.add(k, m, at, j); err != nil {
			return err
		}
		g.advance(min(1, now/target))
	}
}
