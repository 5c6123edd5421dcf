package model

import (
	"fmt"
	"slices"
	"strings"
)

// ClassSource says where the class that a binding's priority came from was
// named.
type ClassSource string

// The sources. A federated class is reserved and means nothing yet.
const (
	KubePriorityClass      ClassSource = "KubePriorityClass"      // by the binding itself
	PodPriorityClass       ClassSource = "PodPriorityClass"       // by its pod template
	FederatedPriorityClass ClassSource = "FederatedPriorityClass" // refused
)

// Binding is a workload that wants replicas on member clusters. It shares the
// space of keys with jobs: an evaluation names either.
type Binding struct {
	Namespace     string
	ID            string
	ClusterScoped bool // neither evicts nor is evicted
	Priority      int32
	PriorityClass string      // the class that Priority came from; "" when given by value
	ClassSource   ClassSource // of PriorityClass; "" without one, or where there was no such class
	Preempts      bool        // preemptionPolicy: PreemptLowerPriority; false: Never
	Replicas      int
	MinReplicas   int            // down to which it may be shrunk rather than evicted; 0: whole or not at all
	Resources     Resources      // of one replica
	Clusters      []string       // allowed member clusters; absent: all
	Weights       map[string]int // how replicas divide over clusters; absent: by the room there is
	Constraints   []Constraint   // over attributes of clusters
	Duplicated    bool           // all replicas on each cluster, rather than divided over them
	MinClusters   int            // 0: one
	MaxClusters   int            // 0: any number
	SpreadBy      string         // attribute of clusters over whose values it is spread; "": none
	MinGroups     int            // values of SpreadBy that it is on at least; 0: one
	MaxGroups     int            // 0: any number
	KillTimeout   int64          // nanoseconds an evicted assignment takes to stop
	Duration      int64          // nanoseconds an assignment runs; 0: for ever
	Checkpoint    int64          // nanoseconds between savings of work; 0: an eviction loses all of it
	Stopped       bool
	// Template is what a replica is, in the words of whoever runs it on a member
	// cluster: nobody reads it here.
	Template []byte

	Version     uint64 // raised by every change of the specification
	SubmitTime  int64  // Unix nanoseconds of the first submission
	CreateIndex uint64
	ModifyIndex uint64

	Ask Vector // of one replica; set by Compile
}

// Key identifies the binding, among bindings and jobs.
func (b *Binding) Key() JobKey { return JobKey{b.Namespace, b.ID} }

// HasMissingClass is whether the binding named a class that was not there when it was
// registered. The name is kept; the priority is 0.
func (b *Binding) HasMissingClass() bool { return b.PriorityClass != "" && b.ClassSource == "" }

// ClassWarning says what that means; "" where the class was there.
func (b *Binding) ClassWarning() string {
	if !b.HasMissingClass() {
		return ""
	}
	return fmt.Sprintf("there was no priority class %q when it was registered: its priority is %d; once there is, register it again", b.PriorityClass, b.Priority)
}

// Compile derives Ask and prepares the constraints. The state calls it before it
// publishes a binding; dims must know every name in Resources.
func (b *Binding) Compile(dims *Dimensions) {
	b.Ask = dims.Vector(b.Resources)
	compileAll(b.Constraints)
}

// IsFeasible is whether the cluster may take the binding by what it is, whatever is
// assigned to it.
func (b *Binding) IsFeasible(c *Cluster) bool { return b.InfeasibleReason(c) == "" }

// InfeasibleReason is why the cluster may not take the binding by what it is; "": it may.
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
			return "having no " + b.SpreadBy + " to spread over"
		}
	}
	return ""
}

// SpreadGroup is the value of a cluster that the binding is spread by; "" for all
// clusters where it is spread by none.
func (b *Binding) SpreadGroup(c *Cluster) string {
	if b.SpreadBy == "" || c == nil {
		return ""
	}
	value, _ := c.Attribute(b.SpreadBy)
	return value
}

// SpreadText says over how many clusters, and values of SpreadBy, the binding has to
// be, such as "2 of the clusters, at most 3 of region"; "": any one cluster will do.
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

