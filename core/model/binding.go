package model

import (
	"fmt"
	"slices"
	"strings"
)

// ClassSource is where the priority class of a binding was named.
type ClassSource string

// The sources. FederatedPriorityClass is reserved and refused.
const (
	KubePriorityClass      ClassSource = "KubePriorityClass"      // by the binding itself
	PodPriorityClass       ClassSource = "PodPriorityClass"       // by its pod template
	FederatedPriorityClass ClassSource = "FederatedPriorityClass" // refused
)

// A Binding is a workload whose replicas run on member clusters. It shares the
// space of keys with jobs: an evaluation names either.
type Binding struct {
	Namespace     string
	ID            string
	ClusterScoped bool // it neither preempts nor is preempted
	Priority      int32
	PriorityClass string      // source of Priority; "" if given by value
	ClassSource   ClassSource // of PriorityClass; "" if there is none, or the class did not exist
	Preempts      bool        // preemptionPolicy: PreemptLowerPriority; false: Never
	Replicas      int
	MinReplicas   int            // minimum after a shrink; 0 if it is evicted all-or-none
	Resources     Resources      // of one replica
	Clusters      []string       // allowed member clusters; nil for all
	Weights       map[string]int // shares of clusters; nil to divide by free capacity
	Constraints   []Constraint   // over attributes of clusters
	Duplicated    bool           // all replicas run on each cluster instead of a share
	MinClusters   int            // 0: one
	MaxClusters   int            // 0: any number
	SpreadBy      string         // attribute of clusters whose values replicas spread over; "" for none
	MinGroups     int            // minimum number of values of SpreadBy; 0 means one
	MaxGroups     int            // 0: any number
	KillTimeout   int64          // nanoseconds that an evicted assignment takes to stop
	Duration      int64          // nanoseconds that an assignment runs; 0 for ever
	Checkpoint    int64          // nanoseconds between checkpoints; 0 if an eviction loses all work
	Stopped       bool
	// Template is the definition of a replica for the member cluster. The scheduler
	// does not read it.
	Template []byte

	Version     uint64 // incremented by every change of the specification
	SubmitTime  int64  // Unix nanoseconds of the first submission
	CreateIndex uint64
	ModifyIndex uint64

	Ask Vector // of one replica; set by Compile
}

// Key returns the key of the binding, unique among bindings and jobs.
func (b *Binding) Key() JobKey { return JobKey{b.Namespace, b.ID} }

// HasMissingClass reports whether the priority class of the binding did not exist
// when it was registered. The name is retained and the priority is 0.
func (b *Binding) HasMissingClass() bool { return b.PriorityClass != "" && b.ClassSource == "" }

// ClassWarning returns the warning about a missing class, or "".
func (b *Binding) ClassWarning() string {
	if !b.HasMissingClass() {
		return ""
	}
	return fmt.Sprintf("priority class %q did not exist when the binding was registered: its priority is %d; create the class, then register the binding again", b.PriorityClass, b.Priority)
}

// Compile derives Ask and prepares the constraints. The state calls it before it
// publishes a binding. dims must contain every name in Resources.
func (b *Binding) Compile(dims *Dimensions) {
	b.Ask = dims.Vector(b.Resources)
	compileAll(b.Constraints)
}

// IsFeasible reports whether the binding may be placed on the cluster, regardless
// of its assignments.
func (b *Binding) IsFeasible(c *Cluster) bool { return b.InfeasibleReason(c) == "" }

// InfeasibleReason returns why the binding may not be placed on the cluster, or ""
// if it may.
func (b *Binding) InfeasibleReason(c *Cluster) string {
	if len(b.Clusters) > 0 && !slices.Contains(b.Clusters, c.ID) {
		return "the clusters that the binding allows"
	}
	if len(b.Weights) > 0 && b.Weights[c.ID] <= 0 {
		return "a weight of 0"
	}
	for i := range b.Constraints {
		cond := &b.Constraints[i]
		if value, set := c.Attribute(cond.Attribute); !cond.Holds(value, set) {
			return cond.String()
		}
	}
	if b.SpreadBy != "" {
		if value, set := c.Attribute(b.SpreadBy); !set || value == "" {
			return "missing attribute " + b.SpreadBy + " to spread over"
		}
	}
	return ""
}

// SpreadGroup returns the value of SpreadBy of a cluster. It returns "" for all
// clusters if SpreadBy is not set.
func (b *Binding) SpreadGroup(c *Cluster) string {
	if b.SpreadBy == "" || c == nil {
		return ""
	}
	value, _ := c.Attribute(b.SpreadBy)
	return value
}

