package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// NodeAPI is the part of the HTTP API that agents use; client.NodeAgent implements it.
type NodeAPI interface {
	Register(ctx context.Context, node *client.Node, secret string) (*client.NodeLease, error)
	Heartbeat(ctx context.Context, id, secret string) (*client.NodeLease, error)
	Allocations(ctx context.Context, id, secret string, q *client.QueryOptions) ([]*client.Allocation, *client.QueryMeta, error)
	Update(ctx context.Context, id, secret string, updates []client.AllocUpdate) (uint64, error)
}

var _ NodeAPI = client.NodeAgent{}

// Remote implements Servers over HTTP.
func Remote(api NodeAPI) Servers { return remote{api} }

type remote struct{ api NodeAPI }

// attempt is the timeout of a request that does not block.
const attempt = 30 * time.Second

func (r remote) Register(ctx context.Context, n *Node, secret string) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	return leaseOf(r.api.Register(ctx, clientNode(n), secret))
}

func (r remote) Heartbeat(ctx context.Context, nodeID, secret string) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	return leaseOf(r.api.Heartbeat(ctx, nodeID, secret))
}

func leaseOf(l *client.NodeLease, err error) (Lease, error) {
	if err != nil {
		return Lease{}, translate(err)
	}
	return Lease{TTL: l.HeartbeatTTL}, nil
}

// translate translates the error that makes an agent register again.
func translate(err error) error {
	if client.IsNotFound(err) {
		return fmt.Errorf("%w: %w", ErrUnknownNode, err)
	}
	return err
}

func (r remote) Allocations(ctx context.Context, nodeID, secret string, index uint64, wait time.Duration) (*Assignment, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+attempt)
	defer cancel()
	q := &client.QueryOptions{Index: index}
	if index > 0 {
		q.Wait = wait
	}
	list, meta, err := r.api.Allocations(ctx, nodeID, secret, q)
	if err != nil {
		return nil, translate(err)
	}
	as := &Assignment{Index: meta.LastIndex, Allocations: make([]*Allocation, len(list))}
	for i, a := range list {
		if as.Allocations[i], err = allocationOf(a); err != nil {
			return nil, fmt.Errorf("allocation %s: %w", a.ID, err)
		}
	}
	return as, nil
}

func (r remote) Update(ctx context.Context, nodeID, secret string, updates []Update) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	list := make([]client.AllocUpdate, len(updates))
	for i, u := range updates {
		list[i] = client.AllocUpdate{AllocID: u.ID, ClientStatus: string(u.Status), Description: u.Text, EvictedBy: u.EvictedBy}
		if !u.Started.IsZero() {
			list[i].StartTime = u.Started.UnixNano()
		}
	}
	_, err := r.api.Update(ctx, nodeID, secret, list)
	return translate(err)
}

func clientNode(n *Node) *client.Node {
	c := &client.Node{
		ID: n.ID, Name: n.Name, Datacenter: n.Datacenter, NodeClass: n.Class, HTTPAddr: n.Address,
		Attributes: n.Attributes, Meta: n.Meta, Capacity: n.Capacity, ReservedCapacity: n.Reserved,
	}
	for _, p := range n.Ports {
		c.ReservedPorts = append(c.ReservedPorts, uint16(p))
	}
	for _, t := range n.Taints {
		c.Taints = append(c.Taints, client.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	for _, d := range n.Devices {
		c.Devices = append(c.Devices, client.NodeDevice(d))
	}
	return c
}

// allocationOf returns the fields of an allocation that an agent needs.
func allocationOf(c *client.Allocation) (*Allocation, error) {
	a := &Allocation{
		ID: c.ID, Name: c.Name, Namespace: c.Namespace, JobID: c.JobID, Group: c.TaskGroup, Index: c.Index, Priority: c.Priority,
		Run: c.DesiredStatus == "run", Reason: c.DesiredDescription, Preempted: c.PreemptedAllocations,
		Status: Status(c.ClientStatus), Resources: c.ResourceUse,
	}
	for _, d := range c.Devices {
		a.Devices = append(a.Devices, Device{ID: d.ID, Count: d.Count})
	}
	for _, p := range c.Ports {
		a.Ports = append(a.Ports, Port{Value: int(p)})
	}
	if c.Job == nil {
		return a, nil
	}
	a.JobName = c.Job.Name
	for _, g := range c.Job.TaskGroups {
		if g.Name == c.TaskGroup {
			return a, a.ofGroup(c.Job, g)
		}
	}
	return a, nil
}

// ofGroup adds the fields of the allocation's group.
func (a *Allocation) ofGroup(job *client.Job, g *client.TaskGroup) error {
	a.Duration = g.Duration
	a.Meta = map[string]string{}
	for _, meta := range []map[string]string{job.Meta, g.Meta} {
		maps.Copy(a.Meta, meta)
	}
	networks := g.Networks
	for _, t := range g.Tasks {
		if t.Resources != nil {
			networks = append(networks, t.Resources.Networks...)
		}
		task, err := taskOf(t)
		if err != nil {
			return fmt.Errorf("task %s: %w", t.Name, err)
		}
		a.Tasks = append(a.Tasks, task)
	}
	for i, p := range a.Ports {
		a.Ports[i].Label = portLabel(networks, p.Value)
	}
	return nil
}

// portLabel returns the job's name of a port, or its number if it has none.
func portLabel(networks []*client.NetworkResource, value int) string {
	for _, n := range networks {
		for _, p := range n.ReservedPorts {
			if p.Value == value && p.Label != "" {
				return p.Label
			}
		}
	}
	return fmt.Sprint(value)
}

func taskOf(t *client.Task) (Task, error) {
	config, err := json.Marshal(t.Config)
	if err != nil {
		return Task{}, err
	}
	if t.Config == nil {
		config = nil
	}
	task := Task{
		Name: t.Name, Driver: t.Driver, User: t.User, Config: config, Env: t.Env,
		KillSignal: t.KillSignal, Leader: t.Leader,
	}
	if t.KillTimeout != nil {
		task.KillTimeout = *t.KillTimeout
	}
	if r := t.Resources; r != nil {
		if r.CPU != nil {
			task.CPU = int64(*r.CPU)
		}
		if r.MemoryMB != nil {
			task.MemoryMB = int64(*r.MemoryMB)
		}
	}
	return task, nil
}
