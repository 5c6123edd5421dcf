package importer

import (
	"maps"

	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/client"
)

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