// SpreadText returns the bounds on clusters and values of SpreadBy as text, such as
// "2 of the clusters, at most 3 of region". It returns "" if any one cluster
// suffices.
func (b *Binding) SpreadText() string {
	var parts []string
	if text := bounds(b.MinClusters, b.MaxClusters); text != "" {
		parts = append(parts, text+" of the clusters")
	}
	if text := bounds(b.MinGroups, b.MaxGroups); text != "" && b.SpreadBy != "" {
		parts = append(parts, text+" of "+b.SpreadBy)
	}
	return strings.Join(parts, ", ")
}

func bounds(least, most int) string {
	switch {
	case most > 0 && least == most:
		return fmt.Sprint(most)
	case most > 0 && least > 1:
		return fmt.Sprintf("%d to %d", least, most)
	case most > 0:
		return fmt.Sprintf("at most %d", most)
	case least > 1:
		return fmt.Sprintf("at least %d", least)
	}
	return ""
}

// TotalAsk returns the request of a number of replicas.
func (b *Binding) TotalAsk(replicas int) (v Vector) {
	for d, amount := range b.Ask {
		v[d] = amount * int64(replicas)
	}
	return v
}

// IsBestEffort reports whether a replica requests nothing: it fits everywhere, and
// evicting it would free nothing.
func (b *Binding) IsBestEffort() bool { return b.Ask == Vector{} }

// FittingReplicas returns how many replicas, at most wanted, fit in the free
// capacity.
func (b *Binding) FittingReplicas(free *Vector, wanted int) int {
	n := int64(wanted)
	for d, ask := range b.Ask {
		if ask > 0 {
			n = min(n, max(0, free[d])/ask)
		}
	}
	return int(n)
}

// Validate returns all problems of the binding itself, or nil if it is valid.
func (b *Binding) Validate() (problems []string) {
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	add(b.Namespace == "" || b.ID == "", "namespace and id of a binding are required")
	add(b.ClusterScoped && b.Preempts, "a cluster-scoped binding cannot preempt: its preemptionPolicy must be Never")
	add(b.ClassSource == FederatedPriorityClass, "priorityClassSource FederatedPriorityClass is reserved and not defined: use KubePriorityClass or PodPriorityClass")
	add(b.Replicas < 0, "%d replicas: expected 0 or more", b.Replicas)
	add(int64(b.Replicas) > maxReplicas, "%d replicas: expected at most %d", b.Replicas, maxReplicas)
	for name, amount := range b.Resources {
		add(amount < 0 || amount > maxAmount, "%d of %s: expected 0 to %d", amount, name, int64(maxAmount))
	}
	for cluster, weight := range b.Weights {
		add(weight < 0 || weight > maxReplicas, "a weight of %d on %s: expected 0 to %d", weight, cluster, maxReplicas)
	}
	add(b.MinClusters < 0 || b.MaxClusters < 0, "spread: negative numbers of clusters")
	add(b.MaxClusters > 0 && b.MinClusters > b.MaxClusters, "spread: minClusters %d is above maxClusters %d", b.MinClusters, b.MaxClusters)
	add(!b.Duplicated && b.MinClusters > b.Replicas && b.Replicas > 0, "spread: %d replicas cannot be divided over %d clusters", b.Replicas, b.MinClusters)
	add(b.SpreadBy == "" && (b.MinGroups != 0 || b.MaxGroups != 0), "spread: minGroups and maxGroups count values of an attribute: name it")
	add(b.SpreadBy != "" && b.MinGroups == 0 && b.MaxGroups == 0, "spread: by %s bounds nothing without minGroups or maxGroups", b.SpreadBy)
	add(b.MinGroups < 0 || b.MaxGroups < 0, "spread: negative numbers of groups")
	add(b.MaxGroups > 0 && b.MinGroups > b.MaxGroups, "spread: minGroups %d is above maxGroups %d", b.MinGroups, b.MaxGroups)
	add(b.MaxClusters > 0 && b.MinGroups > b.MaxClusters, "spread: minGroups %d is above maxClusters %d", b.MinGroups, b.MaxClusters)
	add(!b.Duplicated && b.MinGroups > b.Replicas && b.Replicas > 0, "spread: %d replicas cannot be divided over %d values of %s", b.Replicas, b.MinGroups, b.SpreadBy)
	add(b.MinReplicas < 0 || b.MinReplicas > max(0, b.Replicas), "%d minReplicas of %d replicas: expected 0 to as many", b.MinReplicas, b.Replicas)
	add(b.KillTimeout < 0 || b.Duration < 0 || b.Checkpoint < 0, "negative durations")
	for i := range b.Constraints {
		op := b.Constraints[i].Operator
		add(op.CountsAllocations(), "constraint %s counts instances on nodes: a binding has spread", op)
		add(!op.Valid(), "unknown operator %q", op)
	}
	slices.Sort(problems) // map order must not reach messages
	return problems
}

