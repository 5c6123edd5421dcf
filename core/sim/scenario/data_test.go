package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestData runs testdata/errors (the messages for an invalid file) and testdata/resolve
// (the resolved values of a valid one). Run it with -rewrite to update them.
func TestData(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"testdata/errors", "testdata/resolve"} {
		datadriven.Walk(t, dir, func(t *testing.T, path string) {
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				name := "f.yaml"
				if d.HasArg("json") {
					name = "f.json"
				}
				input := d.Input
				if d.HasArg("head") { // omits the two required fields from each case
					input = "version: 1\nname: x\n" + input
				}
				f, err := Decode(name, strings.NewReader(input))
				if err != nil {
					return err.Error()
				}
				if d.Cmd == "resolve" {
					return show(t, f)
				}
				return "ok"
			})
		})
	}
}

// show returns the resolved file as text, with one object per line.
func show(t *testing.T, f *File) string {
	r, err := Resolve(f)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	delta := "the policy's default"
	if r.Config.PriorityDelta != nil {
		delta = fmt.Sprint(*r.Config.PriorityDelta)
	}
	fmt.Fprintf(&b, "config: %s, policy %s, delta %s, preemption %v\n", r.Config.Algorithm, r.Config.Policy, delta, r.Config.Preemption)
	for _, p := range r.Policies {
		fmt.Fprintf(&b, "policy %s: %s %v %v\n", p.Name, p.Use, p.Config, p.Grant)
	}
	for _, n := range r.Namespaces {
		fmt.Fprintf(&b, "namespace %s: weight %v %q\n", n.Name, n.Weight, n.Description)
	}
	for _, n := range r.Nodes {
		fmt.Fprintf(&b, "node %s: %s %s class %q capacity %v reserved %v ports %v devices %v attributes %v\n", n.ID, n.Status, n.Datacenter, n.Class, n.Capacity, n.Reserved, n.Ports, n.Devices, n.Attributes)
	}
	for _, n := range r.Nodes {
		for _, taint := range n.Taints {
			fmt.Fprintf(&b, "  node %s has taint %s\n", n.ID, taint)
		}
	}
	for _, d := range r.Budgets {
		fmt.Fprintf(&b, "budget %s: %v min %v max %v strict %t\n", d.Key(), d.Labels, d.MinAvailable, d.MaxUnavailable, d.Strict)
	}
	for _, j := range r.Jobs {
		fmt.Fprintf(&b, "job %s: %s priority %d class %q never preempts %v, non-preemptible %v, gang %v\n", j.Key(), j.Type, j.Priority, j.PriorityClass, j.NeverPreempts, j.NonPreemptible, j.AllAtOnce)
		if j.HasEvictionRules() {
			fmt.Fprintf(&b, "  all-or-none eviction: %t", j.AllOrNone)
			if tol := j.Toleration; tol != nil {
				fmt.Fprintf(&b, ", protected for its first %v", Duration(tol.MinRuntime))
				if tol.MinPreemptorPriority != nil {
					fmt.Fprintf(&b, " and from preemptors below %d", *tol.MinPreemptorPriority)
				}
			}
			fmt.Fprintln(&b)
		}
		for _, g := range j.Groups {
			if g.MinCount > 0 {
				fmt.Fprintf(&b, "  group %s evicts single instances down to %d\n", g.Name, g.MinCount)
			}
			fmt.Fprintf(&b, "  group %s: count %d requests %v ports %v devices %v labels %v\n", g.Name, g.Count, g.Resources, g.Ports, g.Devices, g.Labels)
			fmt.Fprintf(&b, "    evictions %d kill %v duration %v checkpoint %v annotations %v\n", g.MaxParallelEvictions, Duration(g.KillTimeout), Duration(g.Duration), Duration(g.Checkpoint), g.Annotations)
			if d := g.Disconnect; d != nil {
				fmt.Fprintf(&b, "    lost %v after its node disconnects, replaced meanwhile: %t\n", Duration(d.LostAfter), d.Replace)
			}
			for _, tol := range g.Tolerations {
				fmt.Fprintf(&b, "    tolerates %+v\n", tol)
			}
			for _, c := range g.Constraints {
				fmt.Fprintf(&b, "    must %s\n", c.String())
			}
			for _, a := range g.Affinities {
				fmt.Fprintf(&b, "    should %s (%d)\n", a.String(), a.Weight)
			}
			for _, s := range g.Spread {
				fmt.Fprintf(&b, "    spread %+v\n", s)
			}
			for _, term := range slices.Concat(g.Colocate, g.Separate) {
				fmt.Fprintf(&b, "    term {Labels:%v TopologyKey:%s}\n", term.Labels, term.TopologyKey)
			}
		}
	}
	for _, a := range r.Running {
		fmt.Fprintf(&b, "alloc %s: %s.%s[%d] on %s since %v, %s, %s, devices %v\n", a.ID, a.Job.ID, a.Group.Name, a.Index, a.NodeID, Duration(a.StartTime), a.Desired, a.Client, a.Devices)
	}
	for _, s := range r.Steps {
		what := s.Node
		if s.Job != nil {
			what = s.Job.Key().String()
		}
		fmt.Fprintf(&b, "at %v: %s %s\n", Duration(s.At), s.Do, what)
	}
	if r.Until != nil {
		fmt.Fprintf(&b, "until %v\n", Duration(*r.Until))
	}
	return b.String()
}
