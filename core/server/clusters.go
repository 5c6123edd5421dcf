package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// PutCluster stores a member cluster that has no agent, or another version of it:
// what is assigned to it starts and ends by the clock.
func (s *Server) PutCluster(ctx context.Context, c *model.Cluster) (uint64, error) {
	if err := s.writer.CheckLeader(); err != nil {
		return 0, err
	}
	if err := checkCluster(c, nil); err != nil {
		return 0, err
	}
	err := s.writer.Check(ctx, func(snap *state.Snapshot) error {
		if old := snap.Cluster(c.ID); old != nil && old.HasAgent() {
			return apierror.New(apierror.CodeConflict, "cluster %s has an agent, which says what it has", c.ID).
				WithHint("change the agent's configuration, or delete the cluster once the agent has gone")
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	cluster := *c
	cluster.SecretHash, cluster.Reported = [32]byte{}, nil
	return s.writer.CommitIndex(ctx, &replication.UpsertClusters{Clusters: []*model.Cluster{&cluster}})
}

// DeleteCluster forgets a member cluster. While something is assigned there it is
// a conflict, unless it is forced: that is placed elsewhere then.
func (s *Server) DeleteCluster(ctx context.Context, id string, force bool) (uint64, error) {
	if err := s.writer.Check(ctx, func(snap *state.Snapshot) error { _, err := clusterIn(snap, id); return err }); err != nil {
		return 0, err
	}
	index, err := s.writer.CommitIndex(ctx, &replication.DeleteCluster{ID: id, Force: force})
	if err == nil {
		s.clusters.Remove(id)
	}
	return index, err
}

// RegisterMember stores the cluster that an agent speaks for, or what is new of
// it, and says within what time it must report. The first registration sets the
// secret; later ones must know it.
func (s *Server) RegisterMember(ctx context.Context, c *model.Cluster, secret string) (*NodeLease, error) {
	if err := s.writer.CheckLeader(); err != nil {
		return nil, err
	}
	if err := checkCluster(c, &secret); err != nil {
		return nil, err
	}
	cluster := *c
	cluster.SecretHash, cluster.Down = sha256.Sum256([]byte(secret)), false
	if old := s.Snapshot().Cluster(c.ID); old != nil {
		if err := speaksFor(old, secret); err != nil {
			return nil, err
		}
		if sameCluster(old, &cluster) {
			return s.clusterBeat(ctx, old, nil)
		}
	}
	index, err := s.writer.CommitIndex(ctx, &replication.UpsertClusters{Clusters: []*model.Cluster{&cluster}})
	if err != nil {
		return nil, err
	}
	return &NodeLease{Index: index, TTL: s.clusters.Beat(c.ID)}, nil
}

// checkCluster names everything that is wrong with a cluster; secret is its
// agent's, nil where it has none.
func checkCluster(c *model.Cluster, secret *string) error {
	var problems []string
	if c.ID == "" || strings.ContainsAny(c.ID, " \t\n/") {
		problems = append(problems, fmt.Sprintf("the id %q is empty or has spaces or slashes", c.ID))
	}
	if secret != nil && len(*secret) < secretLength {
		problems = append(problems, fmt.Sprintf("its secret has %d characters, and needs %d", len(*secret), secretLength))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Capacity)) {
		if c.Capacity[name] < 0 {
			problems = append(problems, fmt.Sprintf("its capacity of %s is negative: %d", name, c.Capacity[name]))
		}
	}
	if _, set := c.Attributes[model.AttributeClusterID]; set {
		problems = append(problems, model.AttributeClusterID+" is built in and cannot be set as an attribute")
	}
	if len(problems) == 0 {
		return nil
	}
	return apierror.New(apierror.CodeInvalid, "cluster %q: %s", c.ID, strings.Join(problems, "; ")).WithDetails(map[string]any{"Problems": problems})
}

// speaksFor is nil for who knows the cluster's secret.
func speaksFor(c *model.Cluster, secret string) error {
	if !c.HasAgent() { // an operator registered it, and now an agent takes over
		return nil
	}
	if sha256.Sum256([]byte(secret)) == c.SecretHash { // of hashes no time tells anything
		return nil
	}
	return apierror.New(apierror.CodeForbidden, "the secret of cluster %s is another", c.ID).
		WithHint("its agent's data directory holds it; an agent that lost it needs another cluster id, or the old cluster deleted")
}

// sameCluster is whether a registration says what is known already, whatever was
// reported since.
func sameCluster(a, b *model.Cluster) bool {
	return a.SecretHash == b.SecretHash && maps.Equal(a.Capacity, b.Capacity) && maps.Equal(a.Attributes, b.Attributes) &&
		(b.Reported == nil || maps.Equal(a.Reported, b.Reported))
}

// ClusterReport is what an agent says of its cluster with every heartbeat.
type ClusterReport struct {
	Reported model.Resources // how much of its capacity bindings may use; nil: as before
	Leases   []ClusterLease  // room that it keeps for other pools
}

// ClusterHeartbeat notes that a member cluster is there, and what its agent says
// of it. Where nothing is new, nothing is written; one that was down takes work
// again.
func (s *Server) ClusterHeartbeat(ctx context.Context, id, secret string, report *ClusterReport) (*NodeLease, error) {
	c, err := s.knownCluster(id, secret)
	if err != nil {
		return nil, err
	}
	if err := checkLeases(id, report.Leases); err != nil {
		return nil, err
	}
	return s.clusterBeat(ctx, c, report)
}

func (s *Server) knownCluster(id, secret string) (*model.Cluster, error) {
	if err := s.writer.CheckLeader(); err != nil {
		return nil, err
	}
	c, err := clusterIn(s.Snapshot(), id)
	if err != nil {
		return nil, err
	}
	if !c.HasAgent() {
		return nil, apierror.New(apierror.CodeNotFound, "cluster %q has no agent", id).WithHint("an agent registers its cluster when it starts")
	}
	return c, speaksFor(c, secret)
}

func clusterIn(snap *state.Snapshot, id string) (*model.Cluster, error) {
	if c := snap.Cluster(id); c != nil {
		return c, nil
	}
	return nil, apierror.New(apierror.CodeNotFound, "there is no cluster %q", id).WithHint("an agent registers its cluster when it starts; `cede cluster apply` makes one without")
}

// clusterBeat is a heartbeat; without a report nothing is new but that the cluster
// is there.
func (s *Server) clusterBeat(ctx context.Context, c *model.Cluster, report *ClusterReport) (*NodeLease, error) {
	snap := s.Snapshot()
	lease := &NodeLease{Index: snap.Index()}
	change := model.ClusterChange{ID: c.ID}
	if report != nil {
		change.Reported, change.Leases = report.Reported, claimsOfLeases(snap, c.ID, report.Leases)
		if change.Reported == nil {
			change.Reported = c.Reported
		}
		change.Reports = !maps.Equal(change.Reported, c.Reported) || !sameLeases(snap, c.ID, change.Leases)
	}
	if c.Down || change.Reports {
		index, err := s.clusterNews.AddIndex(ctx, change)
		if err != nil {
			return nil, err
		}
		lease.Index = index
	}
	lease.TTL = s.clusters.Beat(c.ID)
	return lease, nil
}

func (s *Server) writeClusterNews(ctx context.Context, changes []model.ClusterChange) (*replication.Result, error) {
	return s.writer.Propose(ctx, &replication.ChangeClusters{Changes: changes})
}

// UpdateAssignments writes what a member cluster says of its assignments, together
// with what others say at that moment. What is not on the cluster is refused, what
// has gone already is skipped. It returns the index at which it is visible.
func (s *Server) UpdateAssignments(ctx context.Context, clusterID, secret string, updates []apply.AssignmentUpdate) (uint64, error) {
	if _, err := s.knownCluster(clusterID, secret); err != nil {
		return 0, err
	}
	snap := s.Snapshot()
	known, err := ownNews("assignment %s is on cluster %s, not on %s", clusterID, updates, func(u *apply.AssignmentUpdate) (id, on string, there bool) {
		if a := snap.Assignment(u.ID); a != nil {
			return a.ID, a.ClusterID, true
		}
		return "", "", false
	})
	if err != nil || len(known) == 0 {
		return snap.Index(), err
	}
	return s.assignmentNews.AddIndex(ctx, known)
}

func (s *Server) writeAssignmentNews(ctx context.Context, parts [][]apply.AssignmentUpdate) (*replication.Result, error) {
	return s.writer.Propose(ctx, &replication.UpdateAssignments{Updates: slices.Concat(parts...)})
}
