package extender

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/kube"
)

// gangOf returns a gang of pods of one CPU each.
func gangOf(t *testing.T, pods, atLeast int) *Gang {
	t.Helper()
	g := &Gang{Namespace: "default", Name: "gang", UID: "uid-gang", Priority: 1000, AtLeast: atLeast}
	for i := range pods {
		g.Pods = append(g.Pods, readDump(t, fmt.Sprintf(`{"kind":"Pod","metadata":{"name":"m%d","uid":"m%d"},"spec":{"priority":1000,"schedulingGroup":{"podGroupName":"gang"},
			"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}`, i, i)).Pods[0])
	}
	return g
}

// The victims for a gang are the cheapest ones of the whole cluster.
func TestExtender_ChoosesForGang(t *testing.T) {
	two := twoCPUs("n1") + twoCPUs("n2")
	full := two + memberOf("", "a", "n1", 5) + memberOf("", "b", "n1", 50) + memberOf("", "c", "n2", 10) + memberOf("", "d", "n2", 2000)
	for name, k := range map[string]struct {
		objects       string
		pods, atLeast int
		want          string
	}{
		"all":                       {full, 2, 2, "2: a c"},
		"more than one on a node":   {full, 3, 3, "3: a b c"},
		"as many as fit":            {full, 5, 2, "3: a b c"},
		"too few":                   {full, 5, 4, "0:"},
		"free capacity comes first": {two + memberOf("", "a", "n1", 5) + memberOf("", "b", "n1", 50) + memberOf("", "d", "n2", 2000), 2, 2, "2: a"},
		"group on several nodes": {
			two + podGroup("all", 5) + memberOf("ring", "a", "n1", 5) + memberOf("ring", "b", "n2", 5) + memberOf("", "c", "n1", 2000) + memberOf("", "d", "n2", 2000),
			1, 1, "1: a b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExtender(t)
			e.Feed(readDump(t, k.objects), true)
			choice, err := GangsOf(e).Choose(t.Context(), gangOf(t, k.pods, k.atLeast))
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(choice.Victims)
			if got := strings.TrimSpace(fmt.Sprintf("%d: %s", choice.Placed, strings.Join(choice.Victims, " "))); got != k.want {
				t.Errorf("got %q, want %q", got, k.want)
			}
		})
	}
}

