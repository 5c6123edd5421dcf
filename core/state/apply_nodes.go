package state

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// NodeChange is what becomes of nodes; nil leaves a field as it is.
type NodeChange struct {
	Status     *model.NodeStatus
	Ineligible *bool
	Drain      *bool
	// Taint is set on nodes by an operator. Untaint takes such taints away, by key
	// and effect; what a node declares stays. First the one, then the other.
	Untaint []model.Taint
	Taint   []model.Taint

	undated bool // see Undated
}

// WithoutDownTime is the change without a note of since when a node is down.
func (c NodeChange) WithoutDownTime() NodeChange {
	c.undated = true
	return c
}

func (c NodeChange) apply(n *model.Node, now int64) {
	if c.Status != nil && *c.Status != n.Status {
		n.Status, n.DownSince = *c.Status, 0
		if n.Status == model.NodeDown && !c.undated {
			n.DownSince = now
		}
	}
	if c.Ineligible != nil {
		n.Ineligible = *c.Ineligible
	}
	if c.Drain != nil {
		n.Drain = *c.Drain
	}
	if c.taints() {
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

func (c NodeChange) taints() bool { return len(c.Untaint)+len(c.Taint) > 0 }

// ApplyNodeStatus changes many nodes at once and derives at most one
// evaluation for each job that has to do with them: those with something on
// such a node, and per-node jobs of its datacenter. However many nodes fail
// together, no flood of evaluations is written. Nodes that are as the change
// wants them already, and ids that are not there, are skipped.
func (t *Txn) ApplyNodeStatus(now int64, nodeIDs []string, change NodeChange) []*model.Evaluation {
	trigger := model.TriggerNodeUpdate
	if change.Drain != nil && *change.Drain {
		trigger = model.TriggerNodeDrain
	}
	affected := newFollowUps(trigger, "")
	var centers datacenters
	for _, id := range nodeIDs {
		pos, ok := t.Position(id)
		if !ok {
			continue
		}
		old := t.NodeAt(pos)
		n := *old
		change.apply(&n, now)
		tainted := !slices.Equal(n.Taints, old.Taints)
		if n.Status == old.Status && n.Ineligible == old.Ineligible && n.Drain == old.Drain && !tainted {
			continue
		}
		if tainted {
			t.rewriteNode(pos, &n)
		} else {
			t.setNodeStatus(pos, &n)
		}
		t.addJobsOn(affected, pos)
		centers.add(n.Datacenter)
	}
	t.addPerNodeJobs(affected, centers)
	return affected.write(t, now)
}

// ApplyNodes registers nodes, or new versions of them, with the evaluations
// that ApplyNodeStatus derives. Nothing is written when it fails.
func (t *Txn) ApplyNodes(now int64, nodes ...*model.Node) ([]*model.Evaluation, error) {
	rs := make([]model.Resources, 0, 2*len(nodes))
	for _, n := range nodes {
		rs = append(rs, n.Capacity, n.Reserved)
	}
	if err := t.grow(rs...); err != nil {
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
		pos, _ := t.Position(n.ID)
		t.addJobsOn(affected, pos)
		centers.add(n.Datacenter)
	}
	t.addPerNodeJobs(affected, centers)
	return affected.write(t, now), nil
}

// ApplyNodeDelete forgets nodes, with the evaluations that ApplyNodeStatus
// derives.
func (t *Txn) ApplyNodeDelete(now int64, nodeIDs []string) []*model.Evaluation {
	affected := newFollowUps(model.TriggerNodeUpdate, "")
	var centers datacenters
	for _, id := range nodeIDs {
		pos, ok := t.Position(id)
		if !ok {
			continue
		}
		t.addJobsOn(affected, pos)
		centers.add(t.NodeAt(pos).Datacenter)
		t.DeleteNode(id)
	}
	t.addPerNodeJobs(affected, centers)
	return affected.write(t, now)
}

// addJobsOn adds the jobs of whatever is on a node, live or stopping.
func (t *Txn) addJobsOn(f *followUps, pos int32) {
	c, i := t.chunks[pos/ChunkSize], int(pos%ChunkSize)
	for _, r := range c.use(i).rows {
		f.add(r.Alloc.Job)
	}
	for _, a := range c.extra(i).stopping {
		f.add(a.Job)
	}
}

// addPerNodeJobs adds the system and sysbatch jobs that want the datacenters.
func (t *Txn) addPerNodeJobs(f *followUps, centers datacenters) {
	if len(centers) == 0 {
		return
	}
	for slot := range t.perNode.All {
		if j := t.jobs.at(slot).job; !j.Stopped && centers.wantedBy(j) {
			f.add(j)
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

func (d datacenters) wantedBy(j *model.Job) bool {
	return len(j.Datacenters) == 0 || slices.ContainsFunc(j.Datacenters, func(name string) bool {
		return slices.Contains(d, name)
	})
}
