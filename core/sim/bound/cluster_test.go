package bound_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/bound"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// cluster draws a scenario of at most 4 nodes in which the job "new" is submitted.
type cluster struct {
	*rand.Rand
	file *scenario.File
	free []scenario.Quantities // by node, of resources and gpus
}

func newCluster(seed uint64) *cluster {
	c := &cluster{Rand: rand.New(rand.NewPCG(seed, 7)), file: &scenario.File{Version: 1, Name: "small", Seed: seed}}
	c.file.Scheduler.PriorityDelta = new(int32(1))
	devices := c.IntN(3) == 0
	for i := range 1 + c.IntN(4) {
		n := scenario.Node{
			ID: fmt.Sprint("n", i), Capacity: scenario.Quantities{"cpu": int64(4 + c.IntN(7)), "memory": int64(4 + c.IntN(7))},
			Attributes: map[string]string{"rack": fmt.Sprint("r", c.IntN(2)), "disk": []string{"ssd", "hdd"}[c.IntN(2)]},
		}
		if devices {
			n.Devices = []scenario.Device{{ID: "acme/gpu/a", Count: int32(1 + c.IntN(3))}, {ID: "acme/gpu/b", Count: int32(1 + c.IntN(3))}}
		}
		c.file.Nodes = append(c.file.Nodes, n)
		c.free = append(c.free, scenario.Quantities{"cpu": n.Capacity["cpu"], "memory": n.Capacity["memory"]})
	}
	for i := range 2 + c.IntN(4) {
		c.runningJob(i, devices)
	}
	if c.IntN(3) == 0 {
		c.file.Budgets = []scenario.Budget{{
			Name: "b", Labels: map[string]string{"app": "x"}, MinAvailable: &scenario.Bound{Number: int32(c.IntN(3))}, Enforcement: "strict",
		}}
	}
	c.newJob(devices)
	return c
}

// runningJob adds a job with the instances that fit.
func (c *cluster) runningJob(i int, devices bool) {
	j := scenario.Job{ID: fmt.Sprint("old", i), Type: "batch", Priority: new(int32(10 * (1 + c.IntN(9))))}
	if c.IntN(4) == 0 {
		j.DisruptionMode = "all"
	}
	if c.IntN(8) == 0 {
		j.Preemptible = new(false)
	}
	if c.IntN(8) == 0 {
		j.Toleration = &scenario.PreemptionToleration{MinPreemptorPriority: new(int32(60))}
	}
	if c.IntN(8) == 0 || j.DisruptionMode == "all" && c.IntN(2) == 0 {
		j.Toleration = &scenario.PreemptionToleration{MinRuntime: scenario.Duration(40 * time.Minute)}
	}
	g := scenario.Group{
		Name: "g", Resources: scenario.Quantities{"cpu": int64(1 + c.IntN(4)), "memory": int64(c.IntN(5))},
		Labels: map[string]string{"app": []string{"x", "y"}[c.IntN(2)]},
	}
	if c.IntN(4) == 0 {
		g.Checkpoint = scenario.Duration(time.Duration(1+c.IntN(20)) * time.Minute)
	}
	if c.IntN(4) == 0 {
		g.Ports = []uint16{80}
	}
	if devices && c.IntN(2) == 0 {
		g.Devices = []scenario.DeviceRequest{{ID: []string{"gpu", "acme/gpu/a", "acme/gpu/b"}[c.IntN(3)], Count: new(int32(1))}}
	}
	count := 0
	for range 1 + c.IntN(4) {
		node := c.IntN(len(c.file.Nodes))
		if c.reserve(node, &g) {
			c.file.Running = append(c.file.Running, scenario.Running{
				ID: fmt.Sprintf("a%d-%d", i, count), Job: j.ID, Group: "g", Node: c.file.Nodes[node].ID,
				StartedAt: -scenario.Duration(time.Duration(c.IntN(100)) * time.Minute),
			})
			count++
		}
	}
	g.Count = &count
	j.Groups = []scenario.Group{g}
	c.file.Jobs = append(c.file.Jobs, j)
}

// reserve reports whether an instance fits on a node, and reserves its capacity. Devices
// and ports are checked by counting conservatively: one such instance per node.
func (c *cluster) reserve(node int, g *scenario.Group) bool {
	free := c.free[node]
	special := int64(len(g.Devices) + len(g.Ports))
	if free["cpu"] < g.Resources["cpu"] || free["memory"] < g.Resources["memory"] || special > 0 && free["special"] > 0 {
		return false
	}
	free["cpu"] -= g.Resources["cpu"]
	free["memory"] -= g.Resources["memory"]
	free["special"] += special
	return true
}

