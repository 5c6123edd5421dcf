package kube

import (
	"slices"
	"strconv"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// Started is when the pod began to run; zero where it does not say: for kube-scheduler
// it starts now.
func (p *Pod) Started() time.Time { return timeOf(p.Status.StartTime) }

// PriorityValue is the pod's priority, 0 where it has none.
func (p *Pod) PriorityValue() int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// DependsOnOtherNodes is whether where the pod may go depends on more than the node that
// is looked at: on domains of several nodes.
func (p *Pod) DependsOnOtherNodes() bool {
	for i := range p.Spec.TopologySpreadConstraints {
		if p.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable != "ScheduleAnyway" {
			return true
		}
	}
	a := p.Spec.Affinity
	if a == nil {
		return false
	}
	for _, terms := range []*PodAffinity{a.Pod, a.PodAnti} {
		if terms == nil {
			continue
		}
		for i := range terms.Required {
			if terms.Required[i].TopologyKey != hostname {
				return true
			}
		}
	}
	return false
}

// ResourcesOnly is what a pod asks for, with whatever says where it may go taken off.
func (s *PodSpec) ResourcesOnly() PodSpec {
	bare := PodSpec{
		NodeName: s.NodeName, Priority: s.Priority, PriorityClassName: s.PriorityClassName, PreemptionPolicy: s.PreemptionPolicy,
		RestartPolicy: s.RestartPolicy, TerminationGracePeriod: s.TerminationGracePeriod, Resources: s.Resources, Overhead: s.Overhead,
	}
	for _, c := range s.Containers {
		bare.Containers = append(bare.Containers, Container{Name: c.Name, Resources: c.Resources})
	}
	for _, c := range s.InitContainers {
		bare.InitContainers = append(bare.InitContainers, Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Resources: c.Resources})
	}
	return bare
}

// Proposed is a resource that stands for what kube-scheduler has found: that a pod
// fits on a node when certain others are gone, and not before.
const Proposed = "cede.import/proposed"

const proposedCapacity = 1_000_000

// RequestProposed makes the pods of a node ask for a little of Proposed.
func (p *Pod) RequestProposed() { p.requestExtra(1) }

// RequestAllProposed makes a pod ask for all of it.
func (p *Pod) RequestAllProposed() { p.requestExtra(proposedCapacity) }

func (p *Pod) requestExtra(n int) {
	more := ResourceRequirements{Requests: ResourceList{Proposed: Quantity(strconv.Itoa(n))}}
	p.Spec.Containers = append(slices.Clip(p.Spec.Containers), Container{Name: "cede", Resources: more})
}

// CapacityFor is what a node has that can hold some pods, and one at a time of those
// that exclude each other by Proposed.
func CapacityFor(pods []*Pod) ResourceList {
	t := &Translator{Report: &Report{}, amounts: amounts{}}
	sum := exactAmounts{}
	for _, p := range pods {
		sum.add(t.podRequests(p))
	}
	list := ResourceList{podSlots: "1000000"}
	for name, n := range sum {
		unit := ""
		switch name {
		case "cpu":
			unit = "m"
		case "memory", "disk":
			n += mebi * int64(len(pods)) // each is rounded up by itself
		}
		if name == "disk" {
			name = kubeDisk
		}
		list[name] = Quantity(strconv.FormatInt(min(n, model.MaxAmount), 10) + unit)
	}
	list[Proposed] = Quantity(strconv.Itoa(proposedCapacity))
	return list
}

// Allocatable is the millicores and MiB that a node offers.
func (n *Node) Allocatable() (cpu, memory int64) {
	a := amounts{}
	cpu, _ = a.of("cpu", n.Status.Allocatable["cpu"], true) // 0 where it does not say
	memory, _ = a.of("memory", n.Status.Allocatable["memory"], true)
	return cpu, memory / mebi
}

// Requests is the millicores and MiB that a pod asks for.
func (p *Pod) Requests() (cpu, memory int64) {
	t := &Translator{Report: &Report{}, amounts: amounts{}}
	ask := t.podRequests(p)
	return ask["cpu"], inModel("memory", ask["memory"], true)
}
