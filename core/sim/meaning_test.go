package sim_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// decode parses the text of a scenario and adds its version and name.
func decode(t testing.TB, text string) *scenario.File {
	t.Helper()
	f, err := scenario.Decode("test.yaml", strings.NewReader("version: 1\nname: test\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func play(t testing.TB, f *scenario.File, o sim.Options) *sim.Run {
	t.Helper()
	o.Resolve = resolve
	run, err := sim.Play(t.Context(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// transcript formats a result: placements with their victims, evictions with their
// lost work, unplaced and running instances.
func transcript(r *sim.Result) string {
	var lines []string
	for _, p := range r.Placements {
		line := fmt.Sprintf("%s %s@%s", p.At, p.Alloc, p.Node)
		if len(p.Preempted) > 0 {
			line += " over " + strings.Join(p.Preempted, " ")
		}
		lines = append(lines, line)
	}
	for _, e := range r.Evicted {
		lines = append(lines, fmt.Sprintf("%s lost %s", e.Alloc, e.LostWork))
	}
	for _, u := range r.Unplaced {
		lines = append(lines, fmt.Sprintf("%s.%s lacks %d", u.Job, u.Group, u.Count))
	}
	return strings.Join(append(lines, "runs "+strings.Join(r.Running, " ")), "\n")
}

const oneNode = `
nodes: [{id: n1, capacity: {cpu: 10}}]
`

// Each case covers one rule of the scenario format.
func TestSemantics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, scenario, want string }{
		{"allocations complete before the events of an instant", oneNode + `
jobs:
  - {id: first, type: batch, priority: 10, groups: [{name: g, resources: {cpu: 10}, duration: 5s}]}
  - {id: second, type: batch, priority: 90, groups: [{name: g, resources: {cpu: 10}, duration: 5s}]}
events: [{at: 0s, submit: first}, {at: 5s, submit: second}]
`, `0s first.g[0]@n1
5s second.g[0]@n1
runs `},
		{"evaluations are processed by priority, then by submission", oneNode + `
jobs:
  - {id: a, priority: 10, groups: [{name: g, resources: {cpu: 4}}]}
  - {id: b, priority: 10, groups: [{name: g, resources: {cpu: 4}}]}
  - {id: c, priority: 50, groups: [{name: g, resources: {cpu: 4}}]}
events: [{at: 0s, submit: b}, {at: 0s, submit: a}, {at: 0s, submit: c}]
`, `0s c.g[0]@n1
0s b.g[0]@n1
a.g lacks 1
runs b.g[0] c.g[0]`},
		{"all events of an instant precede its evaluations", oneNode + `
jobs: [{id: a, groups: [{name: g, resources: {cpu: 4}}]}]
events: [{at: 1s, submit: a}, {at: 1s, stop: a}]
`, `runs `},
		{"until ends the run after its own instant", oneNode + `
jobs:
  - {id: a, type: batch, groups: [{name: g, resources: {cpu: 4}, duration: 10s}]}
  - {id: b, type: batch, groups: [{name: g, resources: {cpu: 4}, duration: 10s}]}
  - {id: c, type: batch, groups: [{name: g, resources: {cpu: 4}, duration: 10s}]}
events: [{at: 0s, submit: a}, {at: 10s, submit: b}, {at: 11s, submit: c}]
until: 10s
`, `0s a.g[0]@n1
10s b.g[0]@n1
runs b.g[0]`},
		{"running entries count as instances, with the lowest indexes in file order", oneNode + `
jobs: [{id: a, groups: [{name: g, count: 3, resources: {cpu: 2}}]}]
running: [{id: z, job: a, group: g, node: n1}, {id: y, job: a, group: g, node: n1}]
events: [{at: 0s, submit: a}]
`, `0s a.g[2]@n1
runs a.g[2] y z`},
		{"without checkpoints all work is lost; a victim is rescheduled at the same instant, possibly on another node", `
nodes: [{id: n1, capacity: {cpu: 10}, attributes: {k: a}}, {id: n2, capacity: {cpu: 5}}]
jobs:
  - {id: low, priority: 10, groups: [{name: g, resources: {cpu: 5}}]}
  - {id: high, priority: 90, groups: [{name: g, resources: {cpu: 10}}]}
running: [{id: l, job: low, group: g, node: n1, startedAt: -1h}]
events: [{at: 30s, submit: high}]
`, `30s high.g[0]@n1 over l
30s low.g[0]#1@n2
l lost 1h0m30s
runs high.g[0] low.g[0]#1`},
		{"a victim may evict others", oneNode + `
jobs:
  - {id: low, priority: 10, groups: [{name: g, resources: {cpu: 4}}]}
  - {id: mid, priority: 50, groups: [{name: g, resources: {cpu: 6}}]}
  - {id: high, priority: 90, groups: [{name: g, resources: {cpu: 4}}]}
running: [{id: m, job: mid, group: g, node: n1}, {id: l, job: low, group: g, node: n1}]
events: [{at: 1s, submit: high}]
`, `1s high.g[0]@n1 over l
l lost 1s
low.g lacks 1
runs high.g[0] m`},
		{"saved work is a multiple of the checkpoint, and the replacement runs the rest", oneNode + `
jobs:
  - {id: low, type: batch, priority: 10, groups: [{name: g, resources: {cpu: 10}, duration: 100s, checkpoint: 30s}]}
  - {id: high, type: batch, priority: 90, groups: [{name: g, resources: {cpu: 10}, duration: 5s}]}
  - {id: after, type: batch, priority: 10, groups: [{name: g, resources: {cpu: 10}, duration: 1s}]}
events: [{at: 0s, submit: low}, {at: 70s, submit: high}, {at: 75s, submit: after}]
`, `0s low.g[0]@n1
70s high.g[0]@n1 over low.g[0]
75s low.g[0]#1@n1
115s after.g[0]@n1
low.g[0] lost 10s
runs `},
		{"a placement is listed when its plan commits, and starts when the last victim has stopped", oneNode + `
jobs:
  - {id: a, priority: 10, groups: [{name: g, resources: {cpu: 5}, killTimeout: 7s}]}
  - {id: b, priority: 10, groups: [{name: g, resources: {cpu: 5}, killTimeout: 3s}]}
  - {id: high, type: batch, priority: 90, groups: [{name: g, resources: {cpu: 10}, duration: 10s}]}
running: [{id: a1, job: a, group: g, node: n1}, {id: b1, job: b, group: g, node: n1}]
events: [{at: 1s, submit: high}]
`, `1s high.g[0]@n1 over a1 b1
18s a.g[0]#1@n1
18s b.g[0]#1@n1
a1 lost 1s
b1 lost 1s
runs a.g[0]#1 b.g[0]#1`},
		{"allocations on a node that goes down are lost", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}]
jobs: [{id: a, priority: 10, groups: [{name: g, count: 2, resources: {cpu: 10}}]}]
events: [{at: 0s, submit: a}, {at: 5s, nodeDown: n1}, {at: 9s, nodeUp: n1}]
`, `0s a.g[0]@n1
0s a.g[1]@n2
9s a.g[0]#1@n1
runs a.g[0]#1 a.g[1]`},
		{"allocations leave a drained node as soon as they fit on another", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}, ready: false}]
jobs: [{id: a, priority: 10, groups: [{name: g, resources: {cpu: 10}}]}]
events: [{at: 0s, submit: a}, {at: 5s, drain: n1}, {at: 9s, nodeUp: n2}]
`, `0s a.g[0]@n1
9s a.g[0]#1@n2
runs a.g[0]#1`},
		{"completed batch instances are not unplaced, evicted ones are", oneNode + `
jobs:
  - {id: done, type: batch, priority: 10, groups: [{name: g, count: 2, resources: {cpu: 5}, duration: 2s}]}
  - {id: low, type: batch, priority: 10, groups: [{name: g, resources: {cpu: 5}}]}
  - {id: high, priority: 90, groups: [{name: g, resources: {cpu: 10}}]}
events: [{at: 0s, submit: done}, {at: 3s, submit: low}, {at: 4s, submit: high}]
`, `0s done.g[0]@n1
0s done.g[1]@n1
3s low.g[0]@n1
4s high.g[0]@n1 over low.g[0]
low.g[0] lost 1s
low.g lacks 1
runs high.g[0]`},
		{"a stopped job is not unplaced", oneNode + `
jobs: [{id: a, groups: [{name: g, count: 2, resources: {cpu: 10}}]}]
events: [{at: 0s, submit: a}, {at: 1s, stop: a}]
`, `0s a.g[0]@n1
runs `},
		{"a job that is neither running nor submitted is ignored", oneNode + `
jobs: [{id: a, groups: [{name: g, resources: {cpu: 10}}]}]
`, `runs `},
		{"a colocated job is unblocked when its target is placed", oneNode + `
jobs:
  - {id: web, groups: [{name: g, resources: {cpu: 1}, colocate: [{labels: {app: cache}, topologyKey: node}]}]}
  - {id: cache, groups: [{name: g, resources: {cpu: 1}, labels: {app: cache}}]}
events: [{at: 0s, submit: web}, {at: 1s, submit: cache}]
`, `1s cache.g[0]@n1
1s web.g[0]@n1
runs cache.g[0] web.g[0]`},
		{"replacements of a system job on two nodes have different IDs", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}]
jobs: [{id: s, type: system, groups: [{name: g, resources: {cpu: 1}}]}]
running: [{id: s1, job: s, group: g, node: n1}, {id: s2, job: s, group: g, node: n2}]
events: [{at: 1s, nodeDown: n1}, {at: 1s, nodeDown: n2}, {at: 2s, nodeUp: n1}, {at: 2s, nodeUp: n2}]
`, `2s s.g[0]#1@n1
2s s.g[1]#1@n2
runs s.g[0]#1 s.g[1]#1`},
		{"capacity for one group unblocks a job even if another group cannot use the node", `
nodes: [{id: n1, capacity: {cpu: 10}, ready: false}]
jobs:
  - id: a
    groups:
      - {name: gpu, resources: {cpu: 1}, devices: [{id: gpu}]}
      - {name: plain, resources: {cpu: 1}}
events: [{at: 0s, submit: a}, {at: 1s, nodeUp: n1}]
`, `1s a.plain[0]@n1
a.gpu lacks 1
runs a.plain[0]`},
		{"a job with anti-affinity that is lost with its node frees the zone", `
nodes: [{id: n1, capacity: {cpu: 10}, attributes: {zone: a}}, {id: n2, capacity: {cpu: 10}, attributes: {zone: a}}]
jobs:
  - {id: f, priority: 90, groups: [{name: g, resources: {cpu: 1}, labels: {app: x}, constraints: [{attribute: node.id, operator: "=", value: n2}], separate: [{labels: {app: x}, topologyKey: zone}]}]}
  - {id: b, priority: 10, groups: [{name: g, resources: {cpu: 1}, labels: {app: x}}]}
events: [{at: 0s, submit: f}, {at: 0s, submit: b}, {at: 1s, nodeDown: n2}]
`, `0s f.g[0]@n2
1s b.g[0]@n1
f.g lacks 1
runs b.g[0]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := strings.NewReplacer("115s", "1m55s", "70s", "1m10s", "75s", "1m15s").Replace(c.want)
			if got := transcript(play(t, decode(t, c.scenario), sim.Options{}).Result); got != want {
				t.Errorf("\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// randomScenario returns a small cluster with running jobs and events. Priorities are
// distinct and names are shuffled.
func randomScenario(d generator) *scenario.File {
	f := &scenario.File{Version: 1, Name: "random", Seed: d.Uint64N(9)}
	f.Scheduler.Algorithm = pick(d, "", "binpack", "spread")
	nodes := []string{"n0", "n1", "n2", "n3"}[:d.in(1, 4)]
	for _, id := range nodes {
		n := scenario.Node{
			ID: id, Capacity: scenario.Quantities{"cpu": int64(d.in(5, 15)), "memory": int64(d.in(5, 15))},
			Attributes: map[string]string{"zone": pick(d, "a", "b")},
		}
		if d.oneIn(3) {
			n.Devices = []scenario.Device{{ID: "acme/gpu/a", Count: int32(d.in(1, 3))}, {ID: "acme/gpu/b", Count: int32(d.in(1, 3))}}
		}
		f.Nodes = append(f.Nodes, n)
	}
	for i, rank := range d.Perm(d.in(2, 7)) {
		j := scenario.Job{ID: fmt.Sprintf("j%d", i), Priority: new(int32(7 * rank)), AllAtOnce: d.oneIn(6)}
		j.Type = pick(d, "service", "service", "batch", "batch", "system", "sysbatch")
		for k := range d.in(1, 2) {
			g := scenario.Group{Name: fmt.Sprintf("g%d", k), Resources: scenario.Quantities{"cpu": int64(d.in(0, 6)), "memory": int64(d.in(0, 6))}}
			perNode := strings.HasPrefix(j.Type, "sys")
			if !perNode {
				g.Count = new(d.in(1, 4))
			}
			if d.oneIn(2) || strings.HasSuffix(j.Type, "batch") {
				g.Duration = scenario.Duration(d.in(1, 40) * 1e9)
				g.Checkpoint = scenario.Duration(d.in(0, 10) * 1e9)
			}
			if d.oneIn(3) {
				g.KillTimeout = scenario.Duration(d.in(0, 9) * 1e9)
			}
			if d.oneIn(6) {
				g.Ports = []uint16{uint16(d.in(80, 81))}
			}
			if d.oneIn(6) {
				g.Devices = []scenario.DeviceRequest{{ID: "gpu", Count: new(int32(d.in(1, 2)))}}
			}
			if d.oneIn(5) {
				g.Constraints = []scenario.Constraint{{Attribute: "zone", Operator: "=", Value: "a"}}
			}
			if d.oneIn(6) && !perNode {
				g.Labels = map[string]string{"app": "x"}
				g.Separate = []scenario.LabelTerm{{Labels: map[string]string{"app": "x"}, TopologyKey: pick(d, "node", "zone")}}
			}
			if d.oneIn(8) && !perNode {
				g.Spread = []scenario.Spread{{Attribute: "zone", MaxSkew: new(d.in(1, 2))}}
			}
			j.Groups = append(j.Groups, g)
		}
		f.Jobs = append(f.Jobs, j)
	}
	at := 0
	for range d.in(2, 16) {
		at += d.in(0, 6)
		e := scenario.Event{At: scenario.Duration(at * 1e9)}
		job, node := pick(d, f.Jobs...).ID, pick(d, nodes...)
		switch d.IntN(9) {
		case 0:
			e.Stop = job
		case 1:
			e.NodeDown = node
		case 2:
			e.NodeUp = node
		case 3:
			e.Drain = node
		default:
			e.Submit = job
		}
		f.Events = append(f.Events, e)
	}
	if d.oneIn(3) {
		f.Until = new(scenario.Duration(d.in(0, at+5) * 1e9))
	}
	// Running entries are added only if the file remains valid.
	for i := range d.in(0, 6) {
		j := pick(d, f.Jobs...)
		r := scenario.Running{ID: fmt.Sprintf("r%d", i), Job: j.ID, Group: j.Groups[0].Name, Node: pick(d, nodes...), StartedAt: scenario.Duration(-d.in(0, 30) * 1e9)}
		f.Running = append(f.Running, r)
		if _, err := scenario.Resolve(f); err != nil {
			f.Running = f.Running[:len(f.Running)-1]
		}
	}
	return f
}

func resultJSON(t tb, run *sim.Run) string {
	b, err := json.Marshal(run.Result)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type tb interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Equal files, policies and seeds return equal bytes on any number of processors. A
// permutation of the file's lists does not change the result. Victims have lower
// priorities than their preemptors.
func TestPlay_RandomScenarios(t *testing.T) {
	t.Parallel()
	outer := t
	evicted := 0
	for _, name := range []string{"default", "nomad"} {
		t.Run(name, func(t *testing.T) {
			for range soak.Count(2, 150) {
				rapid.Check(t, func(t *rapid.T) {
					d := drawGenerator(t)
					f := randomScenario(d)
					run := play(outer, f, sim.Options{Policy: name})
					if len(run.Faults) > 0 {
						t.Fatal(run.Faults)
					}
					want := resultJSON(t, run)
					evicted += len(run.Result.Evicted)
					procs := runtime.GOMAXPROCS(1)
					again := resultJSON(t, play(outer, f, sim.Options{Policy: name, Workers: 4}))
					runtime.GOMAXPROCS(max(procs, 2))
					third := resultJSON(t, play(outer, f, sim.Options{Policy: name, Workers: 2}))
					runtime.GOMAXPROCS(procs)
					if again != want || third != want {
						t.Fatalf("results differ\n%s\n%s\n%s", want, again, third)
					}
					checkVictims(t, f, run.Result)
					permuted := *f
					permuted.Nodes, permuted.Jobs = shuffled(d, f.Nodes), shuffled(d, f.Jobs)
					for i := range permuted.Nodes {
						permuted.Nodes[i].Devices = shuffled(d, permuted.Nodes[i].Devices)
					}
					other := play(outer, &permuted, sim.Options{Policy: name}).Result
					// The order of unplaced entries depends on the order of the jobs.
					for _, r := range []*sim.Result{run.Result, other} {
						slices.SortFunc(r.Unplaced, func(a, b sim.Unplaced) int { return strings.Compare(a.Job+"."+a.Group, b.Job+"."+b.Group) })
					}
					if got := transcript(other); got != transcript(run.Result) {
						t.Fatalf("result after permuting the lists\n%s\nwant\n%s", got, transcript(run.Result))
					}
				})
			}
		})
	}
	t.Logf("%d evicted", evicted)
	if evicted == 0 {
		t.Error("the property was not exercised")
	}
}

func shuffled[T any](d generator, list []T) []T {
	list = slices.Clone(list)
	d.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// checkVictims checks that placements, evictions and the file are consistent.
func checkVictims(t *rapid.T, f *scenario.File, r *sim.Result) {
	priority := map[string]int32{}
	for _, j := range f.Jobs {
		priority[j.ID] = *j.Priority
	}
	jobOf := map[string]string{}
	for _, a := range f.Running {
		jobOf[a.ID] = a.Job
	}
	ids := map[string]bool{}
	listed := 0
	for _, p := range r.Placements {
		if ids[p.Alloc] {
			t.Fatalf("%s is placed twice", p.Alloc)
		}
		ids[p.Alloc], jobOf[p.Alloc] = true, p.Job
		victims := slices.Clone(p.Preempted)
		for _, elsewhere := range p.PreemptedElsewhere {
			victims = append(victims, elsewhere...)
		}
		listed += len(victims)
		for _, v := range victims {
			if priority[p.Job]-priority[jobOf[v]] < 10 {
				t.Fatalf("%s evicts %s within the priority gap", p.Alloc, v)
			}
		}
	}
	if listed != len(r.Evicted) {
		t.Fatalf("placements list %d victims, the result %d", listed, len(r.Evicted))
	}
	for _, e := range r.Evicted {
		if e.LostWork < 0 || slices.Contains(r.Running, e.Alloc) {
			t.Fatalf("%+v", e)
		}
	}
}
