package dataset

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/timeline"
)

// A Recorder writes the rows of one run to a part. Observe connects it to the run, and
// Finish adds its result.
type Recorder struct {
	run     Run
	part    *Part
	pending map[pendingGroup]int // positive numbers
	err     error                // the first one
}

// pendingGroup identifies a group of a job.
type pendingGroup struct {
	job   model.JobKey
	group string
}

// NewRecorder returns a recorder of a run.
func NewRecorder(part *Part, run Run) *Recorder {
	return &Recorder{run: run, part: part, pending: map[pendingGroup]int{}}
}

// Observe adds the recorder to the options of a run. Functions that are already set are
// called as well.
func (r *Recorder) Observe(o *sim.Options) {
	event, evaluated := o.Timeline, o.Evaluated
	o.Timeline = func(ev timeline.Event) {
		if event != nil {
			event(ev)
		}
		r.event(&ev)
	}
	o.Evaluated = func(ev sim.Evaluated) {
		if evaluated != nil {
			evaluated(ev)
		}
		r.evaluated(&ev)
	}
}

// Finish adds the result of the run. It returns the first error of the recorder.
func (r *Recorder) Finish(run *sim.Run) error {
	r.placements(run.Result)
	r.evictions(run.Result)
	r.usage(run.Series)
	for _, v := range run.Metrics.Flatten() {
		r.add(metricRows, &Metric{Run: r.run, Metric: v.Name, Unit: metrics.Unit(v.Name), Value: v.Value})
	}
	if r.err != nil {
		return r.err
	}
	return r.part.flush()
}

// add writes a row, unless an earlier one failed.
func (r *Recorder) add(table int, row any) {
	if r.err == nil {
		r.err = r.part.add(table, row)
	}
}

// seconds converts nanoseconds.
func seconds[T ~int64](ns T) float64 { return float64(ns) / 1e9 }

func (r *Recorder) event(ev *timeline.Event) {
	var devices []string
	for _, d := range ev.Devices {
		devices = append(devices, fmt.Sprintf("%s=%d", d.ID, d.Count))
	}
	r.add(events, &Event{
		Run: r.run, AtS: seconds(ev.At), Entry: ev.Entry, Kind: string(ev.Kind), Step: int64(ev.Step),
		Alloc: ev.Alloc, Job: ev.Job, Group: ev.Group, Index: int64(ev.Index), Node: ev.Node, Devices: strings.Join(devices, ";"),
		By: ev.By, SavedWorkS: seconds(ev.SavedWork), Moved: ev.Moved, Replicas: int64(ev.Replicas),
	})
}

// evaluated adds a row for each group whose number of pending instances has changed.
func (r *Recorder) evaluated(ev *sim.Evaluated) {
	key, queued := ev.Report.Eval.JobKey(), ev.Report.Outcome.Queued
	groups := slices.Collect(maps.Keys(queued))
	for g := range r.pending {
		if g.job == key {
			groups = append(groups, g.group)
		}
	}
	slices.Sort(groups)
	for _, name := range slices.Compact(groups) {
		g, n := pendingGroup{key, name}, queued[name]
		if n == r.pending[g] {
			continue
		}
		if n == 0 {
			delete(r.pending, g)
		} else {
			r.pending[g] = n
		}
		r.add(queue, &Pending{
			Run: r.run, AtS: seconds(ev.Now), Namespace: key.Namespace, Job: key.ID, Group: name,
			Priority: int64(ev.Report.Eval.Priority), Pending: int64(n),
		})
	}
}

func (r *Recorder) placements(result *sim.Result) {
	for i := range result.Placements {
		p := &result.Placements[i]
		elsewhere := 0
		for _, list := range p.PreemptedElsewhere {
			elsewhere += len(list)
		}
		r.add(placements, &Placement{
			Run: r.run, AtS: seconds(p.At), Alloc: p.Alloc, Job: p.Job, Group: p.Group, Node: p.Node, Score: p.Score,
			Victims: int64(len(p.Preempted)), VictimsElsewhere: int64(elsewhere),
		})
	}
	for i := range result.Bindings {
		b := &result.Bindings[i]
		for _, cluster := range slices.Sorted(maps.Keys(b.Clusters)) {
			r.add(placements, &Placement{
				Run: r.run, AtS: seconds(b.At), Binding: b.Binding, Cluster: cluster, Replicas: int64(b.Clusters[cluster]),
				Victims: int64(len(b.Preempted)),
			})
		}
	}
}

func (r *Recorder) evictions(result *sim.Result) {
	for i := range result.Evicted {
		v := &result.Evicted[i]
		r.add(evictions, &Eviction{
			Run: r.run, AtS: seconds(v.At), Alloc: v.Alloc, Job: v.Job, Group: v.Group, Priority: int64(v.Priority), Node: v.Node,
			Binding: v.Binding, Cluster: v.Cluster, Replicas: int64(v.Replicas), By: v.By, LostWorkS: seconds(v.LostWork), BudgetViolated: v.BudgetViolated,
		})
	}
}

func (r *Recorder) usage(s *metrics.Series) {
	for _, p := range s.Points {
		for i, name := range s.Resources {
			r.add(utilisation, &Usage{
				Run: r.run, AtS: p.At, WidthS: min(s.Width, s.End-p.At), Resource: name,
				Utilisation: p.Utilisation[i], Fragmentation: p.Fragmentation[i], Waiting: p.Waiting,
			})
		}
	}
}
