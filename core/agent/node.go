package agent

import (
	"encoding/json"
	"time"
)

// Node is an agent's description of its machine.
type Node struct {
	ID         string
	Name       string
	Address    string // of the agent's HTTP server; empty: there is none
	Datacenter string
	Class      string
	Capacity   map[string]int64 // by resource: cpu in millicores, memory and disk in MiB
	Reserved   map[string]int64 // not offered to allocations
	Ports      []int            // used by the machine itself
	Devices    []Device
	Taints     []Taint
	Attributes map[string]string
	Meta       map[string]string
}

// Taint repels allocations that do not tolerate it.
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

// Allocation is one instance of a group on a node, reduced to the fields that the
// agent needs.
type Allocation struct {
	ID        string
	Name      string
	Namespace string
	JobID     string
	JobName   string
	Group     string
	Index     int
	Priority  int
	// Run is true if the allocation should run, and false if it should stop.
	Run bool
	// Reason is why it should stop.
	Reason string
	// Preempted lists the victims of this allocation, on any node.
	Preempted []string
	// Status is the last status that servers received.
	Status    Status
	Resources map[string]int64
	Ports     []Port
	Devices   []Device // assigned to it
	Meta      map[string]string
	// Duration is how long it runs once started; 0: until its tasks end.
	Duration time.Duration
	Tasks    []Task
}

// Port is a host port of an allocation.
type Port struct {
	Label string
	Value int
}

// Task is one process of an allocation.
type Task struct {
	Name        string
	Driver      string
	User        string
	Config      json.RawMessage // options of the driver
	Env         map[string]string
	CPU         int64 // millicores
	MemoryMB    int64
	KillSignal  string
	KillTimeout time.Duration
	Leader      bool // when it ends, the other tasks are stopped
}
