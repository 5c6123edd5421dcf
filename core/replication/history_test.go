package replication

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memModules keeps modules in memory.
type memModules struct {
	mu     sync.Mutex
	chunks map[string][]byte
	whole  map[string][]byte
	fails  error
}

func newMemModules() *memModules {
	return &memModules{chunks: map[string][]byte{}, whole: map[string][]byte{}}
}

func (m *memModules) PutChunk(digest string, offset int64, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return m.fails
	}
	if int64(len(m.chunks[digest])) == offset {
		m.chunks[digest] = append(m.chunks[digest], data...)
	}
	return nil
}

func (m *memModules) Finish(digest string, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	data := m.chunks[digest]
	if int64(len(data)) != size || digestOf(data) != digest {
		return fmt.Errorf("module %s has %d bytes, wanted %d, or others", digest, len(data), size)
	}
	m.whole[digest] = data
	return nil
}

func (m *memModules) Get(digest string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, ok := m.whole[digest]; ok {
		return data, nil
	}
	return nil, errors.New("there is no module " + digest)
}

func (m *memModules) Delete(digest string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.whole, digest)
	delete(m.chunks, digest)
	return nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// server is a state machine without Raft.
type server struct {
	store    *state.Store
	modules  *memModules
	fsm      *fsm
	index    uint64
	observed []Applied
}

func newServer() *server {
	s := &server{store: state.New(), modules: newMemModules()}
	s.fsm = newFSM(&Config{Store: s.store, Modules: s.modules, Observe: func(as []Applied) {
		s.observed = append(s.observed, as...)
	}}, discardLog())
	return s
}

// apply is what Raft does with an entry once it is committed.
func (s *server) apply(t rapid.TB, e *Entry) *Result {
	t.Helper()
	s.index++
	switch answer := s.fsm.Apply(&raft.Log{Index: s.index, Type: raft.LogCommand, Data: Encode(e)}).(type) {
	case *Result:
		return answer
	default:
		t.Fatal(answer)
		return nil
	}
}

func (s *server) do(t rapid.TB, c Command) *Result {
	t.Helper()
	return s.apply(t, &Entry{Time: int64(s.index) * 1000, Command: c})
}

// history draws entries that make sense often enough, and are refused often
// enough.
type history struct {
	t    *rapid.T
	snap *state.Snapshot
	time int64
	n    int
}

func (h *history) pick(what string, n int) string {
	return fmt.Sprintf("%s-%d", what, rapid.IntRange(0, n-1).Draw(h.t, what))
}

func (h *history) fresh(what string) string {
	h.n++
	return fmt.Sprintf("%s-%d-%d", what, h.snap.Index(), h.n)
}

func (h *history) key() model.JobKey {
	return model.JobKey{Namespace: h.pick("ns", 2), ID: h.pick("job", 3)}
}

func (h *history) entry() *Entry {
	draw := rapid.SampledFrom([]func() Command{
		h.register, h.register, h.register, h.node, h.node, h.place, h.place, h.place, h.place, h.change, h.update, h.update,
		h.stop, h.stopAllocs, h.evals, h.collect, h.policy, h.policy, h.policy, h.policy, h.operator, h.operator, h.confirm,
		h.clusters, h.bind, h.bind, h.assign, h.assign, h.assign, h.learn, h.unregister, h.stopBinding, h.end, h.unbind, h.report, h.lose,
	}).Draw(h.t, "command")
	h.time += rapid.Int64Range(-10, state.IdempotencyWindow/8).Draw(h.t, "time")
	e := &Entry{Time: h.time, Command: draw()}
	if rapid.IntRange(0, 3).Draw(h.t, "keyed") == 0 {
		e.Key = h.pick("key", 6)
		e.Hash = sha256.Sum256([]byte(h.pick("request", 2)))
	}
	return e
}

func (h *history) job(key model.JobKey) *model.Job {
	return &model.Job{
		Namespace: key.Namespace, ID: key.ID, Type: model.JobType(rapid.IntRange(0, 3).Draw(h.t, "type")),
		Priority: rapid.Int32Range(1, 3).Draw(h.t, "priority"), Meta: map[string]string{"a": "b", "c": h.pick("meta", 2)},
		Groups: []*model.Group{{
			Name: "g", Count: 3, Resources: model.Resources{"cpu": 10, h.pick("gpu", 2): 1},
			Labels: map[string]string{"app": h.pick("app", 2)},
		}},
	}
}

func (h *history) register() Command {
	c := &RegisterJob{Job: h.job(h.key())}
	if rapid.Bool().Draw(h.t, "eval") {
		c.Eval = h.eval(c.Job.Key())
	}
	if rapid.IntRange(0, 4).Draw(h.t, "check") == 0 {
		c.Check = new(uint64(rapid.IntRange(0, 1).Draw(h.t, "at")))
	}
	return c
}

