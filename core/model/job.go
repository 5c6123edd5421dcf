package model

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"
)

// JobType determines how a job's allocations relate to nodes and to time.
type JobType uint8

// The job types. Service and batch place a count; system and sysbatch place
// one allocation per group on every eligible node.
const (
	JobService JobType = iota
	JobBatch
	JobSystem
	JobSysBatch
	JobTypes = iota
)

// JobBinding is the type of evaluations of bindings. No job has it.
const (
	JobBinding JobType = JobTypes
	// EvalTypes is how many types evaluations have.
	EvalTypes = JobTypes + 1
)

var jobTypeNames = [...]string{"service", "batch", "system", "sysbatch", "binding"}

func (t JobType) String() string { return jobTypeNames[t] }

// ParseJobType is the inverse of String for types that jobs have.
func ParseJobType(s string) (JobType, error) {
	if i := slices.Index(jobTypeNames[:JobTypes], s); i >= 0 {
		return JobType(i), nil
	}
	return 0, fmt.Errorf("unknown job type %q: want service, batch, system or sysbatch", s)
}

// PerNode reports whether a job of this type runs once on every eligible node.
func (t JobType) PerNode() bool { return t == JobSystem || t == JobSysBatch }

// Finite reports whether a completed allocation of this type is done rather than
// missing.
func (t JobType) Finite() bool { return t == JobBatch || t == JobSysBatch }

// DefaultNamespace is the namespace of jobs that name none.
const DefaultNamespace = "default"

// DefaultPriority is the priority of jobs that name neither a priority nor a class.
const DefaultPriority = 50

// JobKey identifies a job.
type JobKey struct{ Namespace, ID string }

func (k JobKey) String() string { return k.Namespace + "/" + k.ID }

// Compare orders keys by namespace, then id, bytewise.
func (k JobKey) Compare(o JobKey) int {
	if k.Namespace != o.Namespace {
		if k.Namespace < o.Namespace {
			return -1
		}
		return 1
	}
	switch {
	case k.ID < o.ID:
		return -1
	case k.ID > o.ID:
		return 1
	}
	return 0
}

// A Job specifies groups of equal instances that should run.
type Job struct {
	Namespace      string
	ID             string
	Name           string            // for users; "" if equal to ID
	Meta           map[string]string // for people and tools; nothing is decided by it
	Type           JobType
	Priority       int32
	PriorityClass  string                // source of Priority; "" if given by value
	NeverPreempts  bool                  // preemptionPolicy: Never
	NonPreemptible bool                  // preemptible: false; never a victim
	AllOrNone      bool                  // disruptionMode: all; its allocations of such versions are evicted together, except for surplus instances
	Toleration     *PreemptionToleration // protection from preemption; nil: none
	AllAtOnce      bool                  // gang: all groups are placed, or none is
	Datacenters    []string              // absent: all
	Policy         string                // overrides the scheduler's policy for this job's placements
	Groups         []*Group
	Stopped        bool

	separatesWidely bool // set by Compile

	Version     uint64 // raised by every change of the specification
	SubmitTime  int64  // Unix nanoseconds of the first submission, or of the first one after the last stop
	CreateIndex uint64
	ModifyIndex uint64 // of the last change of the specification, including stops; plan checks compare it
}

// Key returns the key of the job.
func (j *Job) Key() JobKey { return JobKey{j.Namespace, j.ID} }

// IsSameJob reports whether j and other are versions of one job. A job that was purged and
// registered again is another one.
func (j *Job) IsSameJob(other *Job) bool {
	return j == other || j.CreateIndex == other.CreateIndex && j.Key() == other.Key()
}

