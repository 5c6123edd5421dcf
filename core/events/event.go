package events

import "slices"

// A Topic classifies events by subject.
type Topic string

// The topics.
const (
	Job        Topic = "Job"
	Evaluation Topic = "Evaluation"
	Allocation Topic = "Allocation"
	Node       Topic = "Node"
	Policy     Topic = "Policy"
	Preemption Topic = "Preemption" // one event for each victim
	Decision   Topic = "Decision"   // one event for each placement that evicts
	Operator   Topic = "Operator"
	Cluster    Topic = "Cluster"    // member clusters
	Binding    Topic = "Binding"    // workloads on member clusters
	Assignment Topic = "Assignment" // replicas of a binding on a member cluster
)

// Topics lists all topics.
var Topics = []Topic{Job, Evaluation, Allocation, Node, Policy, Preemption, Decision, Operator, Cluster, Binding, Assignment}

// An Event is something that happened. Events of one index are in the order in
// which they happened.
type Event struct {
	Index     uint64
	Time      int64 // Unix nanoseconds, of the entry
	Topic     Topic
	Type      string // such as JobRegistered
	Namespace string // "" if there is none
	Key       string // ID of the subject
	Payload   any    // a small plain struct of this package
}

// A Filter selects events by topic; an empty one selects all.
type Filter []Topic

func (f Filter) picks(t Topic) bool { return len(f) == 0 || slices.Contains(f, t) }
