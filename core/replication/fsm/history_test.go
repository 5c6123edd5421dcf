package fsm_test

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A History draws random entries. They succeed often enough, and are refused often
// enough. Snap must be the state that the next entry is applied to. Names come from
// small sets, because entries about unrelated objects would find few conflicts.
type history struct {
	T    *rapid.T
	Snap *state.Snapshot
	Time int64
	n    int
}

// pick draws one of n names, so that entries refer to the same objects often.
func (h *history) pick(what string, n int) string {
	return fmt.Sprintf("%s-%d", what, rapid.IntRange(0, n-1).Draw(h.T, what))
}

// fresh returns a name that no other entry of the history uses.
func (h *history) fresh(what string) string {
	h.n++
	return fmt.Sprintf("%s-%d-%d", what, h.Snap.Index(), h.n)
}

// key draws one of six jobs in two namespaces.
func (h *history) key() model.JobKey {
	return model.JobKey{Namespace: h.pick("ns", 2), ID: h.pick("job", 3)}
}

// Entry draws an entry. Times may go back, as they do when a leader with a slower clock
// takes over.
func (h *history) Entry() *replication.Entry {
	draw := rapid.SampledFrom([]func() replication.Command{
		h.register, h.register, h.register, h.node, h.node, h.place, h.place, h.place, h.place, h.change, h.update, h.update,
		h.stop, h.stopAllocs, h.evals, h.collect, h.policy, h.policy, h.policy, h.policy, h.operator, h.operator, h.confirm,
		h.clusters, h.bind, h.bind, h.assign, h.assign, h.assign, h.learn, h.unregister, h.stopBinding, h.end, h.unbind, h.report, h.lose,
	}).Draw(h.T, "command")
	h.Time += rapid.Int64Range(-10, state.IdempotencyWindow/8).Draw(h.T, "time")
	e := &replication.Entry{Time: h.Time, Command: draw()}
	if rapid.IntRange(0, 3).Draw(h.T, "keyed") == 0 {
		e.Key = h.pick("key", 6)
		e.Hash = sha256.Sum256([]byte(h.pick("request", 2)))
	}
	return e
}

// job draws a specification. Few distinct values make unchanged registrations likely.
func (h *history) job(key model.JobKey) *model.Job {
	return &model.Job{
		Namespace: key.Namespace, ID: key.ID, Type: model.JobType(rapid.IntRange(0, 3).Draw(h.T, "type")),
		Priority: rapid.Int32Range(1, 3).Draw(h.T, "priority"), Meta: map[string]string{"a": "b", "c": h.pick("meta", 2)},
		Groups: []*model.Group{{
			Name: "g", Count: 3, Resources: model.Resources{"cpu": 10, h.pick("gpu", 2): 1},
			Labels: map[string]string{"app": h.pick("app", 2)},
		}},
	}
}

// register draws a registration, which fails at times because of its required index.
func (h *history) register() replication.Command {
	c := &replication.RegisterJob{Job: h.job(h.key())}
	if rapid.Bool().Draw(h.T, "eval") {
		c.Eval = h.eval(c.Job.Key())
	}
	if rapid.IntRange(0, 4).Draw(h.T, "check") == 0 {
		c.Check = new(uint64(rapid.IntRange(0, 1).Draw(h.T, "at")))
	}
	return c
}

// eval returns an evaluation with maps; its encoding must not depend on their order.
func (h *history) eval(key model.JobKey) *model.Evaluation {
	return &model.Evaluation{
		ID: h.fresh("eval"), Namespace: key.Namespace, JobID: key.ID, TriggeredBy: model.TriggerJobRegister,
		Classes: map[uint64]bool{7: true, 9: false}, Queued: map[string]int{"g": 2},
		Failed: map[string]*model.Explanation{"g": {Nodes: 3, Exhausted: map[string]int{"cpu": 2, "memory": 1}}},
	}
}