// newJob adds the job that is submitted.
func (c *cluster) newJob(devices bool) {
	j := scenario.Job{ID: "new", Type: "batch", Priority: new(int32(10 * (4 + c.IntN(7)))), AllAtOnce: c.IntN(2) == 0}
	rack, apart := c.IntN(4) == 0, c.IntN(4)
	for i := range 1 + c.IntN(2) {
		count := 1 + c.IntN(2)
		if i == 0 && c.IntN(3) == 0 {
			count = 3
		}
		g := scenario.Group{
			Name: fmt.Sprint("g", i), Count: &count, Resources: scenario.Quantities{"cpu": int64(1 + c.IntN(6)), "memory": int64(c.IntN(5))},
			Labels: map[string]string{"app": "new"},
		}
		if rack {
			g.Colocate = []scenario.LabelTerm{{Labels: map[string]string{"app": "new"}, TopologyKey: "rack"}}
		}
		switch {
		case apart == 0:
			g.Constraints = append(g.Constraints, scenario.Constraint{Operator: "distinct_hosts"})
		case apart == 1 && i == 0:
			g.Separate = []scenario.LabelTerm{{Labels: map[string]string{"app": "x"}, TopologyKey: "node"}}
		}
		if c.IntN(4) == 0 {
			g.Constraints = append(g.Constraints, scenario.Constraint{Attribute: "disk", Operator: "=", Value: "ssd"})
		}
		if c.IntN(4) == 0 {
			g.Ports = []uint16{80}
		}
		if devices && c.IntN(2) == 0 {
			g.Devices = []scenario.DeviceRequest{{ID: []string{"gpu", "acme/gpu/a"}[c.IntN(2)], Count: new(int32(1 + c.IntN(2)))}}
		}
		j.Groups = append(j.Groups, g)
	}
	c.file.Jobs = append(c.file.Jobs, j)
	c.file.Events = []scenario.Event{{Submit: "new"}}
}

// A trial is a brute-force search over one cluster. It shares no code with the bound.
type trial struct {
	file    *scenario.File
	job     *scenario.Job
	devices map[string][]model.DeviceUse // by running allocation
	gone    map[string]bool
	groups  []int // of the instances to place
	nodes   []int // assignment
	choices []string
}

func (t *trial) jobOf(id string) *scenario.Job {
	return &t.file.Jobs[slices.IndexFunc(t.file.Jobs, func(j scenario.Job) bool { return j.ID == id })]
}

// minimum returns the least cost of placing counts instances; negative: impossible.
func (t *trial) minimum(counts []int) int64 {
	t.groups = nil
	for g, n := range counts {
		for range n {
			t.groups = append(t.groups, g)
		}
	}
	var candidates []string
	for _, r := range t.file.Running {
		if t.evictable(r) {
			candidates = append(candidates, r.ID)
		}
	}
	best := int64(-1)
	for set := range 1 << len(candidates) {
		t.gone = map[string]bool{}
		for i, id := range candidates {
			if set>>i&1 == 1 {
				t.gone[id] = true
			}
		}
		if cost := t.cost(); t.allowed() && (best < 0 || cost < best) && t.place(0) {
			best = cost
		}
	}
	return best
}

// evictable ignores cohorts.
func (t *trial) evictable(r scenario.Running) bool {
	j := t.jobOf(r.Job)
	if *j.Priority >= *t.job.Priority || j.Preemptible != nil && !*j.Preemptible {
		return false
	}
	o := j.Toleration
	return o == nil || (o.MinPreemptorPriority == nil || *t.job.Priority >= *o.MinPreemptorPriority) && -r.StartedAt >= o.MinRuntime
}

// allowed checks cohorts and the strict budget.
func (t *trial) allowed() bool {
	members, lost := map[string]int{}, map[string]int{}
	available, evicted := 0, 0
	for _, r := range t.file.Running {
		j := t.jobOf(r.Job)
		members[r.Job]++
		if t.gone[r.ID] {
			lost[r.Job]++
		}
		if j.Groups[0].Labels["app"] == "x" {
			available++
			if t.gone[r.ID] {
				evicted++
			}
		}
	}
	for id, n := range lost {
		if t.jobOf(id).DisruptionMode == "all" && n < members[id] {
			return false
		}
	}
	return len(t.file.Budgets) == 0 || evicted == 0 || evicted <= available-int(t.file.Budgets[0].MinAvailable.Number)
}

// cost returns the lost work of the victims as shares of the cluster.
func (t *trial) cost() (cost int64) {
	for _, r := range t.file.Running {
		if !t.gone[r.ID] {
			continue
		}
		g := t.jobOf(r.Job).Groups[0]
		lost := -int64(r.StartedAt)
		if g.Checkpoint > 0 {
			lost %= int64(g.Checkpoint)
		}
		for name, amount := range g.Resources {
			whole := int64(0)
			for _, n := range t.file.Nodes {
				whole += n.Capacity[name]
			}
			cost += lost * amount / whole
		}
		for _, u := range t.devices[r.ID] {
			whole := int64(0)
			for _, n := range t.file.Nodes {
				for _, d := range n.Devices {
					whole += int64(d.Count)
				}
			}
			cost += lost * int64(u.Count) / whole
		}
	}
	return cost
}

