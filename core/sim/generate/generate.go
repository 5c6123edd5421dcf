package generate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Generate returns the scenario of a spec and a report of its load. It returns a
// *scenario.Error if the spec is invalid, or if it exceeds the limits on jobs, groups and
// tasks.
func Generate(s *Spec) (*scenario.File, *Report, error) {
	return GenerateObserved(s, func(Progress) {})
}

// Progress is the progress of Generate.
type Progress struct {
	Jobs  int     // generated so far
	Share float64 // of the classes, between 0 and 1
}

// GenerateObserved is like Generate, and calls progress after every job.
func GenerateObserved(s *Spec, progress func(Progress)) (*scenario.File, *Report, error) {
	g := &generator{plan: newPlan(s), progress: progress, file: &scenario.File{
		Version: 1, Name: s.Name, Description: s.Description, Seed: s.Seed,
	}}
	if err := g.err(); err != nil {
		return nil, nil, err
	}
	if s.Until != 0 {
		g.file.Until = new(scenario.Duration(s.Until))
	}
	g.nodes()
	if err := g.jobs(); err != nil {
		return nil, nil, err
	}
	g.failures()
	slices.SortStableFunc(g.file.Events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
	if err := g.file.Validate(); err != nil {
		return nil, nil, fmt.Errorf("%s: the generated scenario is invalid: %w", orDefault(s.file, s.Name), err)
	}
	return g.file, g.report(), nil
}

type generator struct {
	*plan
	file *scenario.File
	all  []node // every node, with its count expanded
	made []classResult
	// Numbers so far.
	jobN, groupN, taskN int
	classN              int // classes that are complete

	progress func(Progress)

	lastFit int // position in all of the node that fitted the last task
}

// node holds the properties of one node that failures and fit checks read.
type node struct {
	id         string
	attributes map[string]string
	capacity   scenario.Quantities
}

// nodes assigns attributes and jitter. Equal nodes become one entry with a count.
func (g *generator) nodes() {
	for i := range g.shapes {
		s := &g.shapes[i]
		r := stream(g.spec.Seed, "nodes/"+s.ID)
		same := s.Jitter == 0
		for _, v := range s.Attributes {
			same = same && len(v.list) == 1
		}
		for k := range s.count {
			n := g.node(s, k, r)
			id := n.ID
			if s.count > 1 {
				id = fmt.Sprintf("%s-%d", s.ID, k)
			}
			g.all = append(g.all, node{id, n.Attributes, n.Capacity})
			switch {
			case same && s.count > 1 && k == 0:
				n.Count = new(s.count)
				g.file.Nodes = append(g.file.Nodes, n)
			case !same || s.count == 1:
				n.ID = id
				g.file.Nodes = append(g.file.Nodes, n)
			}
		}
	}
}

// node returns node k of a shape.
func (g *generator) node(s *shape, k int, r *rng) scenario.Node {
	n := scenario.Node{ID: s.ID, Datacenter: s.Datacenter, Class: s.Class, Capacity: make(scenario.Quantities)}
	for _, name := range sorted(s.capacity) {
		v := s.capacity[name]
		if j := int64(s.Jitter); j > 0 {
			v = v * (100 + r.between(-j, j)) / 100
		}
		n.Capacity[name] = v
	}
	if len(s.Attributes) > 0 {
		n.Attributes = make(map[string]string)
	}
	for a, v := range s.Attributes {
		n.Attributes[a] = v.list[k%len(v.list)]
	}
	for _, d := range s.Devices {
		n.Devices = append(n.Devices, scenario.Device{ID: d.ID, Count: d.Count})
	}
	return n
}

// generatedJob is a job with its submit time and load.
type generatedJob struct {
	at  int64
	job scenario.Job
}

// jobs generates the classes with a known number of jobs first, then those that fill
// the load of a band, and submits all jobs in order of time.
func (g *generator) jobs() error {
	g.made = make([]classResult, len(g.classes))
	for i := range g.classes {
		if k := &g.classes[i]; k.times.number != byLoad {
			if err := g.fixed(k, &g.made[i]); err != nil {
				return err
			}
		}
	}
	if err := g.fill(); err != nil {
		return err
	}
	var all []generatedJob
	for i := range g.made {
		m := &g.made[i]
		slices.SortStableFunc(m.jobs, func(a, b generatedJob) int { return cmp.Compare(a.at, b.at) })
		width := len(fmt.Sprint(max(0, len(m.jobs)-1)))
		for n := range m.jobs {
			m.jobs[n].job.ID = fmt.Sprintf("%s-%0*d", g.classes[i].Name, width, n)
			g.classes[i].colocate(&m.jobs[n].job)
		}
		all = append(all, m.jobs...)
	}
	slices.SortStableFunc(all, func(a, b generatedJob) int { return cmp.Compare(a.at, b.at) })
	for i := range all {
		g.file.Jobs = append(g.file.Jobs, all[i].job)
		g.file.Events = append(g.file.Events, scenario.Event{At: scenario.Duration(all[i].at), Submit: all[i].job.ID})
	}
	return nil
}

// colocate binds all tasks of a job to one value of an attribute, by a label that only
// they have.
func (k *class) colocate(j *scenario.Job) {
	if k.Colocate == "" {
		return
	}
	for i := range j.Groups {
		x := &j.Groups[i]
		labels := maps.Clone(x.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels["job"] = j.ID
		x.Labels, x.Colocate = labels, []scenario.LabelTerm{{Labels: map[string]string{"job": j.ID}, TopologyKey: k.Colocate}}
	}
}

// fixed generates a class with a number of jobs that is fixed or given by its process.
func (g *generator) fixed(k *class, m *classResult) error {
	r := stream(g.spec.Seed, "class/"+k.Name)
	times := k.times.next(r, k.times.number)
	for i, at := range times {
		if err := g.add(k, m, at, g.job(k, r)); err != nil {
			return err
		}
		g.advance(float64(i+1) / float64(len(times)))
	}
	g.classN++
	return nil
}

// advance reports the share of the current class that is complete.
func (g *generator) advance(share float64) {
	g.progress(Progress{Jobs: g.jobN, Share: (float64(g.classN) + share) / float64(len(g.classes))})
}

// add records a job of a class. It returns an error if the limits are exceeded.
func (g *generator) add(k *class, m *classResult, at int64, j scenario.Job) error {
	g.jobN++
	g.groupN += len(j.Groups)
	g.taskN -= m.tasks
	m.add(g, at, &j)
	g.taskN += m.tasks
	if g.jobN > maxJobs || g.groupN > maxAllGroups || g.taskN > maxTasks {
		return g.tooManyJobs(k)
	}
	m.jobs = append(m.jobs, generatedJob{at, j})
	return nil
}

func (g *generator) tooManyJobs(k *class) error {
	return &scenario.Error{File: g.spec.file, Problems: []scenario.Problem{{
		Line: g.spec.line(k.path), Path: k.path,
		Message: fmt.Sprintf("more than %d jobs, %d groups or %d tasks", maxJobs, maxAllGroups, maxTasks),
		Remedy:  "make its jobs larger or longer, or its load smaller",
	}}}
}

// job draws one job. It always draws the same values in the same order, even if some
// are unused, so that a change of one field does not affect the others.
func (g *generator) job(k *class, r *rng) scenario.Job {
	j := scenario.Job{
		Namespace: k.Namespace, Type: orDefault(k.Type, "batch"), Priority: new(k.priority),
		Preemptible: k.Preemptible, AllAtOnce: k.Gang,
	}
	for i := range max(1, k.Groups) {
		j.Groups = append(j.Groups, g.group(k, i, r))
	}
	pin, pinned := g.choose(k.Pin, r)
	prefer, preferred := g.choose(k.Prefer, r)
	for i := range j.Groups {
		x := &j.Groups[i]
		if pinned {
			x.Constraints = append(x.Constraints, pin)
		}
		if preferred {
			x.Affinities = []scenario.Affinity{{Constraint: prefer, Weight: weightOrDefault(k.Prefer.Weight)}}
		}
	}
	return j
}

// weightOrDefault returns *w, or 50 if w is nil.
func weightOrDefault(w *int) int {
	if w == nil {
		return 50
	}
	return *w
}

// choose returns a constraint to a random value for the given share of the jobs.
func (g *generator) choose(c *Choose, r *rng) (scenario.Constraint, bool) {
	if c == nil {
		return scenario.Constraint{}, false
	}
	hit := r.below(100) < int64(c.Share)
	values := g.values[c.Attribute]
	value := values[r.below(int64(len(values)))]
	return scenario.Constraint{Attribute: c.Attribute, Operator: string(model.OpEqual), Value: value}, hit
}

// group draws group i of a job.
func (g *generator) group(k *class, i int, r *rng) scenario.Group {
	x := scenario.Group{
		Name: "main", Labels: k.Labels,
		KillTimeout: scenario.Duration(k.KillTimeout), Checkpoint: scenario.Duration(k.Checkpoint),
	}
	if k.Groups > 1 {
		x.Name = fmt.Sprintf("g%d", i)
	}
	if n := int(k.tasks.next(r)); !k.perNode() {
		x.Count = &n
	}
	for _, a := range k.resources {
		if v := a.next(r); v > 0 {
			if x.Resources == nil {
				x.Resources = make(scenario.Quantities)
			}
			x.Resources[a.name] = v
		}
	}
	if k.devices != nil {
		x.Devices = []scenario.DeviceRequest{{ID: k.Devices.ID, Count: new(int32(k.devices.next(r)))}}
	}
	if k.duration != nil {
		x.Duration = scenario.Duration(k.duration.next(r))
	}
	if k.DistinctHosts {
		x.Constraints = append(x.Constraints, scenario.Constraint{Operator: string(model.OpDistinctHosts)})
	}
	for _, c := range k.Constraints {
		x.Constraints = append(x.Constraints, c.scenario())
	}
	if s := k.Spread; s != nil {
		x.Spread = []scenario.Spread{{Attribute: s.Attribute, Weight: s.Weight, MaxSkew: s.MaxSkew}}
	}
	return x
}

func (c *Constraint) scenario() scenario.Constraint {
	out := scenario.Constraint{Attribute: c.Attribute, Operator: c.Operator}
	if c.Value.listed {
		out.Values = c.Value.list
	} else {
		out.Value = strings.Join(c.Value.list, "")
	}
	return out
}
