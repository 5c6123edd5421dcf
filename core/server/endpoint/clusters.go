package endpoint

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/admission"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/groupcommit"
	"github.com/cede-scheduler/cede/core/server/heartbeat"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// Clusters registers and deletes member clusters, and receives the reports of their
// agents.
type Clusters struct {
	writer     *logwriter.Writer
	heartbeats *heartbeat.Clusters
	changes    *groupcommit.Batcher[model.ClusterChange]
	updates    *groupcommit.Batcher[[]apply.AssignmentUpdate]
	limits     *admission.Checker
}

func newClusters(c Config) *Clusters {
	e := &Clusters{writer: c.Writer, heartbeats: c.Clusters, limits: c.Limits}
	e.changes = groupcommit.New(c.Batchers, groupcommit.Config[model.ClusterChange]{
		Clock: c.Clock, Limit: func() int { return c.RegisterBatch }, Write: e.writeChanges,
	})
	e.updates = groupcommit.New(c.Batchers, groupcommit.Config[[]apply.AssignmentUpdate]{
		Clock: c.Clock, Window: c.UpdateWindow, Limit: func() int { return c.UpdateBatch },
		Size: func(list []apply.AssignmentUpdate) int { return len(list) }, Write: e.writeUpdates,
	})
	return e
}

// PutCluster stores a member cluster without an agent, or a new version of it. Its
// assignments start and end by the clock.
func (e *Clusters) PutCluster(ctx context.Context, c *model.Cluster) (uint64, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return 0, err
	}
	if err := e.validate(c, nil); err != nil {
		return 0, err
	}
	err := e.writer.Check(ctx, func(snap *state.Snapshot) error {
		if old := snap.Cluster(c.ID); old != nil && old.HasAgent() {
			return apierror.New(apierror.CodeConflict, "cluster %s has an agent, which reports its capacity", c.ID).
				WithHint("change the agent's configuration, or delete the cluster once the agent has stopped")
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	cluster := *c
	cluster.SecretHash, cluster.Reported = [32]byte{}, nil
	return e.writer.CommitIndex(ctx, &replication.UpsertClusters{Clusters: []*model.Cluster{&cluster}})
}

// DeleteCluster removes a member cluster. It fails with a conflict if something is
// assigned there, unless it is forced: then that is assigned to other clusters.
func (e *Clusters) DeleteCluster(ctx context.Context, id string, force bool) (uint64, error) {
	if err := e.writer.Check(ctx, func(snap *state.Snapshot) error { _, err := findCluster(snap, id); return err }); err != nil {
		return 0, err
	}
	index, err := e.writer.CommitIndex(ctx, &replication.DeleteCluster{ID: id, Force: force})
	if err == nil {
		e.heartbeats.Remove(id)
	}
	return index, err
}

// RegisterMember stores the cluster of an agent, or its changes, and returns the time
// within which the agent must report. The first registration sets the secret, which later
// ones must present.
func (e *Clusters) RegisterMember(ctx context.Context, c *model.Cluster, secret string) (*NodeLease, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return nil, err
	}
	if err := e.validate(c, &secret); err != nil {
		return nil, err
	}
	cluster := *c
	cluster.SecretHash, cluster.Down = sha256.Sum256([]byte(secret)), false
	if old := e.writer.Snapshot().Cluster(c.ID); old != nil {
		if err := checkClusterSecret(old, secret); err != nil {
			return nil, err
		}
		if equalClusters(old, &cluster) {
			return e.heartbeat(ctx, old, nil)
		}
	}
	index, err := e.writer.CommitIndex(ctx, &replication.UpsertClusters{Clusters: []*model.Cluster{&cluster}})
	if err != nil {
		return nil, err
	}
	return &NodeLease{Index: index, TTL: e.heartbeats.Beat(c.ID)}, nil
}

// validate returns an error that lists all problems of a cluster. secret is that
// of its agent, or nil if it has none.
func (e *Clusters) validate(c *model.Cluster, secret *string) error {
	problems := idProblems(c.ID)
	if secret != nil && len(*secret) < minSecretLength {
		problems = append(problems, fmt.Sprintf("secret has %d characters, and needs at least %d", len(*secret), minSecretLength))
	}
	problems = append(problems, negativeAmounts("capacity", c.Capacity)...)
	if _, set := c.Attributes[model.AttributeClusterID]; set {
		problems = append(problems, model.AttributeClusterID+" is a built-in attribute and cannot be set")
	}
	problems = append(problems, e.limits.Cluster(e.writer.Snapshot(), c.ID)...)
	return invalid(problems, "cluster %q", c.ID)
}

// checkClusterSecret returns an error if secret is not that of the cluster's agent.
func checkClusterSecret(c *model.Cluster, secret string) error {
	if !c.HasAgent() { // registered by an operator; this agent takes over
		return nil
	}
	if sha256.Sum256([]byte(secret)) == c.SecretHash { // comparing hashes leaks nothing by its duration
		return nil
	}
	return apierror.New(apierror.CodeForbidden, "wrong secret for cluster %s", c.ID).
		WithHint("its agent's data directory holds it; an agent that lost it needs another cluster ID, or the old cluster deleted")
}

// equalClusters reports whether a registration changes nothing. Reported capacity counts
// only if the registration has some.
func equalClusters(old, c *model.Cluster) bool {
	return old.SecretHash == c.SecretHash && maps.Equal(old.Capacity, c.Capacity) && maps.Equal(old.Attributes, c.Attributes) &&
		(c.Reported == nil || maps.Equal(old.Reported, c.Reported))
}

// A ClusterReport is the report of an agent in a heartbeat.
type ClusterReport struct {
	Reported model.Resources // part of the capacity that bindings may use; nil: unchanged
	Leases   []ClusterLease  // capacity that it reserves for other pools
}

// ClusterHeartbeat records that a member cluster reported, and writes its report if
// something changed. A cluster that was down becomes ready again.
func (e *Clusters) ClusterHeartbeat(ctx context.Context, id, secret string, report *ClusterReport) (*NodeLease, error) {
	c, err := e.authenticate(id, secret)
	if err != nil {
		return nil, err
	}
	if err := validateLeases(id, report.Leases); err != nil {
		return nil, err
	}
	return e.heartbeat(ctx, c, report)
}

// authenticate returns the cluster with an ID if the secret is that of its agent.
func (e *Clusters) authenticate(id, secret string) (*model.Cluster, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return nil, err
	}
	c, err := findCluster(e.writer.Snapshot(), id)
	if err != nil {
		return nil, err
	}
	if !c.HasAgent() {
		return nil, apierror.New(apierror.CodeNotFound, "cluster %q has no agent", id).WithHint("an agent registers its cluster when it starts")
	}
	return c, checkClusterSecret(c, secret)
}