// Group returns the group with the name, or nil if there is none.
func (j *Job) Group(name string) *Group {
	for _, g := range j.Groups {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// Resources returns every resource map of the job, for Dimensions.With.
func (j *Job) Resources() []Resources {
	rs := make([]Resources, len(j.Groups))
	for i, g := range j.Groups {
		rs[i] = g.Resources
	}
	return rs
}

// Compile derives every group's Ask and back pointer. The state calls it before it
// publishes a job. dims must contain every name in use.
func (j *Job) Compile(dims *Dimensions) {
	j.separatesWidely = false
	for i, g := range j.Groups {
		g.compile(j, i, dims)
		j.separatesWidely = j.separatesWidely || slices.ContainsFunc(g.Separate, func(t LabelTerm) bool {
			return t.TopologyKey != TopologyNode
		})
	}
	for _, g := range j.Groups {
		g.drivers = g.findDrivers() // before describe
		g.classes = classes{g.describe(), g.describeApart()}
	}
}

// SeparatesByDomain reports whether some separation term has domains of several
// nodes.
func (j *Job) SeparatesByDomain() bool { return j.separatesWidely }

// Colocates reports whether a group of the job has co-location terms.
func (j *Job) Colocates() bool {
	return slices.ContainsFunc(j.Groups, func(g *Group) bool { return len(g.Colocate) > 0 })
}

// DetachGroups copies the groups that j shares with another version, as callers often copy a job
// without them, and whatever Compile writes to.
func (j *Job) DetachGroups() {
	if !slices.ContainsFunc(j.Groups, func(g *Group) bool { return g.Job != nil && g.Job != j }) {
		return
	}
	j.Groups = slices.Clone(j.Groups)
	for i, shared := range j.Groups {
		g := *shared
		g.Ask = Ask{}
		g.Constraints = slices.Clone(g.Constraints)
		g.Affinities = slices.Clone(g.Affinities)
		g.Colocate, g.Separate = slices.Clone(g.Colocate), slices.Clone(g.Separate)
		g.Devices = slices.Clone(g.Devices)
		for d := range g.Devices {
			g.Devices[d].Constraints = slices.Clone(g.Devices[d].Constraints)
		}
		j.Groups[i] = &g
	}
}

// Succeed makes j the next version of a job. It is not compiled yet.
func (j *Job) Succeed(old *Job) {
	j.DetachGroups()
	j.Version = old.Version + 1
	for _, g := range j.Groups {
		g.Job, g.Since = j, j.Version
		if before := old.Group(g.Name); before != nil && !old.Stopped && before.ContinuesAs(g) {
			g.Since = before.Since
		}
	}
}

// The equivalence classes of a group.
type classes struct{ placement, separation string }

// A Group is a set of equal instances of a job.
type Group struct {
	Name                 string
	Count                int // desired instances; for system jobs: per node, 0 or 1
	MinCount             int // of an all-or-none job: instances beyond it may be evicted individually; 0: none
	Resources            Resources
	Ports                []uint16 // host ports that each instance needs
	Devices              []DeviceRequest
	Labels               map[string]string
	Tolerations          []Toleration // of taints
	Constraints          []Constraint
	Affinities           []Affinity
	Spread               []Spread
	Colocate             []LabelTerm
	Separate             []LabelTerm
	Disconnect           *Disconnect // how instances on a disconnected node are treated; nil: they are lost at once
	MaxParallelEvictions int         // more evictions than this in one plan are penalised; 0: unlimited
	KillTimeout          int64       // nanoseconds that an evicted instance takes to stop
	Duration             int64       // nanoseconds that a started instance runs; 0 for ever
	Checkpoint           int64       // an eviction loses the work since the last multiple of this; 0: all of it
	Annotations          map[string]float64
	Meta                 map[string]string // for people and tools; nothing is decided by it
	Tasks                []*Task           // tasks that the node runs; none in scenarios
	// Since is the first version of the job since which instances continue as those of this
	// group. Instances that completed under an earlier one run again.
	Since uint64

	// Set by Compile of the job.
	Job      *Job
	Position int // in Job.Groups
	Ask      Ask
	classes  classes
	nameHash uint64
	memo     *budgetMemo
	drivers  []string // of its tasks, each once, ascending
}

func (g *Group) compile(j *Job, position int, dims *Dimensions) {
	g.Job, g.Position, g.memo = j, position, &budgetMemo{}
	g.nameHash = g.hashName()
	g.Ask = Ask{Vec: dims.Vector(g.Resources), Ports: slices.Sorted(slices.Values(g.Ports)), Devices: g.Devices}
	compileAll(g.Constraints)
	for i := range g.Affinities {
		g.Affinities[i].compile()
	}
	for i := range g.Devices {
		compileAll(g.Devices[i].Constraints)
	}
	for _, terms := range [][]LabelTerm{g.Colocate, g.Separate} {
		for i := range terms {
			terms[i].compile()
		}
	}
	for d := range dims.Len() {
		if g.Ask.Vec[d] > 0 {
			g.Ask.Dims = append(g.Ask.Dims, uint8(d))
		}
	}
}

// LostWorkText describes work in nanoseconds for people, rounded to seconds.
func LostWorkText(n int64) string {
	d := time.Duration(n).Round(time.Second)
	if d == 0 {
		return "less than a second of work"
	}
	return d.String() + " of work"
}

// LostWork returns the work that an eviction loses of an instance that has run for
// age nanoseconds: everything since its last checkpoint.
func (g *Group) LostWork(age int64) int64 {
	if age <= 0 {
		return 0
	}
	return age - g.SavedWork(age)
}

// SavedWork returns the work that an instance that has run for age nanoseconds
// retains if it is evicted: floor(age / checkpoint) × checkpoint, and 0 without
// checkpoints.
func (g *Group) SavedWork(age int64) int64 {
	if g.Checkpoint <= 0 || age <= 0 {
		return 0
	}
	return age / g.Checkpoint * g.Checkpoint
}

// ContinuesAs reports whether an instance of g can continue as one of next, the group in a later
// version of its job: it has the same resources, and its tasks are the same. If it cannot, it is
// replaced.
func (g *Group) ContinuesAs(next *Group) bool {
	return g == next || maps.Equal(g.Resources, next.Resources) && equalPorts(g.Ports, next.Ports) &&
		slices.EqualFunc(g.Devices, next.Devices, func(a, b DeviceRequest) bool { return a.Equal(&b) }) &&
		g.Duration == next.Duration && g.Checkpoint == next.Checkpoint && g.KillTimeout == next.KillTimeout &&
		g.hasTasksOf(next)
}

func equalPorts(a, b []uint16) bool {
	return len(a) == len(b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// hasTasksOf reports whether the tasks of two groups are the same, and the metadata in their
// environment.
func (g *Group) hasTasksOf(next *Group) bool {
	if len(g.Tasks) == 0 {
		return len(next.Tasks) == 0
	}
	return slices.EqualFunc(g.Tasks, next.Tasks, (*Task).equal) && maps.Equal(g.Meta, next.Meta) && maps.Equal(g.Job.Meta, next.Job.Meta)
}

// A Task is one process of a group's instances. The scheduler reads the group's
// Resources only; the node runs the tasks.
type Task struct {
	Name        string
	Driver      string // exec or sim
	User        string // "": the agent's own
	Config      []byte // JSON object that the driver reads
	Env         map[string]string
	Resources   Resources // its share of the group's
	KillSignal  string    // "": SIGTERM
	KillTimeout int64     // nanoseconds between signal and kill; Group.KillTimeout is the greatest of its tasks
	Leader      bool      // the others end when it does
}

func (t *Task) equal(o *Task) bool {
	return t.Name == o.Name && t.Driver == o.Driver && t.User == o.User && bytes.Equal(t.Config, o.Config) && maps.Equal(t.Env, o.Env) &&
		maps.Equal(t.Resources, o.Resources) && t.KillSignal == o.KillSignal && t.KillTimeout == o.KillTimeout && t.Leader == o.Leader
}
