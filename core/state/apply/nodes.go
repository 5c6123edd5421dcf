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
		n.Drain = *c.Drain
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
		if n.Status == old.Status && n.Ineligible == old.Ineligible && n.Drain == old.Drain && !tainted {
			continue
		}
		if tainted {
			t.ReplaceNode(&n)
		} else {
			t.SetNodeStatus(&n)
		}
		addJobsOn(t, affected, id)
		centers.add(n.Datacenter)
	}
	addPerNodeJobs(t, affected, centers)
	return affected.write(t, now)
}

// Nodes registers nodes, or new versions of them, with the evaluations that
// NodeStatus derives. It returns an error without a change if the nodes would need
// too many resource names.
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
		if err := t.UpsertNode(n); err != nil {
			return nil, err
		}
		addJobsOn(t, affected, n.ID)
		centers.add(n.Datacenter)
	}
	addPerNodeJobs(t, affected, centers)
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
		addJobsOn(t, affected, id)
		centers.add(n.Datacenter)
		t.DeleteNode(id)
	}
	addPerNodeJobs(t, affected, centers)
	return affected.write(t, now)
}

// addJobsOn adds the jobs of the allocations on a node, live or stopping.
func addJobsOn(t *state.Txn, f *followUps, nodeID string) {
	pos, ok := t.Position(nodeID)
	if !ok {
		return
	}
	c, i := t.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	for _, r := range c.Rows(i) {
		f.addJob(r.Alloc.Job)
	}
	for _, a := range c.Stopping(i) {
		f.addJob(a.Job)
	}
}

// addPerNodeJobs adds the system and sysbatch jobs of the datacenters.
func addPerNodeJobs(t *state.Txn, f *followUps, centers datacenters) {
	if len(centers) == 0 {
		return
	}
	for j := range t.PerNodeJobs() {
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

// includeJob reports whether the job may run in one of the datacenters.
func (d datacenters) includeJob(j *model.Job) bool {
	return len(j.Datacenters) == 0 || slices.ContainsFunc(j.Datacenters, func(name string) bool {
		return slices.Contains(d, name)
	})
}