func (h *history) eval(key model.JobKey) *model.Evaluation {
	return &model.Evaluation{
		ID: h.fresh("eval"), Namespace: key.Namespace, JobID: key.ID, TriggeredBy: model.TriggerJobRegister,
		Classes: map[uint64]bool{7: true, 9: false}, Queued: map[string]int{"g": 2},
		Failed: map[string]*model.Explanation{"g": {Nodes: 3, Exhausted: map[string]int{"cpu": 2, "memory": 1}}},
	}
}

func (h *history) node() Command {
	n := &model.Node{
		ID: h.pick("node", 4), Datacenter: h.pick("dc", 2), Capacity: model.Resources{"cpu": 100, "gpu-0": 5, "gpu-1": 5},
		Attributes: map[string]string{"x": "y", "z": h.pick("z", 2)}, SecretHash: [32]byte{1},
	}
	if rapid.IntRange(0, 9).Draw(h.t, "impostor") == 0 {
		n.SecretHash[0] = 2
	}
	return &RegisterNodes{Nodes: []*model.Node{n}}
}

// plan places, updates, stops and evicts on whatever there is.
func (h *history) plan(j *model.Job) *apply.Batch {
	plan := &model.Plan{EvalID: h.fresh("eval"), Job: j.Key(), Priority: j.Priority, SnapshotIndex: h.snap.Index(), Groups: make([]model.CommitGroup, 3)}
	allocs := slices.Collect(h.snap.Allocs())
	for i := range plan.Groups {
		g := &plan.Groups[i]
		for range rapid.IntRange(0, 3).Draw(h.t, "places") {
			id := h.fresh("alloc")
			g.Placements = append(g.Placements, &model.Allocation{
				ID: id, Job: j, Group: j.Groups[0], NodeID: h.pick("node", 5), EvalID: plan.EvalID, Score: 0.1,
			})
			if len(allocs) > 0 && rapid.Bool().Draw(h.t, "evict") {
				victim := rapid.SampledFrom(allocs).Draw(h.t, "victim")
				g.Evictions = append(g.Evictions, model.Eviction{AllocID: victim.ID, By: id, Policy: "sha256:p"})
			}
		}
		for _, a := range allocs {
			if a.Job.Key() == j.Key() && rapid.IntRange(0, 5).Draw(h.t, "touch") == 0 {
				u := *a
				u.Job, u.Group = j, j.Groups[0]
				g.Updates = append(g.Updates, &u)
				break
			}
			if a.Job.Key() == j.Key() && rapid.IntRange(0, 5).Draw(h.t, "stop") == 0 {
				g.Stops = append(g.Stops, model.Stop{AllocID: a.ID, Reason: "no longer wanted", Lost: rapid.Bool().Draw(h.t, "lost")})
				break
			}
		}
		if rapid.IntRange(0, 3).Draw(h.t, "claim") == 0 {
			c := &model.Claim{ID: h.pick("claim", 3), Claimant: j.Key(), NodeID: h.pick("node", 5), Expiry: h.time + 5}
			c.Vec[model.CPU] = 5
			g.Claims = append(g.Claims, c)
		}
	}
	b := &apply.Batch{Now: h.time, Plans: []apply.BatchPlan{{Plan: plan, Groups: []int{0, 2}}}}
	if rapid.IntRange(0, 9).Draw(h.t, "ineligible") == 0 {
		b.Ineligible = []string{h.pick("node", 4)}
	}
	return b
}

// place has a plan of a version of a job that there is or was.
func (h *history) place() Command {
	jobs := slices.Collect(h.snap.Jobs())
	if len(jobs) == 0 {
		return &DeleteNodes{IDs: []string{h.pick("node", 4)}}
	}
	j := rapid.SampledFrom(jobs).Draw(h.t, "job")
	j = rapid.SampledFrom(h.snap.JobVersions(j.Key())).Draw(h.t, "version")
	return &ApplyPlans{h.plan(j)}
}

// confirm registers a job with a plan of it.
func (h *history) confirm() Command {
	j := h.job(h.key())
	b := h.plan(j)
	b.Plans[0].Groups = []int{0}
	return &RegisterJob{Job: j, Batch: b}
}

func (h *history) change() Command {
	c := &ChangeNodes{IDs: []string{h.pick("node", 4), h.pick("node", 4)}}
	switch rapid.IntRange(0, 3).Draw(h.t, "what") {
	case 3:
		c.Change.Taint = []model.Taint{{Key: h.pick("key", 2), Value: h.pick("value", 2), Effect: rapid.SampledFrom(model.TaintEffects).Draw(h.t, "effect")}}
		c.Change.Untaint = []model.Taint{{Key: h.pick("key", 2), Effect: rapid.SampledFrom(model.TaintEffects).Draw(h.t, "effect")}}
	case 0:
		c.Change.Status = new(model.NodeStatus(rapid.IntRange(0, 1).Draw(h.t, "status")))
	case 1:
		c.Change.Drain = new(rapid.Bool().Draw(h.t, "drain"))
	default:
		c.Change.Ineligible = new(rapid.Bool().Draw(h.t, "ineligible"))
	}
	return c
}

