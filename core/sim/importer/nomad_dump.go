package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/client"
)

// nomadDump holds the content of the files of a Nomad dump: responses of its API, in any
// number of files. Each file holds one object, a list, or several of them in sequence.
type nomadDump struct {
	nodes  []*nomadNode
	allocs []*nomadAlloc
	jobs   []*nomadJob // specifications, and stubs of lists
	config *nomadConfig
	read   map[string]bool // ids of nodes and allocations: several responses may contain the same object
}

// nomadNode holds the relevant fields of a node, or of its stub in a list.
type nomadNode struct {
	ID, Name, Datacenter, NodeClass, NodePool, Status, SchedulingEligibility string
	Drain                                                                    bool
	Attributes, Meta                                                         map[string]string
	cedeNode
	NodeResources *struct {
		Cpu     struct{ CpuShares int64 }
		Memory  struct{ MemoryMB int64 }
		Disk    struct{ DiskMB int64 }
		Devices []nomadDevice
	}
	ReservedResources *struct {
		Cpu      struct{ CpuShares int64 }
		Memory   struct{ MemoryMB int64 }
		Disk     struct{ DiskMB int64 }
		Networks struct{ ReservedHostPorts string }
	}
}

// nomadDevice is a device group of a node, or the devices of one group that a task holds.
type nomadDevice struct {
	Vendor, Type, Name string
	Instances          []struct{ Healthy bool }
	DeviceIDs          []string
}

func (d *nomadDevice) id() string { return d.Vendor + "/" + d.Type + "/" + d.Name }

// nomadAlloc holds the relevant fields of an allocation. Times are Unix nanoseconds.
type nomadAlloc struct {
	ID, Namespace, JobID, JobType, TaskGroup, NodeID, ClientStatus, DesiredStatus string
	CreateTime, ModifyTime                                                        int64
	Job                                                                           *nomadJob
	cedeAlloc
	AllocatedResources *struct {
		Tasks map[string]struct {
			Cpu     struct{ CpuShares int64 }
			Memory  struct{ MemoryMB int64 }
			Devices []nomadDevice
		}
		Shared struct {
			DiskMB int64
			Ports  []struct{ Value int }
		}
	}
}

// nomadJob is a job specification, or the stub of a list.
type nomadJob struct {
	client.Job
	NodePool                   string
	JobSummary                 nomadSummary // of stubs
	ParameterizedJob, Periodic json.RawMessage
	TaskGroups                 []*nomadGroup // shadows the field of client.Job, whose tasks lack a field
}

type nomadGroup struct {
	client.TaskGroup
	Tasks []*nomadTask
}

type nomadTask struct {
	client.Task
	Lifecycle *struct {
		Hook    string
		Sidecar bool
	}
}

// nomadConfig is the scheduler configuration of the cluster.
type nomadConfig struct {
	SchedulerAlgorithm string
	PreemptionConfig   struct {
		SystemSchedulerEnabled, SysBatchSchedulerEnabled, BatchSchedulerEnabled, ServiceSchedulerEnabled bool
	}
}

