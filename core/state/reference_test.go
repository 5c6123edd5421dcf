package state_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
)

// reference is the state as plain maps without derived data: the expected external
// behavior of the store.
type reference struct {
	index     uint64
	names     []string // dimensions
	nodes     map[string]*model.Node
	jobs      map[model.JobKey]*model.Job
	dirty     map[model.JobKey]uint64
	allocs    map[string]*model.Allocation
	jobAllocs map[model.JobKey][]string // order of insertion
	evals     map[string]*model.Evaluation
	claims    map[string]*model.Claim
	classes   map[string]*model.PriorityClass
	spaces    map[string]*model.Namespace
	config    *model.SchedulerConfig

	versions map[model.JobKey][]*model.Job // the job itself first
	policies map[string]*model.PolicyVersion
	states   map[string]*model.PolicyState
	trials   map[string]*model.PolicyTrial
	uploads  map[string]*Upload
	tokens   map[string]*model.Token
	meta     Meta
	applied  []string // idempotency keys, the oldest first
	budgets  map[model.BudgetKey]*model.Budget
}

func newReference() *reference {
	return &reference{
		names: model.NewDimensions().Names(),
		nodes: map[string]*model.Node{}, jobs: map[model.JobKey]*model.Job{}, dirty: map[model.JobKey]uint64{},
		allocs: map[string]*model.Allocation{}, jobAllocs: map[model.JobKey][]string{},
		evals: map[string]*model.Evaluation{}, claims: map[string]*model.Claim{},
		classes:  map[string]*model.PriorityClass{},
		spaces:   map[string]*model.Namespace{},
		versions: map[model.JobKey][]*model.Job{}, policies: map[string]*model.PolicyVersion{},
		states: map[string]*model.PolicyState{}, trials: map[string]*model.PolicyTrial{}, uploads: map[string]*Upload{}, tokens: map[string]*model.Token{},
		budgets: map[model.BudgetKey]*model.Budget{},
	}
}

func (r *reference) clone() *reference {
	c := *r
	c.names = slices.Clone(r.names)
	c.nodes, c.jobs, c.dirty = maps.Clone(r.nodes), maps.Clone(r.jobs), maps.Clone(r.dirty)
	c.allocs, c.jobAllocs = maps.Clone(r.allocs), maps.Clone(r.jobAllocs)
	for k, ids := range c.jobAllocs {
		c.jobAllocs[k] = slices.Clone(ids)
	}
	c.evals, c.claims, c.classes = maps.Clone(r.evals), maps.Clone(r.claims), maps.Clone(r.classes)
	c.versions, c.policies, c.states, c.trials = maps.Clone(r.versions), maps.Clone(r.policies), maps.Clone(r.states), maps.Clone(r.trials)
	c.budgets, c.spaces = maps.Clone(r.budgets), maps.Clone(r.spaces)
	c.uploads, c.tokens, c.applied = maps.Clone(r.uploads), maps.Clone(r.tokens), slices.Clone(r.applied)
	return &c
}

