package agent

import (
	"encoding/json"
	"time"
)

// Node is what an agent tells servers of its machine.
type Node struct {
	ID         string
	Name       string
	Address    string // of the agent's HTTP; empty: it has none
	Datacenter string
	Class      string
	Capacity   map[string]int64 // by resource: cpu in millicores, memory and disk in MiB
	Reserved   map[string]int64 // never offered
	Ports      []int            // that the machine itself has taken
	Devices    []Device
	Taints     []Taint
	Attributes map[string]string
	Meta       map[string]string
}

// Taint keeps work off the node that does not tolerate it.
type Taint struct {
	Key, Value string
	Effect     string // NoSchedule or PreferNoSchedule
}

// Device is one group of equal devices.
type Device struct {
	ID         string // vendor/type/model
	Count      int
	Attributes map[string]string
}

// Allocation is one instance of a group that a node runs: what of it the agent
// needs.
type Allocation struct {
	ID        string
	Name      string
	Namespace string
	JobID     string
	JobName   string
	JobType   string
	Group     string
	Index     int
	Priority  int
	// Run is whether it is wanted; otherwise it is to stop.
	Run bool
	// Reason says why it is to stop.
	Reason string
	// Preempted lists the allocations that this one displaces, on any node.
	Preempted []string
	// Status is what servers last heard of it.
	Status    Status
	Resources map[string]int64
	Ports     []Port
	Devices   []Device // that it was given
	Meta      map[string]string
	// Duration is how long it runs once started; 0: until it ends by itself.
	Duration time.Duration
	Tasks    []Task
}

// Port is a host port of an allocation.
type Port struct {
	Label string
	Value int
}

// Task is one thing that an allocation runs.
type Task struct {
	Name        string
	Driver      string
	User        string
	Config      json.RawMessage // that the driver reads
	Env         map[string]string
	CPU         int64 // millicores
	MemoryMB    int64
	KillSignal  string
	KillTimeout time.Duration
	Leader      bool // when it ends, the others are stopped
}