// place tries all nodes and device groups for the instances from i on.
func (t *trial) place(i int) bool {
	if i == len(t.groups) {
		return true
	}
	for n := range t.file.Nodes {
		for _, device := range t.deviceChoices(n, i) {
			t.nodes, t.choices = append(t.nodes[:i], n), append(t.choices[:i], device)
			if t.holds(i+1) && t.place(i+1) {
				return true
			}
		}
	}
	return false
}

func (t *trial) deviceChoices(node, i int) (list []string) {
	g := &t.job.Groups[t.groups[i]]
	if len(g.Devices) == 0 {
		return []string{""}
	}
	for _, d := range t.file.Nodes[node].Devices {
		if g.Devices[0].ID == "gpu" || g.Devices[0].ID == d.ID {
			list = append(list, d.ID)
		}
	}
	return list
}

// holds checks every rule for the first placed instances.
func (t *trial) holds(placed int) bool {
	for n := range t.file.Nodes {
		if !t.nodeHolds(n, placed) {
			return false
		}
	}
	racks := map[string]bool{}
	for i := range placed {
		racks[t.file.Nodes[t.nodes[i]].Attributes["rack"]] = true
	}
	return len(t.job.Groups[0].Colocate) == 0 || len(racks) <= 1
}

func (t *trial) nodeHolds(n, placed int) bool {
	node := &t.file.Nodes[n]
	use, asked := map[string]int64{}, map[string]bool{}
	perGroup := map[int]int{}
	for i := range placed {
		if t.nodes[i] != n {
			continue
		}
		g := &t.job.Groups[t.groups[i]]
		perGroup[t.groups[i]]++
		for name, amount := range g.Resources {
			use[name] += amount
			asked[name] = asked[name] || amount > 0
		}
		if len(g.Ports) > 0 {
			use["port"]++
			asked["port"] = true
		}
		if t.choices[i] != "" {
			use[t.choices[i]] += int64(*g.Devices[0].Count)
			asked[t.choices[i]] = true
		}
		for _, c := range g.Constraints {
			if c.Operator == "distinct_hosts" && perGroup[t.groups[i]] > 1 || c.Attribute == "disk" && node.Attributes["disk"] != c.Value {
				return false
			}
		}
		for _, r := range t.file.Running {
			if len(g.Separate) > 0 && r.Node == node.ID && !t.gone[r.ID] && t.jobOf(r.Job).Groups[0].Labels["app"] == "x" {
				return false
			}
		}
	}
	for _, r := range t.file.Running {
		if r.Node != node.ID || t.gone[r.ID] {
			continue
		}
		g := t.jobOf(r.Job).Groups[0]
		for name, amount := range g.Resources {
			use[name] += amount
		}
		use["port"] += int64(len(g.Ports))
		for _, u := range t.devices[r.ID] {
			use[u.ID] += int64(u.Count)
		}
	}
	capacity := map[string]int64{"cpu": node.Capacity["cpu"], "memory": node.Capacity["memory"], "port": 1}
	for _, d := range node.Devices {
		capacity[d.ID] = int64(d.Count)
	}
	for name := range asked {
		if asked[name] && use[name] > capacity[name] {
			return false
		}
	}
	return true
}

// The bound equals brute force on clusters of at most 4 nodes, over all victims, nodes,
// racks and device groups, under cohorts and strict budgets.
func TestBound_EqualsBruteForceOnClusters(t *testing.T) {
	t.Parallel()
	possible, evicting, exact, total := 0, 0, 0, 0
	for seed := range uint64(soak.Count(400, 10_000)) {
		c, first := newCluster(seed), true
		_, err := sim.Play(context.Background(), c.file, sim.Options{Policy: "default", Resolve: resolve, Evaluated: func(e sim.Evaluated) {
			if e.Report.Eval.JobID != "new" || !first {
				return
			}
			first = false
			brute := &trial{file: c.file, devices: map[string][]model.DeviceUse{}}
			brute.job = brute.jobOf("new")
			for _, r := range c.file.Running {
				brute.devices[r.ID] = e.Before.Alloc(r.ID).Devices
			}
			var counts []int
			for _, g := range brute.job.Groups {
				counts = append(counts, *g.Count)
			}
			total++
			want := brute.minimum(counts)
			got, dropped := bound.Bound(e, counts, bound.DefaultLimit)
			switch {
			case len(dropped) > 0: // a bound, not an optimum
				if want >= 0 && got.Lower > want {
					t.Errorf("seed %d: bound %d without %v, brute force %d", seed, got.Lower, dropped, want)
				}
				return
			case want < 0 && (got.Lower != bound.Infinite || !got.Exact), want >= 0 && (got.Lower != want || !got.Exact):
				t.Errorf("seed %d: bound %d (exact %v), brute force %d", seed, got.Lower, got.Exact, want)
				return
			}
			exact++
			if want >= 0 {
				possible++
			}
			if want > 0 {
				evicting++
			}
		}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d clusters: %d exact, %d possible, %d with lost work", total, exact, possible, evicting)
	if exact < total || possible < total/4 || evicting < total/10 {
		t.Errorf("%d clusters: %d exact, %d possible, %d with lost work: too few", total, exact, possible, evicting)
	}
}