// TotalAsk is what a number of replicas take.
func (b *Binding) TotalAsk(replicas int) (v Vector) {
	for d, amount := range b.Ask {
		v[d] = amount * int64(replicas)
	}
	return v
}

// IsBestEffort is whether a replica asks for nothing: it then needs no room, and
// evicting it would make none.
func (b *Binding) IsBestEffort() bool { return b.Ask == Vector{} }

// FittingReplicas is how many replicas, at most as many as wanted, find room in what is
// free.
func (b *Binding) FittingReplicas(free *Vector, wanted int) int {
	n := int64(wanted)
	for d, ask := range b.Ask {
		if ask > 0 {
			n = min(n, max(0, free[d])/ask)
		}
	}
	return int(n)
}

// Validate says everything that is wrong with the binding by itself; nil:
// nothing is.
func (b *Binding) Validate() (problems []string) {
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	add(b.Namespace == "" || b.ID == "", "a binding needs a namespace and an id")
	add(b.ClusterScoped && b.Preempts, "a cluster-scoped binding preempts nobody: its preemptionPolicy must be Never")
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
	slices.Sort(problems) // maps have been walked
	return problems
}

// Amounts and replicas are bounded so that their products cannot overflow.
const (
	maxReplicas = 1 << 20
	maxAmount   = 1 << 42
)

// Assignment is replicas of a binding on one member cluster. It knows what it
// holds there by itself, so that it outlives versions of its binding and the
// binding too.
type Assignment struct {
	ID        string
	Binding   JobKey
	ClusterID string
	Replicas  int
	Vec       Vector // what all replicas hold of the cluster
	EvalID    string // that placed it

	Desired       DesiredStatus
	DesiredReason string
	Client        ClientStatus // what its cluster last said of it
	Ready         int          // replicas that work, as its cluster last said
	ClientText    string       // for people
	Done          bool         // its work ended by itself; it holds nothing any more
	PreemptedBy   string       // the claim that it made room for
	PolicyVersion string       // of the policy that chose it as a victim

	CreateTime  int64 // Unix nanoseconds at which its plan committed
	StartTime   int64 // Unix nanoseconds at which it started to work
	EndTime     int64 // Unix nanoseconds at which it was no longer wanted, or ended by itself
	CreateIndex uint64
	ModifyIndex uint64
}

// Live is whether the assignment is wanted and has not ended.
func (a *Assignment) Live() bool { return a.Desired == DesiredRun && !a.Done }

// HoldsCapacity is whether the assignment holds room: one that was told to stop does so
// until it is gone, as nobody can hurry another cluster.
func (a *Assignment) HoldsCapacity() bool { return !a.Done }

// CountsAsPlaced is whether the replicas count towards what the binding wants: they run,
// or ran to their end.
func (a *Assignment) CountsAsPlaced() bool { return a.Desired == DesiredRun }

// LostWork is what an eviction at now loses of its work, in nanoseconds, when work
// is saved at every multiple of checkpoint; 0: never.
func (a *Assignment) LostWork(now, checkpoint int64) int64 {
	age := max(0, now-a.StartTime)
	if checkpoint > 0 {
		return age % checkpoint
	}
	return age
}

// AssignmentID names replicas that an evaluation places on a cluster.
func AssignmentID(key JobKey, cluster, evalID string) string {
	return strings.Join([]string{key.Namespace, key.ID, cluster, evalID}, "/")
}

// PartID names the replicas that a claim takes off an assignment which goes on
// with the rest.
func PartID(assignmentID, claimID string) string { return assignmentID + "/less/" + claimID }

// Withdrawal ends an assignment, or some replicas of it.
type Withdrawal struct {
	AssignmentID string
	// Remaining is how many replicas stay; 0: none. Those that do not go as an
	// assignment of their own, which PartID names, so that what they hold is held
	// until they are gone. Only what has a By keeps any.
	Remaining int
	// By is the claim that the assignment makes room for; "": the plan's own
	// binding no longer wants it.
	By     string
	Policy string // version of the policy that chose it
	Reason string
}
