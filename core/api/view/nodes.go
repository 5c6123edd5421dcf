package view

import (
	"cmp"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Node returns a whole node.
func Node(n *model.Node) *client.Node {
	out := &client.Node{
		ID: n.ID, Name: cmp.Or(n.Name, n.ID), Datacenter: n.Datacenter, NodeClass: n.Class, HTTPAddr: n.Address,
		Attributes: n.Attributes, Meta: n.Meta, Capacity: Resources(n.Capacity), ReservedCapacity: n.Reserved, ReservedPorts: n.Ports,
		Devices: Devices(n.Devices), Taints: Taints(n.Taints), Drain: n.Drain, SchedulingEligibility: Eligibility(n), Status: n.Status.String(),
		CreateIndex: n.CreateIndex, ModifyIndex: n.ModifyIndex,
	}
	out.NodeResources, out.ReservedResources = NomadResources(n)
	if !n.Drain {
		return out
	}
	out.LastDrain = &client.DrainMetadata{StartedAt: timeOf(n.DrainSince), UpdatedAt: timeOf(cmp.Or(n.DrainEnd, n.DrainSince)), Status: client.DrainComplete}
	if n.DrainEnd == 0 {
		out.DrainStrategy = drainStrategy(n)
		out.LastDrain.Status = client.Draining
	}
	return out
}

// drainStrategy returns the options of a node's drain, in Nomad's form.
func drainStrategy(n *model.Node) *client.DrainStrategy {
	out := &client.DrainStrategy{StartedAt: timeOf(n.DrainSince)}
	out.IgnoreSystemJobs = n.DrainKeepsSystem
	if n.DrainDeadline != 0 {
		out.ForceDeadline = timeOf(n.DrainDeadline)
		out.Deadline = max(time.Duration(n.DrainDeadline-n.DrainSince), 0)
	}
	return out
}

// timeOf converts Unix nanoseconds; 0 is the zero time.
func timeOf(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at).UTC()
}

// NodeStub returns a node as a list entry.
func NodeStub(n *model.Node) *client.NodeStub {
	out := &client.NodeStub{
		ID: n.ID, Name: cmp.Or(n.Name, n.ID), Address: n.Address, Datacenter: n.Datacenter, NodeClass: n.Class,
		Capacity: Resources(n.Capacity), ReservedCapacity: n.Reserved, Devices: Devices(n.Devices),
		Taints: Taints(n.Taints),
		Drain:  n.Drain, SchedulingEligibility: Eligibility(n), Status: n.Status.String(), CreateIndex: n.CreateIndex, ModifyIndex: n.ModifyIndex,
	}
	out.NodeResources, out.ReservedResources = NomadResources(n)
	return out
}

// Resources returns amounts by name. The result is never nil, so that JSON has an object.
func Resources(r model.Resources) map[string]int64 {
	if r == nil {
		return map[string]int64{}
	}
	return r
}

// NomadResources returns a node's capacity and reservation in Nomad's form.
func NomadResources(n *model.Node) (*client.NodeResources, *client.NodeReservedResources) {
	have, reserved := nodeResources(n.Capacity), client.NodeReservedResources(nodeResources(n.Reserved))
	return &have, &reserved
}

// nodeResources returns amounts in Nomad's form.
func nodeResources(r model.Resources) client.NodeResources {
	return client.NodeResources{
		Cpu:    client.NodeCPUResources{CpuShares: r["cpu"]},
		Memory: client.NodeMemoryResources{MemoryMB: r["memory"]},
		Disk:   client.NodeDiskResources{DiskMB: r["disk"]},
	}
}

// Devices returns the device groups of a node.
func Devices(devices []model.Device) (list []client.NodeDevice) {
	for _, d := range devices {
		list = append(list, client.NodeDevice{ID: d.ID, Count: int(d.Count), Attributes: d.Attributes})
	}
	return list
}

// Eligibility returns the scheduling eligibility of a node: eligible or ineligible.
func Eligibility(n *model.Node) string {
	if n.Ineligible || n.Drain {
		return client.NodeIneligible
	}
	return client.NodeEligible
}

// Taints returns the taints of a node.
func Taints(list []model.Taint) (all []client.Taint) {
	for _, t := range list {
		all = append(all, client.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect), Set: t.Set, Since: t.Since})
	}
	return all
}
