package replication

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func (h *history) cluster() string { return h.pick("cluster", 3) }

func (h *history) clusters() Command {
	return &UpsertClusters{[]*model.Cluster{{
		ID: h.cluster(), Capacity: model.Resources{"cpu": 100, h.pick("gpu", 2): 4},
		Attributes: map[string]string{"region": h.pick("region", 2)}, Down: rapid.IntRange(0, 4).Draw(h.t, "down") == 0,
		SecretHash: [32]byte{byte(rapid.IntRange(0, 2).Draw(h.t, "secret"))},
	}}}
}

// learn has agents report of clusters, or miss their heartbeats.
func (h *history) learn() Command {
	c := &ChangeClusters{}
	for range rapid.IntRange(1, 2).Draw(h.t, "changes") {
		id := h.cluster()
		c.Changes = append(c.Changes, model.ClusterChange{
			ID: id, Down: rapid.IntRange(0, 2).Draw(h.t, "down") == 0, Reports: rapid.Bool().Draw(h.t, "reports"),
			Reported: model.Resources{"cpu": rapid.Int64Range(0, 100).Draw(h.t, "cpu")},
			Leases: []*model.Claim{{
				ID: h.pick("lease", 3) + id, Claimant: model.LeaseClaimant("b", h.pick("lease", 3)), ClusterID: id, Vec: model.Vector{5},
				Priority: 1, Expiry: h.time + 100,
			}},
		})
	}
	return c
}

func (h *history) unregister() Command {
	return &DeleteCluster{ID: h.cluster(), Force: rapid.Bool().Draw(h.t, "force")}
}

func (h *history) stopBinding() Command {
	c := &StopBinding{Key: h.bindingKey()}
	if rapid.IntRange(0, 3).Draw(h.t, "check") == 0 {
		c.Check = new(uint64(rapid.IntRange(0, 3).Draw(h.t, "index")))
	}
	return c
}

// bindingKey is at times a job's.
func (h *history) bindingKey() model.JobKey {
	if rapid.IntRange(0, 9).Draw(h.t, "taken") == 0 {
		return h.key()
	}
	return model.JobKey{Namespace: h.pick("ns", 2), ID: h.pick("binding", 3)}
}

func (h *history) bind() Command {
	key := h.bindingKey()
	c := &UpsertBinding{Binding: &model.Binding{
		Namespace: key.Namespace, ID: key.ID, Priority: rapid.Int32Range(1, 3).Draw(h.t, "priority"),
		Replicas: rapid.IntRange(0, 4).Draw(h.t, "replicas"), Resources: model.Resources{"cpu": 10},
		Weights: map[string]int{"cluster-0": 1, "cluster-1": 2}, Clusters: []string{"cluster-0", "cluster-1"},
		MinClusters: rapid.IntRange(0, 5).Draw(h.t, "min"), Stopped: rapid.Bool().Draw(h.t, "stopped"),
	}}
	if rapid.Bool().Draw(h.t, "eval") {
		c.Eval = &model.Evaluation{
			ID: h.fresh("eval"), Namespace: key.Namespace, JobID: key.ID, Type: model.JobBinding, TriggeredBy: model.TriggerJobRegister,
		}
	}
	return c
}

func (h *history) assignments() []*model.Assignment { return slices.Collect(h.snap.Assignments()) }

func (h *history) someAssignments() (ids []string) {
	for _, a := range h.assignments() {
		if rapid.IntRange(0, 2).Draw(h.t, "chosen") == 0 {
			ids = append(ids, a.ID)
		}
	}
	return append(ids, "nobody")
}

// assign has a plan that does everything a plan may do to bindings.
func (h *history) assign() Command {
	key := h.bindingKey()
	if h.snap.Binding(key) == nil {
		return h.bind()
	}
	claim := h.fresh("claim")
	g := model.CommitGroup{
		Assignments: []*model.Assignment{{
			ID: h.fresh("assignment"), Binding: key, ClusterID: h.cluster(), Replicas: 2, Vec: model.Vector{20}, EvalID: "e",
		}},
		ReleasedClaims: h.snap.ClaimIDs(key),
	}
	if rapid.Bool().Draw(h.t, "claims") {
		g.Claims = []*model.Claim{{ID: claim, Claimant: key, ClusterID: h.cluster(), Vec: model.Vector{5}, Priority: 2, Expiry: h.time + 100}}
	}
	for _, id := range h.someAssignments() {
		g.Withdrawals = append(g.Withdrawals, model.Withdrawal{
			AssignmentID: id, By: claim, Policy: "p", Remaining: rapid.IntRange(0, 1).Draw(h.t, "keep"),
		})
	}
	if len(g.Claims) > 0 {
		g.Assignments = nil
	}
	plan := &model.Plan{EvalID: h.fresh("eval"), Job: key, Now: h.time, Groups: []model.CommitGroup{g}}
	return &ApplyPlans{&apply.Batch{Now: h.time, Plans: []apply.BatchPlan{{Plan: plan, Groups: []int{0}}}}}
}

func (h *history) end() Command { return &EndAssignments{IDs: h.someAssignments()} }

func (h *history) unbind() Command { return &DeleteBinding{Key: h.bindingKey()} }

// report has clusters tell of assignments, ended ones and strangers included.
func (h *history) report() Command {
	c := &UpdateAssignments{}
	for _, id := range h.someAssignments() {
		c.Updates = append(c.Updates, apply.AssignmentUpdate{
			ID: id, Client: model.ClientStatus(rapid.IntRange(0, 3).Draw(h.t, "client")), Ready: rapid.IntRange(0, 2).Draw(h.t, "ready"),
			Text: h.pick("text", 2), StartTime: h.time,
		})
	}
	return c
}

func (h *history) lose() Command {
	return &StopAssignments{IDs: h.someAssignments(), Reason: "its cluster is silent"}
}
