package record

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// events writes the events in the order of the log.
func (w *writer) events() {
	for i := range w.Events {
		e := &w.Events[i]
		at := scenario.Duration(max(e.Time-w.Began, 0))
		for _, step := range w.steps(e) {
			step.At = at
			w.file.Events = append(w.file.Events, step)
		}
	}
	slices.SortStableFunc(w.file.Events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
}

// steps returns the scenario events of one recorded event.
func (w *writer) steps(e *Event) []scenario.Event {
	switch e.Kind {
	case "JobRegistered":
		return w.registered(e)
	case "JobStopped":
		key := model.JobKey{Namespace: e.Namespace, ID: e.ID}
		at, ok := w.current[key]
		if !ok {
			return nil // not part of this recording
		}
		w.stopped[key] = true
		return []scenario.Event{{Stop: w.jobs[at]}}
	}
	if !strings.HasPrefix(e.Kind, "Node") {
		return nil
	}
	id, known := w.names[nameKey{"node", e.ID}]
	if !known {
		w.notes.add("nodes registered and removed during the recording: omitted")
		return nil
	}
	switch {
	case e.Kind == "NodeDown" || e.Kind == "NodeDeleted":
		return []scenario.Event{{NodeDown: id}}
	case e.Kind == "NodeDrain" && e.On:
		return []scenario.Event{{Drain: id}}
	case e.Kind == "NodeReady" || e.Kind == "NodeEligibility" && e.On:
		return []scenario.Event{{NodeUp: id}}
	case e.Kind == "NodeRegistered" && w.Begin.Node(e.ID) == nil:
		return []scenario.Event{{NodeUp: id}}
	case e.Kind == "NodeDrain" || e.Kind == "NodeRegistered":
		return nil // a later event determines the effect
	}
	w.notes.add("node events of kind %s: omitted", e.Kind)
	return nil
}

// registered submits a job. A new version becomes a separate job, unless it continues the
// instances of the previous one.
func (w *writer) registered(e *Event) (steps []scenario.Event) {
	key := model.JobKey{Namespace: e.Namespace, ID: e.ID}
	j := w.version(key, e.Version)
	if j == nil {
		w.notes.add("jobs already garbage collected: omitted")
		return nil
	}
	old, known := w.current[key]
	id := w.job(j)
	if known && w.jobs[old] != id && !w.stopped[key] {
		steps = append(steps, scenario.Event{Stop: w.jobs[old]})
	}
	w.stopped[key] = false
	return append(steps, scenario.Event{Submit: id})
}

// version returns a version of a job from the final state, or nil if it was garbage
// collected.
func (w *writer) version(key model.JobKey, version uint64) *model.Job {
	if j := w.End.Job(key); j != nil && j.Version == version {
		return j
	}
	for _, j := range w.End.JobVersions(key) {
		if j.Version == version {
			return j
		}
	}
	return nil
}

// decisions writes the placements since the start as expectations, each with its
// victims.
func (w *writer) decisions() {
	var placed []*model.Allocation
	for a := range w.End.Allocs() {
		if a.CreateIndex > w.Begin.Index() {
			placed = append(placed, a)
		}
	}
	slices.SortFunc(placed, func(a, b *model.Allocation) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
	})
	for _, a := range placed {
		if job, ok := w.jobs[versioned{a.Job.Key(), a.Job.Version}]; ok {
			w.runs[a.ID] = w.nextAllocName(job, a)
		}
	}
	list := []scenario.ExpectPlacement{}
	for _, a := range placed {
		job, ok := w.jobs[versioned{a.Job.Key(), a.Job.Version}]
		node, known := w.names[nameKey{"node", a.NodeID}]
		if !ok || !known {
			w.notes.add("placements of jobs or nodes outside the recording: omitted")
			continue
		}
		group, id := w.group(job, a), w.runs[a.ID]
		here, elsewhere := w.victims(a)
		list = append(list, scenario.ExpectPlacement{Alloc: &id, Job: &job, Group: &group, Node: &node, Preempted: &here, PreemptedElsewhere: elsewhere})
	}
	w.file.Expect = &scenario.Expect{Placements: &list}
}

// nextAllocName returns the name that the simulator will assign to the next
// allocation of an instance.
func (w *writer) nextAllocName(job string, a *model.Allocation) string {
	g := &model.Group{Name: w.group(job, a), Job: &model.Job{ID: job}}
	name := model.AllocName(g, a.Index, 0)
	w.instances[a.ID] = name
	n := w.placed[name]
	w.placed[name]++
	return model.AllocName(g, a.Index, n)
}

// victims returns the allocations evicted for a: on its own node, and by node on
// other nodes.
func (w *writer) victims(a *model.Allocation) (here []string, elsewhere map[string][]string) {
	here = []string{}
	for _, id := range a.Preempted {
		v, known := w.End.Alloc(id), w.runs[id]
		switch {
		case v == nil || known == "":
			w.notes.add("victims outside the recording: omitted")
		case v.NodeID == a.NodeID:
			here = append(here, known)
		default:
			if elsewhere == nil {
				elsewhere = map[string][]string{}
			}
			node := w.names[nameKey{"node", v.NodeID}]
			elsewhere[node] = append(elsewhere[node], known)
			slices.Sort(elsewhere[node])
		}
	}
	slices.Sort(here)
	return here, elsewhere
}

// settings decodes the configuration of a policy.
func settings(text []byte) map[string]any {
	var m map[string]any
	if len(text) == 0 || json.Unmarshal(text, &m) != nil {
		return nil
	}
	return m
}