func (h *history) someAllocs() (ids []string) {
	for a := range h.snap.Allocs() {
		if rapid.IntRange(0, 3).Draw(h.t, "some") == 0 {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

func (h *history) update() Command {
	c := &UpdateAllocs{}
	for _, id := range h.someAllocs() {
		c.Updates = append(c.Updates, apply.ClientUpdate{
			AllocID: id, Status: model.ClientStatus(rapid.IntRange(0, 4).Draw(h.t, "status")), Started: true, StartTime: h.time,
			Text: h.pick("text", 3),
		})
	}
	return c
}

func (h *history) stop() Command {
	c := &StopJob{Key: h.key(), Purge: rapid.Bool().Draw(h.t, "purge")}
	c.Eval = h.eval(c.Key)
	return c
}

func (h *history) stopAllocs() Command { return &StopAllocs{IDs: h.someAllocs(), Reason: "by hand"} }

func (h *history) evals() Command {
	c := &WriteEvals{}
	for e := range h.snap.Evals() {
		if rapid.IntRange(0, 3).Draw(h.t, "some") == 0 {
			again := *e
			again.Status = model.EvalStatus(rapid.IntRange(0, int(model.EvalCancelled)).Draw(h.t, "status"))
			c.Evals = append(c.Evals, &again)
		}
	}
	c.Evals = append(c.Evals, h.eval(h.key()))
	return c
}

func (h *history) collect() Command {
	c := &Collect{Allocs: h.someAllocs(), Jobs: []model.JobKey{h.key()}, Nodes: []string{h.pick("node", 4)}}
	for e := range h.snap.Evals() {
		c.Evals = append(c.Evals, e.ID)
	}
	for _, v := range h.snap.PolicyVersions() {
		c.Policies = append(c.Policies, v.ID)
	}
	return c
}

func (h *history) policy() Command {
	n := rapid.IntRange(0, 2).Draw(h.t, "version")
	module := []byte(fmt.Sprint("module", n%2))
	version := &model.PolicyVersion{
		ID: fmt.Sprint("sha256:", n), Name: fmt.Sprint("policy-", n/2), Kind: model.PolicyWasm, Digest: digestOf(module),
		Size: int64(len(module)),
	}
	switch rapid.IntRange(0, 6).Draw(h.t, "what") {
	case 0:
		half := len(module) / 2
		switch rapid.IntRange(0, 2).Draw(h.t, "half") {
		case 0:
			return &PutChunk{Digest: version.Digest, Data: module[:half]}
		case 1:
			return &PutChunk{Digest: version.Digest, Offset: int64(half), Data: module[half:]}
		}
		return &PutChunk{Digest: version.Digest, Data: module}
	case 1, 4:
		return &LoadPolicy{version}
	case 2:
		return &CheckPolicy{Version: version.ID, Server: h.pick("server", 3), Check: model.PolicyCheck{OK: h.pick("ok", 4) != "ok-0", Time: h.time}}
	default:
		return &ChangePolicy{
			Name: version.Name, Op: PolicyOp(rapid.IntRange(1, int(OpReset)).Draw(h.t, "op")), Version: version.ID,
			Reason: "a reason", Until: rapid.Int64Range(0, 1).Draw(h.t, "until"), Force: rapid.Bool().Draw(h.t, "force"),
		}
	}
}

func (h *history) operator() Command {
	switch rapid.IntRange(0, 8).Draw(h.t, "what") {
	case 0:
		return &Bootstrap{ClusterID: h.pick("cluster", 2), Version: 1}
	case 1:
		return &SetVersion{Version: rapid.Uint32Range(0, Newest).Draw(h.t, "version")}
	case 2:
		return &SetConfig{Config: &model.SchedulerConfig{Policy: h.pick("policy", 2), PriorityDelta: new(int32(5)), Shedding: new(false)}}
	case 3:
		return &UpsertPriorityClass{Class: &model.PriorityClass{Name: h.pick("class", 3), GlobalDefault: rapid.Bool().Draw(h.t, "default")}}
	case 4:
		return &DeletePriorityClass{Name: h.pick("class", 3)}
	case 5:
		return &PutToken{Token: &model.Token{Accessor: h.pick("token", 3), Hash: [32]byte{rapid.Byte().Draw(h.t, "hash")}, Roles: []string{"r"}}, Bootstrap: rapid.Bool().Draw(h.t, "first")}
	case 6:
		return &DeleteToken{Accessor: h.pick("token", 3)}
	case 7:
		return &UpsertBudget{&model.Budget{Namespace: h.pick("ns", 2), Name: h.pick("budget", 2), Labels: map[string]string{"app": "app-0"}, MinAvailable: &model.Bound{Number: 50, Percent: true}}}
	default:
		return &DeleteBudget{model.BudgetKey{Namespace: h.pick("ns", 2), Name: h.pick("budget", 2)}}
	}
}