// grow adds resource names in the order of the state: known names first, new ones
// ascending.
func (r *reference) grow(rs ...model.Resources) {
	all := map[string]bool{}
	for _, res := range rs {
		for name := range res {
			all[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(r.names, name) {
			r.names = append(r.names, name)
		}
	}
}

// forget drops a key that nothing belongs to any more.
func (r *reference) forget(key model.JobKey) {
	if r.jobs[key] != nil || len(r.jobAllocs[key]) > 0 {
		return
	}
	for _, e := range r.evals {
		if e.JobKey() == key {
			return
		}
	}
	delete(r.dirty, key)
	delete(r.jobAllocs, key)
}

func (r *reference) known(key model.JobKey) bool {
	_, ok := r.dirty[key]
	return ok
}

// know records that something belongs to a key.
func (r *reference) know(key model.JobKey) {
	if !r.known(key) {
		r.dirty[key] = 0
	}
}

func (r *reference) onNode(id string, want func(*model.Allocation) bool) []*model.Allocation {
	var as []*model.Allocation
	for _, a := range r.allocs {
		if a.NodeID == id && want(a) {
			as = append(as, a)
		}
	}
	slices.SortFunc(as, func(a, b *model.Allocation) int { return strings.Compare(a.ID, b.ID) })
	return as
}

// vector lays resources out by the reference's own dimensions.
func (r *reference) vector(res model.Resources) (v model.Vector) {
	for i, name := range r.names {
		v[i] = res[name]
	}
	return v
}

// room returns the free capacity of a node, computed from specifications alone.
func (r *reference) room(id string, asker model.JobKey, priority int32, now int64) (model.Vector, []uint16, []int32) {
	var free model.Vector
	var ports []uint16
	var devices []int32
	n := r.nodes[id]
	if n != nil {
		free = r.vector(n.Capacity)
		reserved := r.vector(n.Reserved)
		free.Sub(&reserved)
		ports = slices.Clone(n.Ports)
		for _, d := range n.Devices {
			devices = append(devices, d.Count)
		}
	}
	takeDevice := func(uses []model.DeviceUse) {
		for _, u := range uses {
			for i := range devices {
				if n.Devices[i].ID == u.ID {
					devices[i] -= u.Count
				}
			}
		}
	}
	for _, a := range r.onNode(id, (*model.Allocation).Live) {
		ask := r.vector(a.Group.Resources)
		free.Sub(&ask)
		ports = append(ports, a.Group.Ports...)
		takeDevice(a.Devices)
	}
	for _, c := range r.claims {
		if c.NodeID == id && c.Claimant != asker && c.Priority >= priority && now < c.Expiry {
			free.Sub(&c.Vec)
			ports = append(ports, c.Ports...)
			takeDevice(c.Devices)
		}
	}
	slices.Sort(ports)
	return free, ports, devices
}

// sorted returns the values of a map in the order of a comparison.
func sorted[K comparable, V any](m map[K]V, compare func(a, b V) int) []V {
	return slices.SortedFunc(maps.Values(m), compare)
}

// compareState compares all reads of the view.
func compareState(t *rapid.T, v *View, r *reference) {
	if v.Index() != r.index {
		t.Fatalf("index %d, want %d", v.Index(), r.index)
	}
	if got := v.Dims().Names(); !slices.Equal(got, r.names) {
		t.Fatalf("dimensions %v, want %v", got, r.names)
	}
	if r.config != nil && v.Config() != r.config {
		t.Fatal("another configuration")
	}
	compareJobs(t, v, r)
	compareAside(t, v, r)
	compareLabels(t, v, r)
	compareBudgets(t, v, r)
	compareNodes(t, v, r)
	evals := sorted(r.evals, func(a, b *model.Evaluation) int { return strings.Compare(a.ID, b.ID) })
	if !slices.Equal(slices.Collect(v.Evals()), evals) {
		t.Fatal("evaluations differ")
	}
	claims := sorted(r.claims, func(a, b *model.Claim) int { return strings.Compare(a.ID, b.ID) })
	if !slices.Equal(slices.Collect(v.Claims()), claims) {
		t.Fatal("claims differ")
	}
	classes := sorted(r.classes, func(a, b *model.PriorityClass) int { return strings.Compare(a.Name, b.Name) })
	if !slices.Equal(v.PriorityClasses(), classes) {
		t.Fatal("priority classes differ")
	}
	spaces := sorted(r.spaces, func(a, b *model.Namespace) int { return strings.Compare(a.Name, b.Name) })
	if !slices.Equal(v.Namespaces(), spaces) {
		t.Fatal("namespaces differ")
	}
	for _, name := range []string{"a", "b", "c"} {
		want := 1.0
		if n := r.spaces[name]; n != nil {
			want = n.Weight
		}
		if got := v.NamespaceWeight(name); got != want {
			t.Fatalf("namespace %s has weight %v, want %v", name, got, want)
		}
	}
	for _, id := range ids("alloc", poolSize) {
		if v.Alloc(id) != r.allocs[id] {
			t.Fatalf("allocation %s is %v, want %v", id, v.Alloc(id), r.allocs[id])
		}
		if a := r.allocs[id]; a != nil && a.Group.Job != a.Job {
			t.Fatalf("group of %s was taken over by another version of its job", id)
		}
	}
	for _, id := range ids("eval", poolSize) {
		if v.Eval(id) != r.evals[id] {
			t.Fatalf("evaluation %s differs", id)
		}
	}
}

func compareJobs(t *rapid.T, v *View, r *reference) {
	jobs := sorted(r.jobs, func(a, b *model.Job) int { return a.Key().Compare(b.Key()) })
	if !slices.Equal(slices.Collect(v.Jobs()), jobs) {
		t.Fatal("jobs differ")
	}
	prefixed := slices.DeleteFunc(slices.Clone(jobs), func(j *model.Job) bool {
		return j.Namespace != "default" || !strings.HasPrefix(j.ID, "job-1")
	})
	if !slices.Equal(slices.Collect(v.JobsPrefix("default", "job-1")), prefixed) {
		t.Fatal("jobs of a prefix differ")
	}
	for _, key := range jobKeys() {
		if v.Job(key) != r.jobs[key] {
			t.Fatalf("job %s differs", key)
		}
		if !slices.Equal(v.JobVersions(key), r.versions[key]) {
			t.Fatalf("job %s has %d versions, want %d, or others", key, len(v.JobVersions(key)), len(r.versions[key]))
		}
		if v.DirtyIndex(key) != r.dirty[key] {
			t.Fatalf("job %s is dirty at %d, want %d", key, v.DirtyIndex(key), r.dirty[key])
		}
		var got []string
		for _, a := range v.AppendJobAllocs(nil, key) {
			got = append(got, a.ID)
		}
		if !slices.Equal(got, r.jobAllocs[key]) {
			t.Fatalf("job %s has allocations %v, want %v", key, got, r.jobAllocs[key])
		}
	}
}

// compareLabels compares every set of two labels. The results may contain too many
// jobs, but none without a row, and must contain every job that matches.
func compareLabels(t *rapid.T, v *View, r *reference) {
	for i := range len(labelValues) * len(labelValues) {
		labels := map[string]string{
			labelKeys[0]: labelValues[i%len(labelValues)], labelKeys[1]: labelValues[i/len(labelValues)],
		}
		have := &model.LabelTerm{Labels: labels}
		labelled, separating := slices.Collect(v.JobsMatching(labels)), slices.Collect(v.JobsSeparatedFrom(labels))
		for _, key := range slices.Concat(labelled, separating) {
			if !r.known(key) {
				t.Fatalf("labels %v lead to %s, of which nothing is left", labels, key)
			}
		}
		for _, a := range r.allocs {
			if have.Matches(a.Group.Labels) && !slices.Contains(labelled, a.Job.Key()) {
				t.Fatalf("%s carries %v and is not found", a.Job.Key(), labels)
			}
			for k := range a.Group.Separate {
				term := &a.Group.Separate[k]
				if len(term.Labels) > 0 && term.Matches(labels) && !slices.Contains(separating, a.Job.Key()) {
					t.Fatalf("%s keeps apart from %v and is not found", a.Job.Key(), labels)
				}
			}
		}
	}
}

func compareNodes(t *rapid.T, v *View, r *reference) {
	nodes := sorted(r.nodes, func(a, b *model.Node) int { return strings.Compare(a.ID, b.ID) })
	if !slices.Equal(slices.Collect(v.Nodes()), nodes) || v.NodeCount() != len(nodes) {
		t.Fatal("nodes differ")
	}
	asker, now := jobKeys()[0], int64(50)
	var ask model.Ask
	ask.Vec[model.CPU], ask.Vec[model.Memory], ask.Dims = 40, 60, []uint8{model.CPU, model.Memory}
	for _, id := range ids("node", nodePool) {
		all := r.onNode(id, func(a *model.Allocation) bool { return !a.Client.Terminal() })
		if !slices.Equal(v.AppendNodeAllocs(nil, id), all) {
			t.Fatalf("allocations of %s differ", id)
		}
		pos, ok := v.Position(id)
		if ok != (r.nodes[id] != nil) || v.Node(id) != r.nodes[id] {
			t.Fatalf("node %s is there: %t", id, ok)
		}
		if !ok {
			continue
		}
		c, i := v.Chunk(int(pos/ChunkSize)), int(pos%ChunkSize)
		free, ports, devices := r.room(id, asker, -1<<31, 1<<62)
		compareRoom(t, c.FreeCapacity(i), free, ports, devices)
		fits := model.Fits(model.NewFreeCapacity(&free, nil, nil), &ask, nil).Kind == model.ShortageNone && r.nodes[id].IsEligible()
		if c.Fitting(&ask)>>i&1 == 1 != fits {
			t.Fatalf("node %s fits %t, want %t", id, !fits, fits)
		}
		for _, priority := range []int32{0, 50, 100} {
			scratch := model.Vector{model.MaxDimensions - 1: 7}
			free, ports, devices := r.room(id, asker, priority, now)
			compareRoom(t, v.FreeCapacityFor(pos, asker, priority, now, &scratch), free, ports, devices)
		}
		rows := r.onNode(id, (*model.Allocation).Live)
		slices.SortFunc(rows, func(a, b *model.Allocation) int {
			return cmp.Or(cmp.Compare(a.Job.Priority, b.Job.Priority), strings.Compare(a.ID, b.ID))
		})
		got := c.Rows(i)
		for k := range max(len(rows), len(got)) {
			if len(rows) != len(got) || got[k] != RowOf(rows[k]) {
				t.Fatalf("rows of %s differ", id)
			}
		}
	}
}

func compareRoom(t *rapid.T, room model.FreeCapacity, free model.Vector, ports []uint16, devices []int32) {
	for d := range 16 {
		if at := d * room.Stride; at < len(room.Free) && room.Free[at] != free[d] {
			t.Fatalf("dimension %d: %d free, want %d", d, room.Free[at], free[d])
		}
	}
	if !slices.Equal(room.Ports, ports) || !slices.Equal(room.Devices, devices) {
		t.Fatalf("ports %v devices %v, want %v and %v", room.Ports, room.Devices, ports, devices)
	}
}
