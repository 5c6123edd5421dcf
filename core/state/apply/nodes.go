package apply

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A NodeChange is a change of nodes. A nil field leaves the node's value as it is.
type NodeChange struct {
	Status     *model.NodeStatus
	Ineligible *bool
	Drain      *bool
	// DrainSince, DrainDeadline and DrainKeepsSystem are those of model.NodeDrain.
	// They apply only if Drain is true. DrainSince is part of the change because
	// entries of earlier releases have none, and must still yield the same state.
	DrainSince       int64
	DrainDeadline    int64
	DrainKeepsSystem bool
	Drained          bool // the drain has no allocation left
	// Untaint removes taints that operators set, by key and effect, before Taint
	// adds new ones. Taints that the node declares are retained.
	Untaint []model.Taint
	Taint   []model.Taint

	withoutDownTime bool
}

// WithoutDownTime returns the change without recording since when a node is down.
// Log entries of versions that did not record it use this form.
func (c NodeChange) WithoutDownTime() NodeChange {
	c.withoutDownTime = true
	return c
}

// apply changes n, which is a copy that no snapshot shares. DownSince is set when the
// status changes and not when it is repeated, since grace periods count from the first
// report.
func (c NodeChange) apply(n *model.Node, now int64) {
	if c.Status != nil && *c.Status != n.Status {
		n.Status, n.DownSince = *c.Status, 0
		if n.Status == model.NodeDown && !c.withoutDownTime {
			n.DownSince = now
		}
	}
	if c.Ineligible != nil {
		n.Ineligible = *c.Ineligible
	}
	if c.Drain != nil {
		n.NodeDrain = c.drain(n.NodeDrain)
	}
	if c.Drained && n.Drain && n.DrainEnd == 0 {
		n.DrainEnd = now
	}
	if len(c.Untaint)+len(c.Taint) > 0 {
		set := slices.DeleteFunc(slices.Clone(n.Taints), func(t model.Taint) bool {
			return !t.Set || slices.ContainsFunc(c.Untaint, t.Matches)
		})
		for _, t := range c.Taint {
			t.Set = true
			set = append(slices.DeleteFunc(set, t.Matches), t)
		}
		n.Taints = model.StampTaints(model.MergeTaints(n.DeclaredTaints(), set), n.Taints, now)
	}
}

// drain returns the drain of a node after the change. Changed options do not restart
// it.
func (c NodeChange) drain(before model.NodeDrain) model.NodeDrain {
	if !*c.Drain {
		return model.NodeDrain{}
	}
	d := model.NodeDrain{Drain: true, DrainSince: c.DrainSince, DrainDeadline: c.DrainDeadline, DrainKeepsSystem: c.DrainKeepsSystem}
	if before.Drain {
		d.DrainSince = before.DrainSince
	}
	return d
}

// NodeStatus changes nodes and derives at most one evaluation for each affected
// job: jobs with an allocation on such a node, and per-node jobs of its datacenter.
// The number of evaluations is therefore bounded by the number of jobs, however
// many nodes fail together. Nodes that are missing, or that the change leaves as
// they are, are skipped.
func NodeStatus(t *state.Txn, now int64, nodeIDs []string, change NodeChange) []*model.Evaluation {
	trigger := model.TriggerNodeUpdate
	if change.Drain != nil && *change.Drain {
		trigger = model.TriggerNodeDrain
	}
	affected := newFollowUps(trigger, "")
	var centers datacenters
	for _, id := range nodeIDs {
		old := t.Node(id)
		if old == nil {
			continue
		}
		n := *old
		change.apply(&n, now)
		tainted := !slices.Equal(n.Taints, old.Taints)
		if n.Status == old.Status && n.Ineligible == old.Ineligible && n.NodeDrain == old.NodeDrain && !tainted {
			continue
		}
		if tainted {
			t.NodeWriter().Replace(&n)
		} else {
			t.NodeWriter().SetStatus(&n)
		}
		addJobsOn(&t.View, affected, id)
		centers.add(n.Datacenter)
	}
	addPerNodeJobs(&t.View, affected, centers)
	return affected.write(t, now)
}

// Nodes registers nodes, or new versions of them, with the evaluations that NodeStatus
// derives. It returns an error without a change if the nodes would need too many
// resource names. A node that registers again without a change derives them too, since
// its agent may have been away.
func Nodes(t *state.Txn, now int64, nodes ...*model.Node) ([]*model.Evaluation, error) {
	rs := make([]model.Resources, 0, 2*len(nodes))
	for _, n := range nodes {
		rs = append(rs, n.Capacity, n.Reserved)
	}
	if err := t.RequireDimensions(rs...); err != nil {
		return nil, err
	}
	affected := newFollowUps(model.TriggerNodeUpdate, "")
	var centers datacenters
	for _, n := range nodes {
		var before []model.Taint
		if old := t.Node(n.ID); old != nil {
			centers.add(old.Datacenter)
			before = old.Taints
		}
		n.Taints = model.StampTaints(n.Taints, before, now)
		if err := t.NodeWriter().Upsert(n); err != nil {
			return nil, err
		}
		addJobsOn(&t.View, affected, n.ID)
		centers.add(n.Datacenter)
	}
	addPerNodeJobs(&t.View, affected, centers)
	return affected.write(t, now), nil
}

// NodeDelete deletes nodes, with the evaluations that NodeStatus derives.
func NodeDelete(t *state.Txn, now int64, nodeIDs []string) []*model.Evaluation {
	affected := newFollowUps(model.TriggerNodeUpdate, "")
	var centers datacenters
	for _, id := range nodeIDs {
		n := t.Node(id)
		if n == nil {
			continue
		}
		addJobsOn(&t.View, affected, id)
		centers.add(n.Datacenter)
		t.NodeWriter().Delete(id)
	}
	addPerNodeJobs(&t.View, affected, centers)
	return affected.write(t, now)
}

// addJobsOn adds the jobs of the allocations on a node, live or stopping. It reads the
// rows of the node instead of the allocations of all jobs.
func addJobsOn(v *state.View, f *followUps, nodeID string) {
	pos, ok := v.Position(nodeID)
	if !ok {
		return
	}
	c, i := v.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	for _, r := range c.Rows(i) {
		f.addJob(r.Alloc.Job)
	}
	for _, a := range c.Stopping(i) {
		f.addJob(a.Job)
	}
}

// addPerNodeJobs adds the system and sysbatch jobs of the datacenters.
func addPerNodeJobs(v *state.View, f *followUps, centers datacenters) {
	if len(centers) == 0 {
		return
	}
	for j := range v.PerNodeJobs() {
		if !j.Stopped && centers.includeJob(j) {
			f.addJob(j)
		}
	}
}

// datacenters is a small set.
type datacenters []string

func (d *datacenters) add(name string) {
	if !slices.Contains(*d, name) {
		*d = append(*d, name)
	}
}

// includeJob reports whether the job may run in one of the datacenters. A job without
// datacenters may run in all of them.
func (d datacenters) includeJob(j *model.Job) bool {
	return len(j.Datacenters) == 0 || slices.ContainsFunc(j.Datacenters, func(name string) bool {
		return slices.Contains(d, name)
	})
}