// node draws a registration of a node, at times with a secret that does not match.
func (h *history) node() replication.Command {
	n := &model.Node{
		ID: h.pick("node", 4), Datacenter: h.pick("dc", 2), Capacity: model.Resources{"cpu": 100, "gpu-0": 5, "gpu-1": 5},
		Attributes: map[string]string{"x": "y", "z": h.pick("z", 2)}, SecretHash: [32]byte{1},
	}
	if rapid.IntRange(0, 9).Draw(h.T, "impostor") == 0 {
		n.SecretHash[0] = 2
	}
	return &replication.RegisterNodes{Nodes: []*model.Node{n}}
}

// plan places, updates, stops and evicts allocations of the state. Nothing is verified:
// plans may overcommit nodes and evict ended allocations, which the FSM must apply in
// the same way everywhere.
func (h *history) plan(j *model.Job) *apply.Batch {
	plan := &model.Plan{EvalID: h.fresh("eval"), Job: j.Key(), Priority: j.Priority, SnapshotIndex: h.Snap.Index(), Groups: make([]model.CommitGroup, 3)}
	allocs := slices.Collect(h.Snap.Allocs())
	for i := range plan.Groups {
		g := &plan.Groups[i]
		for range rapid.IntRange(0, 3).Draw(h.T, "places") {
			id := h.fresh("alloc")
			g.Placements = append(g.Placements, &model.Allocation{
				ID: id, Job: j, Group: j.Groups[0], NodeID: h.pick("node", 5), EvalID: plan.EvalID, Score: 0.1,
			})
			if len(allocs) > 0 && rapid.Bool().Draw(h.T, "evict") {
				victim := rapid.SampledFrom(allocs).Draw(h.T, "victim")
				g.Evictions = append(g.Evictions, model.Eviction{AllocID: victim.ID, By: id, Policy: "sha256:p"})
			}
		}
		for _, a := range allocs {
			if a.Job.Key() == j.Key() && rapid.IntRange(0, 5).Draw(h.T, "touch") == 0 {
				u := *a
				u.Job, u.Group = j, j.Groups[0]
				g.Updates = append(g.Updates, &u)
				break
			}
			if a.Job.Key() == j.Key() && rapid.IntRange(0, 5).Draw(h.T, "stop") == 0 {
				g.Stops = append(g.Stops, model.Stop{AllocID: a.ID, Reason: "no longer wanted", Lost: rapid.Bool().Draw(h.T, "lost")})
				break
			}
		}
		if rapid.IntRange(0, 3).Draw(h.T, "claim") == 0 {
			c := &model.Claim{ID: h.pick("claim", 3), Claimant: j.Key(), NodeID: h.pick("node", 5), Expiry: h.Time + 5}
			c.Vec[model.CPU] = 5
			g.Claims = append(g.Claims, c)
		}
	}
	b := &apply.Batch{Now: h.Time, Plans: []apply.BatchPlan{{Plan: plan, Groups: []int{0, 2}}}}
	if rapid.IntRange(0, 9).Draw(h.T, "ineligible") == 0 {
		b.Ineligible = []string{h.pick("node", 4)}
	}
	return b
}

// place plans a current or an older version of a job. Without jobs, it draws a deletion
// instead, so that every draw is an entry.
func (h *history) place() replication.Command {
	jobs := slices.Collect(h.Snap.Jobs())
	if len(jobs) == 0 {
		return &replication.DeleteNodes{IDs: []string{h.pick("node", 4)}}
	}
	j := rapid.SampledFrom(jobs).Draw(h.T, "job")
	j = rapid.SampledFrom(h.Snap.JobVersions(j.Key())).Draw(h.T, "version")
	return &replication.ApplyPlans{Batch: h.plan(j)}
}

// confirm registers a job together with a plan.
func (h *history) confirm() replication.Command {
	j := h.job(h.key())
	b := h.plan(j)
	b.Plans[0].Groups = []int{0}
	return &replication.RegisterJob{Job: j, Batch: b}
}

