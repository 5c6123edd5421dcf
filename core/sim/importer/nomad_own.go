package importer

import (
	"maps"

	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/client"
)

// cede's own API answers in Nomad's form too, which has no room for every
// resource: what it writes beside that form is all there is.

// cedeNode is what a node, or its stub, has beside Nomad's form.
type cedeNode struct {
	Capacity, ReservedCapacity map[string]int64
	Devices                    []client.NodeDevice
	Taints                     []client.Taint
}

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

// cedeAlloc is what an allocation has beside Nomad's form; of lists' stubs it is
// ResourceUse alone.
type cedeAlloc struct {
	ResourceUse map[string]int64
	Ports       []uint16
	Devices     []client.DeviceUse
}

func (a *cedeAlloc) fill(g *scenario.Group) {
	maps.Copy(g.Resources, a.ResourceUse)
	g.Ports = a.Ports
	for _, d := range a.Devices {
		g.Devices = append(g.Devices, scenario.DeviceRequest{ID: d.ID, Count: new(int32(d.Count))})
	}
}
