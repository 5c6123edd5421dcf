package model

import (
	"slices"
	"strconv"
)

// DesiredStatus is the status of an allocation that the scheduler requires.
type DesiredStatus uint8

// The desired statuses.
const (
	DesiredRun   DesiredStatus = iota
	DesiredStop                // no longer required, moved, or its node was lost
	DesiredEvict               // a victim of preemption
)

func (s DesiredStatus) String() string { return [...]string{"run", "stop", "evict"}[s] }

// ClientStatus is the status of an allocation that its node last reported.
type ClientStatus uint8

// The client statuses.
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

// Terminal reports whether the allocation will never run again.
func (s ClientStatus) Terminal() bool { return s >= ClientComplete }

// An Allocation is one instance of a group on a node.
type Allocation struct {
	ID          string
	Job         *Job   // the version it was placed for
	Group       *Group // of Job
	Index       int    // position among the group's instances; 0 for system jobs
	Incarnation int    // number of earlier allocations of this index
	NodeID      string
	EvalID      string
	Devices     []DeviceUse // one for each device request of the group, in order

	Desired       DesiredStatus
	DesiredReason string
	Client        ClientStatus
	ClientText    string // from the node, for users

	// Preempted lists the victims of this placement, ascending. PreemptedBy is the
	// allocation or claim of which this allocation is a victim.
	Preempted   []string
	PreemptedBy string
	// PolicyVersion names the policy that chose the victims; "" without victims.
	PolicyVersion string
	// MovedTo is the allocation that runs on another node in place of this one, which
	// was stopped to make room. MovedFrom is the reverse link. "": it was not moved.
	MovedTo   string
	MovedFrom string
	Score     float64 // score of the node at placement, for users

	CreateTime  int64 // Unix nanoseconds at which its plan committed
	ModifyTime  int64 // Unix nanoseconds of its last change
	StartTime   int64 // Unix nanoseconds at which it started; valid if Started
	Started     bool
	EndTime     int64 // Unix nanoseconds at which it was stopped, or ended by itself
	SavedWork   int64 // nanoseconds of checkpointed work inherited from earlier incarnations
	CreateIndex uint64
	ModifyIndex uint64

	// NodePos is the position of the node in the state that holds the allocation
	// while it is live. It avoids a lookup; it is local to a process and defines no
	// order.
	NodePos int32
}

// A DeviceUse is the number of instances that an allocation holds of one device
// group.
type DeviceUse struct {
	ID    string // vendor/type/model
	Count int32
}

// Live reports whether the allocation counts against its node: it is desired and
// has not ended. A stopping victim is not live; it only delays its replacement.
func (a *Allocation) Live() bool { return a.Desired == DesiredRun && !a.Client.Terminal() }

// Stopping reports whether the allocation is not desired but may still run.
func (a *Allocation) Stopping() bool { return a.Desired != DesiredRun && !a.Client.Terminal() }

// Completed reports whether the allocation ended by itself with success. One that was stopped
// did not.
func (a *Allocation) Completed() bool { return a.Client == ClientComplete && a.Desired == DesiredRun }

// IsDone reports whether the allocation completed an instance of a job, which therefore does not
// run again. It does if the job was stopped or purged and submitted again since, or if its group
// has changed so that running instances were replaced. The job may be nil or another version.
func (a *Allocation) IsDone(j *Job) bool {
	if !a.Completed() || j == nil || j.Stopped || !a.Job.IsSameJob(j) {
		return false
	}
	g := j.Group(a.Group.Name)
	return g != nil && a.Job.Version >= g.Since
}

// IsDone reports whether all instances of a job have completed, given its allocations. A job
// that runs on every node is never done, because another node may be added.
func (j *Job) IsDone(allocs []*Allocation) bool {
	return !j.Type.PerNode() && !slices.ContainsFunc(j.Groups, func(g *Group) bool {
		return g.count(allocs, func(a *Allocation) bool { return a.IsDone(j) }) < g.Count
	})
}

// Missing returns the number of instances of a group that do not run, given the allocations of
// its job. Completed instances of finite jobs are not missing.
func (g *Group) Missing(allocs []*Allocation) int {
	return g.Count - g.count(allocs, func(a *Allocation) bool { return a.Live() || g.Job.Type.Finite() && a.IsDone(g.Job) })
}

// count returns the number of instances below the count with an allocation for which holds is
// true.
func (g *Group) count(allocs []*Allocation, holds func(*Allocation) bool) int {
	indexes := map[int]bool{}
	for _, a := range allocs {
		if a.Group.Name == g.Name && a.Index < g.Count && a.Job.IsSameJob(g.Job) && holds(a) {
			indexes[a.Index] = true
		}
	}
	return len(indexes)
}

// Age returns how long the allocation has run at now, in nanoseconds.
func (a *Allocation) Age(now int64) int64 {
	if !a.Started || now <= a.StartTime {
		return 0
	}
	return now - a.StartTime
}

// RetainedWork returns the work, in nanoseconds, that a replacement of the
// allocation at a time need not repeat: inherited work, and its own up to the last
// checkpoint. One that completed leaves none, and neither does one that ran before the job was
// last stopped: its replacement starts anew.
func (a *Allocation) RetainedWork(j *Job, at int64) int64 {
	if a.Completed() || a.Job.SubmitTime != j.SubmitTime {
		return 0
	}
	return a.SavedWork + a.Group.SavedWork(a.Age(at))
}

// AllocName returns the display name of an instance: job.group[index], with #n for
// its n-th replacement. Scenarios use it as the allocation ID.
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