// Amounts and replicas are bounded so that their products cannot overflow.
const (
	maxReplicas = 1 << 20
	maxAmount   = 1 << 42
)

// An Assignment is the replicas of a binding on one member cluster. It records what
// it holds there, so that it remains valid for later versions of its binding and
// after its deletion.
type Assignment struct {
	ID        string
	Binding   JobKey
	ClusterID string
	Replicas  int
	Vec       Vector // usage of all replicas
	EvalID    string // that placed it

	Desired       DesiredStatus
	DesiredReason string
	Client        ClientStatus // last reported by its cluster
	Ready         int          // ready replicas, as last reported
	ClientText    string       // for people
	Done          bool         // completed: it holds no capacity any more
	PreemptedBy   string       // claim that it is a victim of
	PolicyVersion string       // of the policy that chose it as a victim

	CreateTime  int64 // Unix nanoseconds at which its plan committed
	StartTime   int64 // Unix nanoseconds at which it started
	EndTime     int64 // Unix nanoseconds at which it was stopped, or ended by itself
	CreateIndex uint64
	ModifyIndex uint64
}

// Live reports whether the assignment is desired and has not ended.
func (a *Assignment) Live() bool { return a.Desired == DesiredRun && !a.Done }

// HoldsCapacity reports whether the assignment holds capacity. A stopping
// assignment does until it has ended, because its cluster stops it at its own pace.
func (a *Assignment) HoldsCapacity() bool { return !a.Done }

// CountsAsPlaced reports whether the replicas count toward those of the binding:
// they run, or have completed.
func (a *Assignment) CountsAsPlaced() bool { return a.Desired == DesiredRun }

// LostWork returns the work that an eviction at now loses, in nanoseconds, if it is
// saved at every multiple of checkpoint; 0 means never.
func (a *Assignment) LostWork(now, checkpoint int64) int64 {
	age := max(0, now-a.StartTime)
	if checkpoint > 0 {
		return age % checkpoint
	}
	return age
}

// AssignmentID returns the ID of the replicas that an evaluation places on a
// cluster.
func AssignmentID(key JobKey, cluster, evalID string) string {
	return strings.Join([]string{key.Namespace, key.ID, cluster, evalID}, "/")
}

// PartID returns the ID of the replicas that a claim removes from an assignment
// whose other replicas remain.
func PartID(assignmentID, claimID string) string { return assignmentID + "/less/" + claimID }

// WholeID returns the ID of the assignment that a PartID is of, or any other ID unchanged.
func WholeID(id string) string {
	whole, _, _ := strings.Cut(id, "/less/")
	return whole
}

// A Withdrawal ends an assignment, or some of its replicas.
type Withdrawal struct {
	AssignmentID string
	// Remaining is the number of replicas that remain; 0 if all end. If it is set,
	// the others become an assignment with the PartID, which holds their capacity
	// until they have ended. It requires By.
	Remaining int
	// By is the claim that the assignment is a victim of; "" if the plan's own
	// binding no longer requires it.
	By     string
	Policy string // version of the policy that chose it
	Reason string
}

// ParseAssignmentID returns the binding and the cluster of an assignment ID, for
// callers that lack the deleted assignment. It returns false if AssignmentID did
// not create the ID. IDs whose parts contain slashes are not supported.
func ParseAssignmentID(id string) (binding JobKey, cluster string, ok bool) {
	parts := strings.SplitN(id, "/", 4)
	if len(parts) < 4 {
		return JobKey{}, "", false
	}
	return JobKey{Namespace: parts[0], ID: parts[1]}, parts[2], true
}

// ParseClaimID is ParseAssignmentID for the claim of a binding.
func ParseClaimID(id string) (claimant JobKey, cluster string, ok bool) {
	rest, found := strings.CutPrefix(id, "claim/")
	if !found {
		return JobKey{}, "", false
	}
	return ParseAssignmentID(rest)
}
