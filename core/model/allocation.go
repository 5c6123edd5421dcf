package model

import "strconv"

// DesiredStatus is what the scheduler wants of an allocation.
type DesiredStatus uint8

// What the scheduler may want.
const (
	DesiredRun   DesiredStatus = iota
	DesiredStop                // no longer wanted, moved, or its node was lost
	DesiredEvict               // a victim of preemption
)

func (s DesiredStatus) String() string { return [...]string{"run", "stop", "evict"}[s] }

// ClientStatus is what the node last said of an allocation.
type ClientStatus uint8

// What a node may say.
const (
	ClientPending ClientStatus = iota
	ClientRunning
	ClientComplete
	ClientFailed
	ClientLost
)

func (s ClientStatus) String() string {
	return [...]string{"pending", "running", "complete", "failed", "lost"}[s]
}

// Terminal is whether the instance will never run again.
func (s ClientStatus) Terminal() bool { return s >= ClientComplete }

// Allocation is one instance of a group on a node.
type Allocation struct {
	ID          string
	Job         *Job   // the version it was placed for
	Group       *Group // of Job
	Index       int    // which of the group's instances; system jobs: 0
	Incarnation int    // 0 for the first allocation of this index, then counted up
	NodeID      string
	EvalID      string
	Devices     []DeviceUse // one for each device request of the group, in order

	Desired       DesiredStatus
	DesiredReason string
	Client        ClientStatus
	ClientText    string // what the node says of it, for people

	// Preempted lists the victims that made room for this allocation,
	// ascending; PreemptedBy is the allocation (or claim) that made this one a
	// victim.
	Preempted   []string
	PreemptedBy string
	// PolicyVersion names the policy that chose the victims; "" without victims.
	PolicyVersion string
	Score         float64 // the winning score, for people

	CreateTime  int64 // Unix nanoseconds at which its plan committed
	ModifyTime  int64 // Unix nanoseconds of its last change
	StartTime   int64 // Unix nanoseconds at which it started to work; 0 before that when Started is false
	Started     bool
	EndTime     int64 // Unix nanoseconds at which it was no longer wanted, or ended by itself
	SavedWork   int64 // nanoseconds of work inherited from earlier incarnations
	CreateIndex uint64
	ModifyIndex uint64

	// NodePos is the position of the node in the tables of the state that holds
	// the allocation while it is live. It spares looking the node up; it is local
	// to a process and says nothing about order.
	NodePos int32
}

// DeviceUse is what an allocation holds of one device group.
type DeviceUse struct {
	ID    string // vendor/type/model
	Count int32
}

// Live is whether the allocation counts against its node: it is wanted and has
// not ended. A stopping victim is not live; it only delays what replaces it.
func (a *Allocation) Live() bool { return a.Desired == DesiredRun && !a.Client.Terminal() }

// Stopping is whether the allocation is no longer wanted but may still run.
func (a *Allocation) Stopping() bool { return a.Desired != DesiredRun && !a.Client.Terminal() }

// Age is how long the allocation has worked at now, in nanoseconds.
func (a *Allocation) Age(now int64) int64 {
	if !a.Started || now <= a.StartTime {
		return 0
	}
	return now - a.StartTime
}

// RetainedWork is the work, in nanoseconds, that a replacement of the allocation need
// not do again: what it inherited, and its own up to the last checkpoint.
func (a *Allocation) RetainedWork() int64 {
	return a.SavedWork + a.Group.SavedWork(a.Age(a.EndTime))
}

// AllocName names an instance for people: job.group[index], with #n for its
// n-th replacement. Scenarios use it as the allocation's id.
func AllocName(g *Group, index, incarnation int) string {
	b := make([]byte, 0, len(g.Job.ID)+len(g.Name)+16)
	b = append(b, g.Job.ID...)
	b = append(b, '.')
	b = append(b, g.Name...)
	b = append(b, '[')
	b = strconv.AppendInt(b, int64(index), 10)
	b = append(b, ']')
	if incarnation > 0 {
		b = append(b, '#')
		b = strconv.AppendInt(b, int64(incarnation), 10)
	}
	return string(b)
}
