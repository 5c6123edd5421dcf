package replication

import (
	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func (w *writer) node(n *model.Node) *pb.Node {
	return &pb.Node{
		Id: w.id(n.ID), Name: text(n.Name), Address: text(n.Address), SecretHash: hashBytes(&n.SecretHash),
		Datacenter: text(n.Datacenter), Class: text(n.Class), Capacity: textMap(n.Capacity), Reserved: textMap(n.Reserved),
		Ports: portNumbers(n.Ports), Devices: each(n.Devices, deviceToPB), Attributes: stringMap(n.Attributes),
		Meta: stringMap(n.Meta), Status: uint32(n.Status), Ineligible: n.Ineligible, Drain: n.Drain, DownSince: n.DownSince,
		Taints: each(n.Taints, taintToPB), CreateIndex: n.CreateIndex, ModifyIndex: n.ModifyIndex,
	}
}

func (r *reader) node(m *pb.Node) *model.Node {
	return &model.Node{
		ID: r.id(m.Id), Name: m.Name, Address: m.Address, SecretHash: r.hash(m.SecretHash),
		Datacenter: m.Datacenter, Class: m.Class, Capacity: emptyNil(m.Capacity), Reserved: emptyNil(m.Reserved),
		Ports: r.ports(m.Ports), Devices: each(m.Devices, deviceOf), Attributes: emptyNil(m.Attributes),
		Meta: emptyNil(m.Meta), Status: r.nodeStatus(m.Status), Ineligible: m.Ineligible, Drain: m.Drain, DownSince: m.DownSince,
		Taints: each(m.Taints, taintOf), CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex,
	}
}

func (r *reader) nodeStatus(v uint32) model.NodeStatus {
	return model.NodeStatus(r.enum("node status", v, uint32(model.NodeDown)))
}

func taintToPB(t *model.Taint) *pb.Taint {
	return &pb.Taint{Key: text(t.Key), Value: text(t.Value), Effect: text(string(t.Effect)), Set: t.Set, Since: t.Since}
}

func taintOf(m **pb.Taint) model.Taint {
	return model.Taint{Key: (*m).Key, Value: (*m).Value, Effect: model.TaintEffect((*m).Effect), Set: (*m).Set, Since: (*m).Since}
}

func deviceToPB(d *model.Device) *pb.Device {
	return &pb.Device{Id: text(d.ID), Count: d.Count, Attributes: stringMap(d.Attributes)}
}

func deviceOf(m **pb.Device) model.Device {
	return model.Device{ID: (*m).Id, Count: (*m).Count, Attributes: emptyNil((*m).Attributes)}
}

func (w *writer) changeNodes(c *ChangeNodes) *pb.ChangeNodes {
	m := &pb.ChangeNodes{
		Ids: w.ids(c.IDs), Ineligible: c.Change.Ineligible, Drain: c.Change.Drain,
		Untaint: each(c.Change.Untaint, taintToPB), Taint: each(c.Change.Taint, taintToPB),
	}
	if s := c.Change.Status; s != nil {
		m.Status = new(uint32(*s))
	}
	return m
}

func (r *reader) changeNodes(m *pb.ChangeNodes) *ChangeNodes {
	c := &ChangeNodes{IDs: r.ids(m.Ids), Change: apply.NodeChange{
		Ineligible: m.Ineligible, Drain: m.Drain, Untaint: each(m.Untaint, taintOf), Taint: each(m.Taint, taintOf),
	}}
	if m.Status != nil {
		c.Change.Status = new(r.nodeStatus(*m.Status))
	}
	return c
}

func (w *writer) clientUpdate(u *apply.ClientUpdate) *pb.ClientUpdate {
	return &pb.ClientUpdate{
		AllocId: w.id(u.AllocID), Status: uint32(u.Status), Started: u.Started, StartTime: u.StartTime,
		Text: text(u.Text), EvictedBy: text(u.EvictedBy),
	}
}

func (r *reader) clientUpdate(m **pb.ClientUpdate) apply.ClientUpdate {
	u := *m
	return apply.ClientUpdate{
		AllocID: r.id(u.AllocId), Status: r.clientStatus(u.Status), Started: u.Started, StartTime: u.StartTime,
		Text: u.Text, EvictedBy: u.EvictedBy,
	}
}

func (r *reader) clientStatus(v uint32) model.ClientStatus {
	return model.ClientStatus(r.enum("client status", v, uint32(model.ClientLost)))
}
