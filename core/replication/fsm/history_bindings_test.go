package fsm_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// cluster draws one of three IDs, so that commands concern each other's clusters.
func (h *history) cluster() string { return h.pick("cluster", 3) }

// clusters draws a registration of a member cluster, at times without a secret, as an
// operator sends it.
func (h *history) clusters() replication.Command {
	return &replication.UpsertClusters{Clusters: []*model.Cluster{{
		ID: h.cluster(), Capacity: model.Resources{"cpu": 100, h.pick("gpu", 2): 4},
		Attributes: map[string]string{"region": h.pick("region", 2)}, Down: rapid.IntRange(0, 4).Draw(h.T, "down") == 0,
		SecretHash: [32]byte{byte(rapid.IntRange(0, 2).Draw(h.T, "secret"))},
	}}}
}

// learn makes agents report their clusters, or miss heartbeats.
func (h *history) learn() replication.Command {
	c := &replication.ChangeClusters{}
	for range rapid.IntRange(1, 2).Draw(h.T, "changes") {
		id := h.cluster()
		c.Changes = append(c.Changes, model.ClusterChange{
			ID: id, Down: rapid.IntRange(0, 2).Draw(h.T, "down") == 0, Reports: rapid.Bool().Draw(h.T, "reports"),
			Reported: model.Resources{"cpu": rapid.Int64Range(0, 100).Draw(h.T, "cpu")},
			Leases: []*model.Claim{{
				ID: h.pick("lease", 3) + id, Claimant: model.LeaseClaimant("b", h.pick("lease", 3)), ClusterID: id, Vec: model.Vector{5},
				Priority: 1, Expiry: h.Time + 100,
			}},
		})
	}
	return c
}

// unregister draws the deletion of a cluster, which is refused if it holds assignments
// and is not forced.
func (h *history) unregister() replication.Command {
	return &replication.DeleteCluster{ID: h.cluster(), Force: rapid.Bool().Draw(h.T, "force")}
}

// stopBinding draws a stop, now and then with an index that it requires.
func (h *history) stopBinding() replication.Command {
	c := &replication.StopBinding{Key: h.bindingKey()}
	if rapid.IntRange(0, 3).Draw(h.T, "check") == 0 {
		c.Check = new(uint64(rapid.IntRange(0, 3).Draw(h.T, "index")))
	}
	return c
}

// bindingKey returns the key of a binding, or sometimes of a job.
func (h *history) bindingKey() model.JobKey {
	if rapid.IntRange(0, 9).Draw(h.T, "taken") == 0 {
		return h.key()
	}
	return model.JobKey{Namespace: h.pick("ns", 2), ID: h.pick("binding", 3)}
}

// bind draws a registration of a binding.
func (h *history) bind() replication.Command {
	key := h.bindingKey()
	c := &replication.UpsertBinding{Binding: &model.Binding{
		Namespace: key.Namespace, ID: key.ID, Priority: rapid.Int32Range(1, 3).Draw(h.T, "priority"),
		Replicas: rapid.IntRange(0, 4).Draw(h.T, "replicas"), Resources: model.Resources{"cpu": 10},
		Weights: map[string]int{"cluster-0": 1, "cluster-1": 2}, Clusters: []string{"cluster-0", "cluster-1"},
		MinClusters: rapid.IntRange(0, 5).Draw(h.T, "min"), Stopped: rapid.Bool().Draw(h.T, "stopped"),
	}}
	if rapid.Bool().Draw(h.T, "eval") {
		c.Eval = &model.Evaluation{
			ID: h.fresh("eval"), Namespace: key.Namespace, JobID: key.ID, Type: model.JobBinding, TriggeredBy: model.TriggerJobRegister,
		}
	}
	return c
}

func (h *history) assignments() []*model.Assignment { return slices.Collect(h.Snap.Assignments()) }

// someAssignments draws a part of the existing assignments.
func (h *history) someAssignments() (ids []string) {
	for _, a := range h.assignments() {
		if rapid.IntRange(0, 2).Draw(h.T, "chosen") == 0 {
			ids = append(ids, a.ID)
		}
	}
	return append(ids, "unknown")
}

// assign plans everything that a plan may contain for bindings. Some parts are
// inconsistent on purpose: applying them must not panic, and must result in the same
// state on every server.
func (h *history) assign() replication.Command {
	key := h.bindingKey()
	if h.Snap.Binding(key) == nil {
		return h.bind()
	}
	claim := h.fresh("claim")
	g := model.CommitGroup{
		Assignments: []*model.Assignment{{
			ID: h.fresh("assignment"), Binding: key, ClusterID: h.cluster(), Replicas: 2, Vec: model.Vector{20}, EvalID: "e",
		}},
		ReleasedClaims: h.Snap.ClaimIDs(key),
	}
	if rapid.Bool().Draw(h.T, "claims") {
		g.Claims = []*model.Claim{{ID: claim, Claimant: key, ClusterID: h.cluster(), Vec: model.Vector{5}, Priority: 2, Expiry: h.Time + 100}}
	}
	for _, id := range h.someAssignments() {
		g.Withdrawals = append(g.Withdrawals, model.Withdrawal{
			AssignmentID: id, By: claim, Policy: "p", Remaining: rapid.IntRange(0, 1).Draw(h.T, "keep"),
		})
	}
	if len(g.Claims) > 0 {
		g.Assignments = nil
	}
	plan := &model.Plan{EvalID: h.fresh("eval"), Job: key, Now: h.Time, Groups: []model.CommitGroup{g}}
	return &replication.ApplyPlans{Batch: &apply.Batch{Now: h.Time, Plans: []apply.BatchPlan{{Plan: plan, Groups: []int{0}}}}}
}

// end draws the end of assignments by the clock.
func (h *history) end() replication.Command {
	return &replication.EndAssignments{IDs: h.someAssignments()}
}

// unbind draws the deletion of a binding, which is refused while it holds capacity.
func (h *history) unbind() replication.Command {
	return &replication.DeleteBinding{Key: h.bindingKey()}
}

// report makes clusters report assignments, including ended and unknown ones.
func (h *history) report() replication.Command {
	c := &replication.UpdateAssignments{}
	for _, id := range h.someAssignments() {
		c.Updates = append(c.Updates, apply.AssignmentUpdate{
			ID: id, Client: model.ClientStatus(rapid.IntRange(0, 3).Draw(h.T, "client")), Ready: rapid.IntRange(0, 2).Draw(h.T, "ready"),
			Text: h.pick("text", 2), StartTime: h.Time,
		})
	}
	return c
}

// lose draws the withdrawal of assignments of a silent cluster.
func (h *history) lose() replication.Command {
	return &replication.StopAssignments{IDs: h.someAssignments(), Reason: "its cluster is silent"}
}
