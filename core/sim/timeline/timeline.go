// Package timeline defines the record of a run: what happened to every allocation and
// assignment, in order. It holds plain values and imports nothing, so that a checker can
// read a run without the packages that made its decisions.
//
// core/sim writes timelines if its options request it. Events are not modified after
// they were reported.
package timeline

// A Kind names an event.
type Kind string

// The kinds. Those of bindings follow those of allocations.
const (
	Step     Kind = "step"     // the file's event at position Step was applied
	Placed   Kind = "placed"   // an allocation was committed to a node
	Started  Kind = "started"  // it runs: its victims have stopped
	Finished Kind = "finished" // it ended by itself
	Evicted  Kind = "evicted"  // it became a victim of By, and begins to stop
	Stopped  Kind = "stopped"  // it is not required on its node, and begins to stop
	Lost     Kind = "lost"     // it is lost with its node
	Gone     Kind = "gone"     // it was evicted or stopped, and has ended
	Rest     Kind = "rest"     // no evaluation is ready at this time

	Assigned  Kind = "assigned"  // replicas of a binding were placed on a cluster
	Resized   Kind = "resized"   // an assignment has another number of replicas
	Withdrawn Kind = "withdrawn" // an assignment begins to stop; By is set for a victim
	Released  Kind = "released"  // an assignment has ended and holds no capacity
	Claimed   Kind = "claimed"   // By reserves capacity on a cluster
	Unclaimed Kind = "unclaimed" // a reservation was dropped or used
)

// An Event is one entry of a timeline. Fields that do not apply are zero.
type Event struct {
	At    int64  // nanoseconds since the start of the scenario
	Entry uint64 // log entry: the placements and evictions of one plan share it
	Kind  Kind
	Step  int // position in the file's events

	Alloc      string // or the ID of the assignment or claim
	Job, Group string // or the binding
	Index      int    // of the instance in its group
	Node       string // or the cluster
	Devices    []Device
	By         string // allocation or binding that the victim was evicted for
	SavedWork  int64  // nanoseconds that an earlier instance has completed
	// Moved links the halves of a move to another node: of an allocation that is stopped, the
	// one that continues it; of one that is placed, the one that it continues.
	Moved string

	Replicas int
}

// Device is a number of instances that an allocation holds of a device group.
type Device struct {
	ID    string
	Count int32
}
