package view

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

// devicesResource is the resource in which a map counts the devices of all kinds.
const devicesResource = "devices"

// Map returns all nodes and the allocations that hold capacity, in columns.
func Map(s *state.Snapshot) *client.Map {
	m := &client.Map{
		Index: s.Index(), Resources: mapResources(s), Groups: []client.MapGroup{},
		Nodes:  client.MapNodes{ID: []string{}, Name: []string{}, Datacenter: []string{}, State: []string{}, Capacity: [][]int64{}},
		Allocs: client.MapAllocs{ID: []string{}, Node: []int{}, Group: []int{}, StartTime: []int64{}},
	}
	rows := map[string]int{} // of Nodes, by ID
	for n := range s.Nodes() {
		rows[n.ID] = len(m.Nodes.ID)
		m.Nodes.ID = append(m.Nodes.ID, n.ID)
		m.Nodes.Name = append(m.Nodes.Name, cmp.Or(n.Name, n.ID))
		m.Nodes.Datacenter = append(m.Nodes.Datacenter, n.Datacenter)
		m.Nodes.State = append(m.Nodes.State, nodeState(n))
		m.Nodes.Capacity = append(m.Nodes.Capacity, nodeAmounts(m.Resources, n))
	}
	type groupKey struct {
		job     model.JobKey
		version uint64
		group   string
	}
	groups := map[groupKey]int{} // row of Groups
	for a := range s.Allocs() {
		node, known := rows[a.NodeID]
		if !a.Live() || !known {
			continue
		}
		key := groupKey{a.Job.Key(), a.Job.Version, a.Group.Name}
		group, known := groups[key]
		if !known {
			group = len(m.Groups)
			groups[key] = group
			m.Groups = append(m.Groups, client.MapGroup{
				Namespace: a.Job.Namespace, JobID: a.Job.ID, JobType: a.Job.Type.String(), Version: a.Job.Version,
				Group: a.Group.Name, Priority: int(a.Job.Priority), Use: groupAmounts(m.Resources, a.Group),
			})
		}
		m.Allocs.ID = append(m.Allocs.ID, a.ID)
		m.Allocs.Node = append(m.Allocs.Node, node)
		m.Allocs.Group = append(m.Allocs.Group, group)
		started := int64(0)
		if a.Started {
			started = a.StartTime / int64(time.Second)
		}
		m.Allocs.StartTime = append(m.Allocs.StartTime, started)
	}
	return m
}

// mapResources returns the names of the resources that any node has.
func mapResources(s *state.Snapshot) []string {
	names := map[string]bool{}
	for n := range s.Nodes() {
		for name := range n.Capacity {
			names[name] = true
		}
		if len(n.Devices) > 0 {
			names[devicesResource] = true
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(names))...)
}

// nodeState returns the state of a node in one word.
func nodeState(n *model.Node) string {
	switch {
	case n.Status != model.NodeReady:
		return n.Status.String()
	case n.Drain:
		return client.Draining
	case n.Ineligible:
		return client.NodeIneligible
	}
	return n.Status.String()
}

// nodeAmounts returns what a node offers.
func nodeAmounts(resources []string, n *model.Node) []int64 {
	amounts := make([]int64, len(resources))
	for i, name := range resources {
		amounts[i] = n.Capacity[name] - n.Reserved[name]
		if name == devicesResource {
			for _, d := range n.Devices {
				amounts[i] += int64(d.Count)
			}
		}
	}
	return amounts
}

// groupAmounts returns what an instance of a group holds.
func groupAmounts(resources []string, g *model.Group) []int64 {
	amounts := make([]int64, len(resources))
	for i, name := range resources {
		amounts[i] = g.Resources[name]
		if name == devicesResource {
			for _, d := range g.Devices {
				amounts[i] += int64(d.Count)
			}
		}
	}
	return amounts
}