// change draws a change of a node's status, eligibility, drain or taints.
func (h *history) change() replication.Command {
	c := &replication.ChangeNodes{IDs: []string{h.pick("node", 4), h.pick("node", 4)}}
	switch rapid.IntRange(0, 3).Draw(h.T, "what") {
	case 3:
		c.Change.Taint = []model.Taint{{Key: h.pick("key", 2), Value: h.pick("value", 2), Effect: rapid.SampledFrom(model.TaintEffects).Draw(h.T, "effect")}}
		c.Change.Untaint = []model.Taint{{Key: h.pick("key", 2), Effect: rapid.SampledFrom(model.TaintEffects).Draw(h.T, "effect")}}
	case 0:
		c.Change.Status = new(model.NodeStatus(rapid.IntRange(0, 1).Draw(h.T, "status")))
	case 1:
		c.Change.Drain = new(rapid.Bool().Draw(h.T, "drain"))
		c.Change.DrainSince = int64(rapid.IntRange(0, 2).Draw(h.T, "since"))
		c.Change.DrainDeadline = int64(rapid.IntRange(0, 2).Draw(h.T, "deadline"))
		c.Change.DrainKeepsSystem = rapid.Bool().Draw(h.T, "keeps system")
	default:
		c.Change.Ineligible = new(rapid.Bool().Draw(h.T, "ineligible"))
	}
	return c
}

