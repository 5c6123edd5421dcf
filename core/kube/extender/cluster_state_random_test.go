package extender

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// Random model test: after any sequence of changes the cluster state is equivalent to
// a state rebuilt from the whole cluster, and returns the same responses. Every
// eighth step feeds the whole cluster again.
func TestClusterState_EquivalentToRebuild(t *testing.T) {
	seeds, rebuilds, steps, evictions := uint64(soak.Count(6, 200)), 0, 0, 0
	for seed := range seeds {
		c := newRandomCluster(seed)
		w := start(t, kubernetesPolicy, nil)
		w.feed(c.objects()...)
		for step := range 25 {
			change := "everything"
			if step%8 == 7 {
				w.feed(c.objects()...)
			} else {
				raw := c.change()
				change = string(raw)
				if status, text := w.raw(http.MethodPut, "objects", raw); status != http.StatusOK {
					t.Fatalf("%d %s", status, text)
				}
			}
			pending := c.pod("")
			before := w.extender.state.cluster
			got, gotScores := w.filter(pending, c.nodes...), w.scores(pending, c.nodes...)
			if steps++; w.extender.state.cluster != before {
				rebuilds++
			}
			other := start(t, kubernetesPolicy, nil)
			other.feed(c.objects()...)
			want, wantScores := other.filter(pending, c.nodes...), other.scores(pending, c.nodes...)
			for _, response := range []*string{&got, &want} { // the first protocol that uses a port keeps its number
				*response = nodeSetName.ReplaceAllString(strings.ReplaceAll(*response, "port 65535", "port 80"), "$1")
			}
			podJSON, _ := json.Marshal(pending)
			if got != want || fmt.Sprint(gotScores) != fmt.Sprint(wantScores) {
				t.Fatalf("seed %d, step %d: updated\n%s %v\nrebuilt\n%s %v\n%s\nafter %s", seed, step, got, gotScores, want, wantScores, podJSON, change)
			}
			names := c.requestedResources(pending)
			if updated, rebuilt := describe(w.extender.state.snap, names), describe(other.extender.state.snap, names); updated != rebuilt {
				t.Fatalf("seed %d, step %d: updated\n%s\n\nrebuilt\n%s\n%s\nafter %s", seed, step, updated, rebuilt, podJSON, change)
			}
			for _, verb := range []string{"preempt", "preempt?nodes=all"} {
				got, want := w.preempt(verb, c.proposal(pending)), other.preempt(verb, c.proposal(pending))
				if got != want {
					t.Fatalf("seed %d, step %d: %s updated\n%s\nrebuilt\n%s\n%s\nafter %s\n%s", seed, step, verb, got, want, podJSON, change, w.log)
				}
				if strings.Contains(got, "uid") || strings.Contains(got, ":") {
					evictions++
				}
				w.forgetAnswers()
				other.forgetAnswers()
			}
			if step%2 == 0 {
				c.pods = append(c.pods, pending)
			} else if status, text := w.raw(http.MethodPut, "objects", event("DELETED", pending)); status != http.StatusOK {
				t.Fatalf("%d %s", status, text)
			}
		}
	}
	if share := float64(rebuilds) / float64(steps); share > 0.5 {
		t.Errorf("the state was rebuilt in %.0f %% of the steps, want at most 50 %%", 100*share)
	} else {
		t.Logf("the state was rebuilt in %.0f %% of %d steps", 100*share, steps)
	}
	if evictions < steps/4 {
		t.Errorf("%d responses with victims in %d steps, want more", evictions, steps)
	}
}

// forgetAnswers discards the stored responses.
func (w *fixture) forgetAnswers() {
	c := w.extender.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes.Add(1)
	c.answers = newAnswers(time.Minute, time.Now, func(*answer, string) {})
}

// nodeSetName matches the attribute of a node set with any number.
var nodeSetName = regexp.MustCompile(`(cede\.import/nodes-)\d+`)

// requestedResources returns the requested resources. Others may be present in one state only.
func (c *randomCluster) requestedResources(pending *corev1.Pod) map[string]bool {
	names := map[string]bool{"pods": true}
	for _, p := range append(slices.Clone(c.pods), pending) {
		for name := range p.Spec.Containers[0].Resources.Requests {
			names[string(name)] = true
		}
	}
	return names
}

// describe returns the content of a state without generated names, which depend on
// the order of translation.
func describe(snap *state.Snapshot, resources map[string]bool) string {
	var lines []string
	members := map[string]string{} // nodes by node set
	for n := range snap.Nodes() {
		has, labels := maps.Clone(n.Capacity), map[string]string{}
		maps.DeleteFunc(has, func(name string, amount int64) bool { return amount == 0 || !resources[name] })
		for k, v := range n.Attributes {
			if strings.HasPrefix(k, "cede.import/nodes-") {
				members[k] += " " + n.ID
				continue
			}
			labels[k] = v
		}
		lines = append(lines, fmt.Sprintf("node %s has %v, %v, %v", n.ID, has, labels, n.Taints))
	}
	where := func(c model.Constraint) string {
		if nodes, ok := members[c.Attribute]; ok || strings.HasPrefix(c.Attribute, "cede.import/nodes-") {
			return "one of" + nodes
		}
		return fmt.Sprint(c)
	}
	for a := range snap.Allocs() {
		j, g := a.Job, a.Job.Group(a.Group.Name)
		var wants []string
		for _, c := range g.Constraints {
			wants = append(wants, where(c))
		}
		ports := slices.Clone(g.Ports)
		for i := range ports {
			if ports[i] == 65535 {
				ports[i] = 80
			}
		}
		lines = append(lines, fmt.Sprintf("%s on %s: %s %s of %d, never %t: %v %v %v %v %v %v %v %v", a.ID, a.NodeID, j.Type, j.Meta["name"], j.Priority, j.NeverPreempts,
			g.Resources, ports, wants, g.Tolerations, g.Spread, g.Colocate, g.Separate, g.KillTimeout))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
