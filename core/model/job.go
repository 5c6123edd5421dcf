package model

import (
	"fmt"
	"slices"
)

// JobType says how a job's allocations relate to nodes and to time.
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

// PerNode is whether a job of this type runs once on every eligible node.
func (t JobType) PerNode() bool { return t == JobSystem || t == JobSysBatch }

// Finite is whether completed work of this type is done rather than missing.
func (t JobType) Finite() bool { return t == JobBatch || t == JobSysBatch }

// DefaultNamespace is where a job without a namespace lives.
const DefaultNamespace = "default"

// DefaultPriority is a job's priority when neither it nor a class says one.
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

// Job is a wish: groups of equal instances that should run.
type Job struct {
	Namespace      string
	ID             string
	Name           string            // for people; "" where it is the id
	Meta           map[string]string // for people and tools; nothing is decided by it
	Type           JobType
	Priority       int32
	PriorityClass  string                // the class that Priority came from; "" when given by value
	NeverPreempts  bool                  // preemptionPolicy: Never
	NonPreemptible bool                  // preemptible: false; never a victim
	AllOrNone      bool                  // disruptionMode: all; no allocation of it is evicted without the others that run such a version, but for MinCount
	Toleration     *PreemptionToleration // who is spared; nil: nobody
	AllAtOnce      bool                  // gang: all groups are placed, or none is
	Datacenters    []string              // absent: all
	Policy         string                // overrides the scheduler's policy for this job's placements
	Groups         []*Group
	Stopped        bool

	separatesWidely bool // set by Compile

	Version     uint64 // raised by every change of the specification
	SubmitTime  int64  // Unix nanoseconds of the first submission
	CreateIndex uint64
	ModifyIndex uint64 // of the last change of the specification, stopping included: what a check names
}

// Key identifies the job.
func (j *Job) Key() JobKey { return JobKey{j.Namespace, j.ID} }

// Group finds a group by name; nil when there is none.
func (j *Job) Group(name string) *Group {
	for _, g := range j.Groups {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// Resources lists every resource map of the job, for Dimensions.With.
func (j *Job) Resources() []Resources {
	rs := make([]Resources, len(j.Groups))
	for i, g := range j.Groups {
		rs[i] = g.Resources
	}
	return rs
}

// Compile derives every group's Ask and back pointer. The state calls it
// before it publishes a job; dims must know every name in use.
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
		g.shape, g.apart = g.describe(), g.describeApart()
	}
}

// SeparatesByDomain is whether some separate term has domains of several nodes.
func (j *Job) SeparatesByDomain() bool { return j.separatesWidely }

// Group is a set of equal instances of a job.
type Group struct {
	Name                 string
	Count                int // instances wanted; for system jobs: per node, 0 or 1
	MinCount             int // of a job that is evicted whole: instances beyond it are evicted alone; 0: none is
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
	Disconnect           *Disconnect // what becomes of instances whose node falls silent; nil: they are lost at once
	MaxParallelEvictions int         // more evictions than this in one plan are penalised; 0: unlimited
	KillTimeout          int64       // nanoseconds an evicted instance takes to stop
	Duration             int64       // nanoseconds an instance runs once started; 0: for ever
	Checkpoint           int64       // an eviction loses the work since the last multiple of this; 0: all of it
	Annotations          map[string]float64
	Meta                 map[string]string // for people and tools; nothing is decided by it
	Tasks                []*Task           // what the node runs; none in scenarios

	// Set by Compile of the job.
	Job      *Job
	Position int // in Job.Groups
	Ask      Ask
	shape    string
	apart    string
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

// LostWork is what evicting an instance that has worked for age nanoseconds
// loses: everything since its last checkpoint.
func (g *Group) LostWork(age int64) int64 {
	if age <= 0 {
		return 0
	}
	return age - g.SavedWork(age)
}

// SavedWork is what an instance that has worked for age nanoseconds keeps when
// it is evicted: floor(age / checkpoint) × checkpoint, and 0 without one.
func (g *Group) SavedWork(age int64) int64 {
	if g.Checkpoint <= 0 || age <= 0 {
		return 0
	}
	return age / g.Checkpoint * g.Checkpoint
}