// The victims of a gang count as leaving until they are gone, the request counts once, and
// another preemptor does not name the same pods.
func TestExtender_RecordsVictimsOfGang(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	e := w.extender
	e.Feed(readDump(t, twoCPUs("n1")+twoCPUs("n2")+memberOf("", "a", "n1", 5)+memberOf("", "b", "n1", 50)+memberOf("", "c", "n2", 10)+memberOf("", "d", "n2", 60)), true)
	g := gangOf(t, 2, 2)
	choice, err := GangsOf(e).Choose(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	GangsOf(e).Record(g, choice.Victims)
	var nominated []string
	for i, node := range []string{"n1", "n2"} {
		p := g.Pods[i]
		p.Status.NominatedNodeName = node
		e.Feed(&kube.Dump{Pods: []*kube.Pod{p}}, false)
		nominated = append(nominated, p.Metadata.Name)
	}
	if got := namedVictims(t, e, map[string][]string{"n1": {"b"}, "n2": {"d"}}); got != "n1: b" {
		t.Errorf("beside the gang %v: victims %s, want b", nominated, got)
	}
	if n := e.cache.unconfirmed(); n != 2 {
		t.Errorf("%d open answers, want 2", n)
	}
	for _, uid := range choice.Victims {
		e.Feed(&kube.Dump{Deleted: []any{e.cache.pods[uid]}}, false)
	}
	if n := w.countOf(resultChosen); n != 1 || e.cache.unconfirmed() != 1 {
		t.Errorf("%v answers are counted as chosen and %d are open, want one each", n, e.cache.unconfirmed())
	}
}

// A choice that kube-scheduler cannot use counts as discarded.
func TestExtender_CountsDiscardedGang(t *testing.T) {
	w := start(t, kubernetesPolicy, nil)
	e := w.extender
	e.Feed(readDump(t, twoCPUs("n1")+memberOf("", "a", "n1", 5)+memberOf("", "b", "n1", 50)), true)
	GangsOf(e).Record(gangOf(t, 1, 1), nil)
	GangsOf(e).RecordProposal(gangOf(t, 1, 1), []string{"b"})
	e.Feed(&kube.Dump{Deleted: []any{e.cache.pods["b"]}}, false)
	if n := w.countOf(resultDiscarded); n != 1 || e.cache.unconfirmed() != 0 {
		t.Errorf("%v answers are counted as discarded and %d are open", n, e.cache.unconfirmed())
	}
}

// inRack returns a node of two CPUs in a rack.
func inRack(rack, name string) string {
	return strings.Replace(twoCPUs(name), `"labels":{`, fmt.Sprintf(`"labels":{"rack":%q,`, rack), 1)
}

// inRacks are two full racks. The cheapest pods are in both of them.
func inRacks() string {
	return inRack("a", "a1") + inRack("a", "a2") + inRack("b", "b1") + inRack("b", "b2") +
		memberOf("", "a1-low", "a1", 1) + memberOf("", "a1-high", "a1", 90) + memberOf("", "a2-mid", "a2", 50) + memberOf("", "a2-high", "a2", 90) +
		memberOf("", "b1-low", "b1", 2) + memberOf("", "b1-high", "b1", 90) + memberOf("", "b2-mid", "b2", 40) + memberOf("", "b2-high", "b2", 90)
}

// constrained returns a PodGroup with a topology constraint.
func constrained(name, key string) string {
	return fmt.Sprintf(`{"kind":"PodGroup","apiVersion":"scheduling.k8s.io/v1beta1","metadata":{"name":%q},"spec":{"schedulingPolicy":{"gang":{"minCount":2}},"priority":1000,
		"schedulingConstraints":{"topology":[{"key":%q}]}}}`+"\n", name, key)
}

// A gang with a topology constraint evicts in one domain only: in that of its running pods, or
// else in the cheapest one.
func TestExtender_ChoosesForGangInOneDomain(t *testing.T) {
	for name, k := range map[string]struct{ objects, want string }{
		"no constraint":   {inRacks(), "2: a1-low b1-low"},
		"cheapest rack":   {inRacks() + constrained("gang", "rack"), "2: b1-low b2-mid"},
		"one node":        {inRacks() + constrained("gang", "kubernetes.io/hostname"), "2: a1-high a1-low"},
		"unknown key":     {inRacks() + constrained("gang", "zone"), "0:"},
		"of other groups": {inRacks() + constrained("other", "rack"), "2: a1-low b1-low"},
		"where it runs": {
			strings.Replace(inRacks(), memberOf("", "a2-high", "a2", 90), memberOf("gang", "a2-own", "a2", 1000), 1) + constrained("gang", "rack"), "2: a1-low a2-mid",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExtender(t)
			e.Feed(readDump(t, k.objects), true)
			choice, err := GangsOf(e).Choose(t.Context(), gangOf(t, 2, 2))
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(choice.Victims)
			if got := strings.TrimSpace(fmt.Sprintf("%d: %s", choice.Placed, strings.Join(choice.Victims, " "))); got != k.want {
				t.Errorf("got %q, want %q", got, k.want)
			}
		})
	}
}

// A pod of a group with a topology constraint is placed in the domain where the group runs, and
// where other pods of it wait for their victims, although that node is not proposed.
func TestExtender_PlacesPodInDomainOfItsGroup(t *testing.T) {
	proposal := map[string][]string{"a1": {"a1-low"}, "b1": {"b1-low"}}
	waiting := readDump(t, `{"kind":"Pod","metadata":{"name":"first","uid":"first"},"spec":{"priority":1000,"schedulingGroup":{"podGroupName":"gang"},
		"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]},"status":{"nominatedNodeName":"b2"}}`).Pods[0]
	for name, k := range map[string]struct {
		objects string
		pods    []*kube.Pod
		want    string
	}{
		"alone":       {inRacks() + constrained("gang", "rack"), nil, "a1: a1-low"},
		"beside pods": {strings.Replace(inRacks(), memberOf("", "b2-high", "b2", 90), memberOf("gang", "own", "b2", 1000), 1) + constrained("gang", "rack"), nil, "b1: b1-low"},
		"nominated":   {inRacks() + constrained("gang", "rack"), []*kube.Pod{waiting}, "b1: b1-low"},
		"deleted":     {inRacks(), []*kube.Pod{waiting}, "a1: a1-low"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExtender(t)
			d := readDump(t, k.objects)
			d.Pods = append(d.Pods, k.pods...)
			e.Feed(d, true)
			if got := namedVictimsOf(t, e, gangOf(t, 1, 1).Pods[0], proposal); got != k.want {
				t.Errorf("answer %q, want %q", got, k.want)
			}
		})
	}
}
