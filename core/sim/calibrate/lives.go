package calibrate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
)

// A life holds the times of one instance in seconds since the start; NaN if it has none.
type life struct {
	started, finished float64
	stopping, gone    float64 // from its eviction or stop to its end
}

// Lives are the lives of the instances of a run, by allocation.
type Lives struct {
	byAlloc map[string]*life
	order   []string // in order of the first event
}

// NewLives returns an empty collection.
func NewLives() *Lives { return &Lives{byAlloc: map[string]*life{}} }

// Observe adds an event of a run.
func (l *Lives) Observe(ev timeline.Event) { l.add(ev.Kind, ev.Alloc, float64(ev.At)/1e9) }

// add adds an event. Of several events of a kind, the first one counts.
func (l *Lives) add(kind timeline.Kind, alloc string, at float64) {
	if alloc == "" {
		return
	}
	one := l.byAlloc[alloc]
	if one == nil {
		one = &life{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
		l.byAlloc[alloc], l.order = one, append(l.order, alloc)
	}
	var to *float64
	switch kind {
	case timeline.Started:
		to = &one.started
	case timeline.Finished:
		to = &one.finished
	case timeline.Evicted, timeline.Stopped:
		to = &one.stopping
	case timeline.Gone:
		to = &one.gone
	default:
		return
	}
	if math.IsNaN(*to) {
		*to = at
	}
}

// kinds are the events of a recorded timeline that name an allocation.
var kinds = []timeline.Kind{
	timeline.Placed, timeline.Started, timeline.Finished, timeline.Evicted, timeline.Stopped, timeline.Lost, timeline.Gone,
}

// others are the events that are ignored.
var others = []timeline.Kind{
	timeline.Step, timeline.Rest, timeline.Assigned, timeline.Resized, timeline.Withdrawn, timeline.Released, timeline.Claimed, timeline.Unclaimed,
}

// maxSeconds bounds times: longer than any recording.
const maxSeconds = 1e9

// Read reads a recorded timeline: a CSV file with the columns at_s, kind and alloc, plain or
// compressed. It returns an error that lists every invalid row, every instance that the scenario
// does not have, and the first row of another run, or if the timeline has no instances.
func Read(src build.Source, name string, f *scenario.File) (*Lives, error) {
	t, err := src.Table(name)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	at, kind, alloc := t.Column("at_s"), t.Column("kind"), t.Column("alloc")
	var runs [4]int
	for i, column := range []string{"scenario", "draw", "policy", "seed"} {
		runs[i] = t.Optional(column)
	}
	known := newInstances(f)
	l, first, several := NewLives(), "", false
	for t.Next() {
		run := fmt.Sprint(t.Text(runs[0]), " ", t.Text(runs[1]), " ", t.Text(runs[2]), " ", t.Text(runs[3]))
		if first == "" {
			first = run
		}
		if run != first {
			if !several {
				t.Fail("the row is of another run than the first one; select the rows of one run")
			}
			several = true
			continue
		}
		seconds, err := strconv.ParseFloat(t.Text(at), 64)
		// NaN fails the comparison.
		if err != nil || !(seconds >= -maxSeconds && seconds <= maxSeconds) {
			t.Invalid(at, "seconds since the start of the recording")
		}
		k, id := timeline.Kind(t.Text(kind)), t.Text(alloc)
		switch {
		case slices.Contains(others, k):
			continue
		case !slices.Contains(kinds, k):
			t.Invalid(kind, "a kind of event, such as started, finished, evicted or gone")
		case id == "":
			t.Invalid(alloc, "an instance such as job.group[0]")
		case !known.has(id):
			t.Fail("unknown instance %.80q: the scenario has no such job, group or index", id)
		}
		if t.Failed() {
			continue
		}
		l.add(k, id, seconds)
		if one := l.byAlloc[id]; one.finished < one.started { // false if one is absent
			t.Fail("instance %q finishes at %v s, before its start at %v s", id, one.finished, one.started)
		}
	}
	if t.Err() == nil && len(l.order) == 0 {
		return nil, &build.FileError{File: name, Err: errors.New("the timeline has no events of instances")}
	}
	return l, t.Err()
}

// instances are the names that instances of a scenario can have.
type instances struct {
	groups  map[string]group // by job.group
	running map[string]group // by allocation
}

// A group is a group of a job by position, with the time at which the job is submitted.
type group struct {
	job, group int
	count      int     // math.MaxInt for jobs that run on every node
	submitted  float64 // seconds; NaN if the job runs at the start
}

func newInstances(f *scenario.File) *instances {
	submitted := map[string]float64{}
	for _, e := range f.Events {
		if _, again := submitted[e.Submit]; e.Submit != "" && !again {
			submitted[e.Submit] = float64(e.At) / 1e9
		}
	}
	in := &instances{groups: map[string]group{}, running: map[string]group{}}
	for i := range f.Jobs {
		j := &f.Jobs[i]
		at, ok := submitted[j.ID]
		if !ok {
			at = math.NaN()
		}
		for k := range j.Groups {
			g := group{i, k, 1, at}
			if c := j.Groups[k].Count; c != nil {
				g.count = *c
			}
			if strings.HasPrefix(j.Type, "sys") {
				g.count = math.MaxInt
			}
			in.groups[j.ID+"."+j.Groups[k].Name] = g
		}
	}
	for _, r := range f.Running {
		if g, ok := in.groups[r.Job+"."+r.Group]; ok {
			g.submitted = math.NaN()
			in.running[r.ID] = g
		}
	}
	return in
}

// of returns the group of an instance. First is false for a replacement of an instance.
func (in *instances) of(alloc string) (g group, first, ok bool) {
	if g, ok = in.running[alloc]; ok {
		return g, true, true
	}
	name, rest, ok := strings.Cut(alloc, "[")
	index, incarnation, closed := strings.Cut(rest, "]")
	n, err := strconv.Atoi(index)
	if g, known := in.groups[name]; ok && closed && known && err == nil && n >= 0 && n < g.count {
		number, replaced := strings.CutPrefix(incarnation, "#")
		if _, err := strconv.ParseUint(number, 10, 31); incarnation == "" || replaced && err == nil {
			return g, incarnation == "", true
		}
	}
	return group{}, false, false
}

func (in *instances) has(alloc string) bool {
	_, _, ok := in.of(alloc)
	return ok
}