// readNomad reads the named file, or every .json file in a folder.
func readNomad(src Source, report *Report) (*nomadDump, error) {
	files := []string{src.File}
	if src.File == "" {
		if files = src.Match("*.json", "*/*.json"); len(files) == 0 {
			return nil, fmt.Errorf("no .json file in this folder (found: %s)", src.Listing())
		}
	}
	report.Files = files
	src.Expect(files...)
	d := &nomadDump{read: map[string]bool{}}
	for _, name := range files {
		if err := d.file(src, name); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *nomadDump) file(src Source, name string) (err error) {
	r, err := src.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	stream := json.NewDecoder(r)
	for n := 1; ; n++ {
		var document json.RawMessage
		if err := stream.Decode(&document); err == io.EOF {
			return nil
		} else if err != nil {
			return &FileError{File: name, Err: fmt.Errorf("document %d is not valid JSON: %w", n, err)}
		}
		if err := d.document(document); err != nil {
			return &FileError{File: name, Err: fmt.Errorf("document %d: %w", n, err)}
		}
	}
}

// document adds the content of a response: a list, which is null if it is empty, or one
// object.
func (d *nomadDump) document(text json.RawMessage) error {
	switch text[0] {
	case 'n':
		return nil
	case '{':
		return d.object(text)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	for i, one := range list {
		if err := d.object(one); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// nomadSummary holds the number of allocations of a job by group and state.
type nomadSummary struct {
	Summary map[string]struct{ Queued int }
}

// queued returns the number of instances without an allocation.
func (s *nomadSummary) queued() (n int) {
	for _, g := range s.Summary {
		n += max(0, g.Queued)
	}
	return n
}

// object adds an object. It recognizes the kind by fields that no other kind has.
func (d *nomadDump) object(text json.RawMessage) error {
	var kind struct {
		Job, SchedulerConfig                  json.RawMessage
		NodeResources, SchedulingEligibility  json.RawMessage
		ClientStatus, TaskGroups, JobSummary  json.RawMessage
		ID, JobModifyIndex, ModifyIndex, Type json.RawMessage
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return fmt.Errorf("expected an object of Nomad's API: %w", err)
	}
	switch {
	case kind.SchedulerConfig != nil:
		return json.Unmarshal(kind.SchedulerConfig, &d.config)
	case kind.ClientStatus != nil:
		return addOnce(d, &d.allocs, text, func(a *nomadAlloc) string { return "alloc " + a.ID })
	case kind.NodeResources != nil || kind.SchedulingEligibility != nil:
		return addOnce(d, &d.nodes, text, func(n *nomadNode) string { return "node " + n.ID })
	case kind.TaskGroups != nil || kind.JobSummary != nil:
		return addOnce(d, &d.jobs, text, func(*nomadJob) string { return "" })
	case kind.Job != nil:
		return addOnce(d, &d.jobs, kind.Job, func(*nomadJob) string { return "" })
	}
	return errors.New("not a node, allocation, job or scheduler configuration of Nomad's API")
}

// addOnce appends an object unless one with the same key exists.
func addOnce[T any](d *nomadDump, list *[]*T, text json.RawMessage, key func(*T) string) error {
	one := new(T)
	if err := json.Unmarshal(text, one); err != nil {
		return err
	}
	if k := key(one); k == "" || !d.read[k] {
		d.read[k] = true
		*list = append(*list, one)
	}
	return nil
}

// nomadPorts parses a list such as 22,80,8500-8503, which Nomad has validated.
func nomadPorts(text string) []uint16 {
	const most = 1 << 12
	var ports []uint16
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.ParseUint(from, 10, 16)
		last := first
		if err == nil && ranged {
			last, err = strconv.ParseUint(to, 10, 16)
		}
		for p := first; err == nil && p <= last && p > 0 && len(ports) < most; p++ {
			ports = append(ports, uint16(p))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// The API of cede also responds in Nomad's form, which cannot hold every resource. The
// additional fields are complete.

// cedeNode holds the additional fields of a node or its stub.
type cedeNode struct {
	Capacity, ReservedCapacity map[string]int64
	Devices                    []client.NodeDevice
	Taints                     []client.Taint
}

// fill adds the additional fields to a node.
func (n *cedeNode) fill(node *scenario.Node) {
	maps.Copy(node.Capacity, n.Capacity)
	if node.Reserved != nil {
		maps.Copy(node.Reserved, n.ReservedCapacity)
	}
	for _, d := range n.Devices {
		node.Devices = append(node.Devices, scenario.Device{ID: d.ID, Count: int32(d.Count)})
	}
	for _, t := range n.Taints {
		node.Taints = append(node.Taints, scenario.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
}

// cedeAlloc holds the additional fields of an allocation. Stubs of lists only have
// ResourceUse.
type cedeAlloc struct {
	ResourceUse map[string]int64
	Ports       []uint16
	Devices     []client.DeviceUse
}

// fill adds the additional fields to a group.
func (a *cedeAlloc) fill(g *scenario.Group) {
	maps.Copy(g.Resources, a.ResourceUse)
	g.Ports = a.Ports
	for _, d := range a.Devices {
		g.Devices = append(g.Devices, scenario.DeviceRequest{ID: d.ID, Count: new(int32(d.Count))})
	}
}