// someAllocs draws a part of the existing allocations.
func (h *history) someAllocs() (ids []string) {
	for a := range h.Snap.Allocs() {
		if rapid.IntRange(0, 3).Draw(h.T, "some") == 0 {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// update draws a node's report on its allocations.
func (h *history) update() replication.Command {
	c := &replication.UpdateAllocs{}
	for _, id := range h.someAllocs() {
		c.Updates = append(c.Updates, apply.ClientUpdate{
			AllocID: id, Status: model.ClientStatus(rapid.IntRange(0, 4).Draw(h.T, "status")), Started: true, StartTime: h.Time,
			Text: h.pick("text", 3),
		})
	}
	return c
}

// stop draws a stop or purge of a job, which is refused if the job does not exist.
func (h *history) stop() replication.Command {
	c := &replication.StopJob{Key: h.key(), Purge: rapid.Bool().Draw(h.T, "purge")}
	c.Eval = h.eval(c.Key)
	return c
}

// stopAllocs draws a stop of single allocations by an operator.
func (h *history) stopAllocs() replication.Command {
	return &replication.StopAllocs{IDs: h.someAllocs(), Reason: "by hand"}
}

// evals draws writes of existing evaluations in any status, and of a new one.
func (h *history) evals() replication.Command {
	c := &replication.WriteEvals{}
	for e := range h.Snap.Evals() {
		if rapid.IntRange(0, 3).Draw(h.T, "some") == 0 {
			again := *e
			again.Status = model.EvalStatus(rapid.IntRange(0, int(model.EvalCancelled)).Draw(h.T, "status"))
			c.Evals = append(c.Evals, &again)
		}
	}
	c.Evals = append(c.Evals, h.eval(h.key()))
	return c
}

// collect draws a garbage collection. Most of its objects are in use and must remain.
func (h *history) collect() replication.Command {
	c := &replication.Collect{Allocs: h.someAllocs(), Jobs: []model.JobKey{h.key()}, Nodes: []string{h.pick("node", 4)}}
	for e := range h.Snap.Evals() {
		c.Evals = append(c.Evals, e.ID)
	}
	for _, v := range h.Snap.PolicyVersions() {
		c.Policies = append(c.Policies, v.ID)
	}
	return c
}

// policy draws an upload, a load, a check or a change of a policy.
func (h *history) policy() replication.Command {
	n := rapid.IntRange(0, 2).Draw(h.T, "version")
	module := []byte(fmt.Sprint("module", n%2))
	version := &model.PolicyVersion{
		ID: fmt.Sprint("sha256:", n), Name: fmt.Sprint("policy-", n/2), Kind: model.PolicyWasm, Digest: replicationtest.Digest(module),
		Size: int64(len(module)),
	}
	switch rapid.IntRange(0, 6).Draw(h.T, "what") {
	case 0:
		half := len(module) / 2
		switch rapid.IntRange(0, 2).Draw(h.T, "half") {
		case 0:
			return &replication.PutChunk{Digest: version.Digest, Data: module[:half]}
		case 1:
			return &replication.PutChunk{Digest: version.Digest, Offset: int64(half), Data: module[half:]}
		}
		return &replication.PutChunk{Digest: version.Digest, Data: module}
	case 1, 4:
		return &replication.LoadPolicy{Version: version}
	case 2:
		return &replication.CheckPolicy{Version: version.ID, Server: h.pick("server", 3), Check: model.PolicyCheck{OK: h.pick("ok", 4) != "ok-0", Time: h.Time}}
	default:
		return h.changePolicy(version)
	}
}

// changePolicy draws a change of the roles of a version. Ends of trials and blocks are
// those of the state now and then.
func (h *history) changePolicy(v *model.PolicyVersion) replication.Command {
	const minute = int64(60 * 1e9)
	c := &replication.ChangePolicy{
		Name: v.Name, Op: replication.PolicyOp(rapid.IntRange(1, int(replication.OpBlock)).Draw(h.T, "op")), Version: v.ID,
		Reason: "a reason", Until: rapid.Int64Range(0, 1).Draw(h.T, "until"), Force: rapid.Bool().Draw(h.T, "force"),
		Actor: h.pick("actor", 2),
	}
	switch t := h.Snap.PolicyTrial(v.Name); {
	case c.Op == replication.OpTrial:
		c.Until, c.Trial = h.Time+100*minute, &model.TrialPlan{Block: minute, Seed: uint64(h.Time)}
	case t != nil && rapid.Bool().Draw(h.T, "current"):
		c.Until = t.Until
		if c.Op == replication.OpBlock {
			c.Until = t.BlockEnd()
		}
	}
	return c
}

// operator draws a command about the cluster, the configuration, classes, tokens,
// budgets or namespaces.
func (h *history) operator() replication.Command {
	switch rapid.IntRange(0, 11).Draw(h.T, "what") {
	case 0:
		return &replication.Bootstrap{ClusterID: h.pick("cluster", 2), Version: 1}
	case 1:
		return &replication.SetVersion{Version: rapid.Uint32Range(0, replication.Newest).Draw(h.T, "version")}
	case 2:
		return &replication.SetConfig{Config: &model.SchedulerConfig{Policy: h.pick("policy", 2), PriorityDelta: new(int32(5)), Shedding: new(false)}}
	case 3:
		return &replication.UpsertPriorityClass{Class: &model.PriorityClass{Name: h.pick("class", 3), GlobalDefault: rapid.Bool().Draw(h.T, "default")}}
	case 4:
		return &replication.DeletePriorityClass{Name: h.pick("class", 3)}
	case 5:
		return &replication.PutToken{Token: &model.Token{Accessor: h.pick("token", 3), Hash: [32]byte{rapid.Byte().Draw(h.T, "hash")}, Roles: []string{"r"}}, Bootstrap: rapid.Bool().Draw(h.T, "first")}
	case 6:
		return &replication.DeleteToken{Accessor: h.pick("token", 3)}
	case 9:
		return &replication.UpsertNamespace{Namespace: &model.Namespace{
			Name: h.pick("ns", 3), Weight: rapid.SampledFrom([]float64{-1, 0, 0.5, 3}).Draw(h.T, "weight"), Description: "a tenant",
		}}
	case 10:
		return &replication.DeleteNamespace{Name: h.pick("ns", 3)}
	case 11:
		return &replication.PutSigner{Signer: &model.Signer{ServerID: h.pick("server", 2), Key: [32]byte{byte(rapid.IntRange(0, 3).Draw(h.T, "key"))}}}
	case 7:
		return &replication.UpsertBudget{Budget: &model.Budget{Namespace: h.pick("ns", 2), Name: h.pick("budget", 2), Labels: map[string]string{"app": "app-0"}, MinAvailable: &model.Bound{Number: 50, Percent: true}}}
	default:
		return &replication.DeleteBudget{Key: model.BudgetKey{Namespace: h.pick("ns", 2), Name: h.pick("budget", 2)}}
	}
}
