package extender

import (
	"fmt"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/dra"
)

// fedByWatch returns an extender with two full nodes that a watch feeds.
func fedByWatch(t *testing.T, change func(*Config)) *Extender {
	t.Helper()
	e := start(t, kubernetesPolicy, func(c *Config) {
		if c.Live = true; change != nil {
			change(c)
		}
	}).extender
	e.Feed(readDump(t, twoCPUs("n1")+twoCPUs("n2")+memberOf("", "a", "n1", 5)+memberOf("", "b", "n1", 5)+memberOf("", "c", "n2", 50)+memberOf("", "d", "n2", 50)), true)
	return e
}

// The first request uses the state that the first feed has built.
func TestExtender_BuildsStateBeforeFirstRequest(t *testing.T) {
	e := fedByWatch(t, nil)
	built := e.state.cluster
	if built == nil || len(e.state.idle) != 1 {
		t.Fatalf("after the whole cluster was fed: state %v, %d schedulers", built, len(e.state.idle))
	}
	if got := namedVictims(t, e, map[string][]string{"n1": {"a"}, "n2": {"c"}}); got != "n1: a" && got != "n1: b" {
		t.Errorf("victims %s", got)
	}
	if e.state.cluster != built {
		t.Error("the first request has rebuilt the state")
	}
}

// A long time without a request does not make the next one slow: few changes are left to
// it, and none of the earlier ones is lost.
func TestExtender_AppliesChangesBeforeRequests(t *testing.T) {
	e := fedByWatch(t, nil)
	built, most := e.state.cluster, 0
	one := readDump(t, memberOf("", "x", "n1", 1)).Pods[0]
	for i := range 2*maxChanges + maxBacklog/2 {
		p := *one
		p.Spec.NodeName = fmt.Sprint("n", 1+i%2)
		e.Feed(&kube.Dump{Pods: []*kube.Pod{&p}}, false)
		most = max(most, e.cache.log.size()-e.state.at)
	}
	if most > maxBacklog+2 {
		t.Errorf("up to %d changes were not applied, want at most %d and those of one feed", most, maxBacklog)
	}
	if got := namedVictims(t, e, map[string][]string{"n1": {"a"}, "n2": {"x"}}); got != "n2: x" { // of the lowest priority
		t.Errorf("victims %s", got)
	}
	if e.state.cluster != built {
		t.Error("the state was rebuilt")
	}
}

// Changes that require a rebuild cause few of them: a request rebuilds the state if it
// arrives first.
func TestExtender_BoundsRebuildsBeforeRequests(t *testing.T) {
	now := clock.NewVirtual(time.Unix(1000, 0))
	e := fedByWatch(t, func(c *Config) { c.Clock = now })
	e.state.building = time.Second
	built := e.state.cluster
	feed := func(name string) {
		e.Feed(&kube.Dump{Devices: dra.Objects{Slices: []*dra.Slice{{Metadata: dra.Metadata{Name: name}}}}}, false)
	}
	feed("s1")
	if e.state.cluster != built {
		t.Error("rebuilt at once")
	}
	now.AdvanceTo(now.Now().Add(10*time.Second + 1))
	feed("s2")
	if e.state.cluster == built {
		t.Error("not rebuilt after ten times the duration of a rebuild")
	}
}
