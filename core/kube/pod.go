package kube

import (
	"slices"
	"strconv"
	"time"

	"github.com/cede-scheduler/cede/core/kube/dra"
	"github.com/cede-scheduler/cede/core/model"
)

// Started returns the start time of a pod; zero if the status has none.
// kube-scheduler assumes that such a pod starts now.
func (p *Pod) Started() time.Time { return timeOf(p.Status.StartTime) }

// Created returns the time at which a pod was created; zero if it is unknown.
func (p *Pod) Created() time.Time { return timeOf(p.Metadata.CreationTimestamp) }

// PriorityValue returns the priority of a pod; default: 0.
func (p *Pod) PriorityValue() int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// DependsOnOtherNodes reports whether the feasibility of a node for the pod depends
// on other nodes: if a required term applies to topology domains of several nodes.
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

// groupName returns the name of the PodGroup, or "".
func (s *PodSpec) groupName() string {
	if s.SchedulingGroup == nil {
		return ""
	}
	return s.SchedulingGroup.PodGroup
}

// Group returns the key of the pod's PodGroup, or "" if it has none.
func (p *Pod) Group() string {
	if p.Spec.SchedulingGroup == nil || p.Spec.SchedulingGroup.PodGroup == "" {
		return ""
	}
	return dra.Key(p.namespace(), p.Spec.SchedulingGroup.PodGroup)
}

// ClaimKeys returns the keys of the resource claims that the pod names.
func (p *Pod) ClaimKeys() (keys []string) {
	for _, list := range [][]PodClaim{p.Spec.ResourceClaims, p.Status.ResourceClaims} {
		for _, c := range list {
			if c.Claim != "" {
				keys = append(keys, dra.Key(p.namespace(), c.Claim))
			}
		}
	}
	return keys
}

// ResourcesOnly returns the spec without anything that restricts the pod's nodes.
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

// Proposed is a resource that encodes a finding of kube-scheduler: the pending pod
// fits on a node if all proposed victims are evicted, and not before.
const Proposed = "cede.import/proposed"

const proposedCapacity = 1_000_000

// RequestProposed makes a proposed victim request one unit of Proposed.
func (p *Pod) RequestProposed() { p.requestExtra(1) }

// RequestAllProposed makes the pending pod request all units of Proposed.
func (p *Pod) RequestAllProposed() { p.requestExtra(proposedCapacity) }

func (p *Pod) requestExtra(n int) {
	extra := ResourceRequirements{Requests: ResourceList{Proposed: Quantity(strconv.Itoa(n))}}
	p.Spec.Containers = append(slices.Clip(p.Spec.Containers), Container{Name: "cede", Resources: extra})
}

// CapacityFor returns allocatable resources for all pods together. Proposed is
// limited, so that pods that request it exclude each other.
func CapacityFor(pods []*Pod) ResourceList {
	r := newRequestReader()
	sum := exactAmounts{}
	for _, p := range pods {
		sum.add(r.pod(p))
	}
	list := ResourceList{podSlots: "1000000"}
	for name, n := range sum {
		unit := ""
		switch name {
		case "cpu":
			unit = "m"
		case "memory", "disk":
			n += mebi * int64(len(pods)) // each request is rounded up separately
		}
		if name == "disk" {
			name = kubeDisk
		}
		list[name] = Quantity(strconv.FormatInt(min(n, model.MaxAmount), 10) + unit)
	}
	list[Proposed] = Quantity(strconv.Itoa(proposedCapacity))
	return list
}

// OnNode returns an affinity that only one node satisfies.
func OnNode(name string) *Affinity {
	term := NodeTerm{Fields: []Requirement{{Key: "metadata.name", Operator: "In", Values: []string{name}}}}
	a := &Affinity{Node: &NodeAffinity{}}
	a.Node.Required = &struct {
		Terms []NodeTerm `json:"nodeSelectorTerms"`
	}{Terms: []NodeTerm{term}}
	return a
}