func findCluster(snap *state.Snapshot, id string) (*model.Cluster, error) {
	if c := snap.Cluster(id); c != nil {
		return c, nil
	}
	return nil, apierror.New(apierror.CodeNotFound, "no cluster %q", id).
		WithHint("an agent registers its cluster when it starts; `cede cluster apply` creates one without an agent")
}

// heartbeat records a heartbeat; report may be nil.
func (e *Clusters) heartbeat(ctx context.Context, c *model.Cluster, report *ClusterReport) (*NodeLease, error) {
	snap := e.writer.Snapshot()
	lease := &NodeLease{Index: snap.Index()}
	change := model.ClusterChange{ID: c.ID}
	if report != nil {
		change.Reported, change.Leases = report.Reported, leaseClaims(snap, c.ID, report.Leases)
		if change.Reported == nil {
			change.Reported = c.Reported
		}
		change.Reports = !maps.Equal(change.Reported, c.Reported) || !equalLeases(snap, c.ID, change.Leases)
	}
	if c.Down || change.Reports {
		index, err := e.changes.AddIndex(ctx, change)
		if err != nil {
			return nil, err
		}
		lease.Index = index
	}
	lease.TTL = e.heartbeats.Beat(c.ID)
	return lease, nil
}

// UpdateAssignments writes the report of a member cluster about its assignments, together
// with reports of other clusters. It returns the index at which the report is visible. The
// whole report is refused if an assignment is on another cluster; if an assignment no
// longer exists, it is skipped.
func (e *Clusters) UpdateAssignments(ctx context.Context, clusterID, secret string, updates []apply.AssignmentUpdate) (uint64, error) {
	if _, err := e.authenticate(clusterID, secret); err != nil {
		return 0, err
	}
	snap := e.writer.Snapshot()
	known, err := ownUpdates("assignment %s is on cluster %s, not on %s", clusterID, updates, func(u *apply.AssignmentUpdate) (id, on string, ok bool) {
		if a := snap.Assignment(u.ID); a != nil {
			return a.ID, a.ClusterID, true
		}
		return "", "", false
	})
	if err != nil || len(known) == 0 {
		return snap.Index(), err
	}
	return e.updates.AddIndex(ctx, known)
}

func (e *Clusters) writeChanges(ctx context.Context, changes []model.ClusterChange) (*replication.Result, error) {
	return e.writer.Propose(ctx, &replication.ChangeClusters{Changes: changes})
}

func (e *Clusters) writeUpdates(ctx context.Context, parts [][]apply.AssignmentUpdate) (*replication.Result, error) {
	return e.writer.Propose(ctx, &replication.UpdateAssignments{Updates: slices.Concat(parts...)})
}
