package scheduler_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/model"
)

func runsWith(drivers ...string) func(*model.Group) {
	return func(g *model.Group) {
		for _, d := range drivers {
			g.Tasks = append(g.Tasks, &model.Task{Name: "t-" + d, Driver: d})
		}
	}
}

func has(attributes ...string) func(*model.Node) {
	return func(n *model.Node) {
		n.Attributes = map[string]string{}
		for i := 0; i < len(attributes); i += 2 {
			n.Attributes[attributes[i]] = attributes[i+1]
		}
	}
}

// A node that lists drivers gets only tasks for those. A node without a list gets all,
// since nodes of other systems do not report drivers.
func TestDrivers_RestrictNodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", has("driver.exec", "1"))
	w.node("n2", has("driver.exec", "1", "driver.sim", "1"))
	w.node("n3", has("driver.exec", "1", "driver.sim", "0"))
	w.job(job("j", 50, 4, 3).Count(3).With(runsWith("exec", "sim")).Obj())
	w.want("j", "j.g[0]@n2, j.g[1]@n2, g waits for 1")
	out := w.plan("j")
	why := out.Failed["g"]
	if why.Filtered["lacks driver sim"] != 2 || why.Exhausted["cpu"] != 1 || why.Nodes != 3 {
		t.Errorf("the explanation lacks the driver: %+v", why)
	}
	w.node("n0", has("zone", "a"))
	w.want("j", "j.g[2]@n0")
}

// Nothing is evicted on a node that cannot run the preemptor, and a system job has no
// instance there.
func TestDrivers_NoEvictionOnNodeWithoutDriver(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", has("driver.exec", "1"))
	w.node("n2", has("driver.sim", "1"))
	w.run(job("low", 10, 10, 10).Obj(), "l", "n1")
	w.job(job("all", 60, 1, 1).Type(model.JobSystem).With(runsWith("sim")).Obj())
	w.want("all", "all.g[0]@n2")
	w.job(job("j", 90, 10, 1).With(runsWith("sim")).Obj())
	w.want("j", "j.g[0]@n2 over all.g[0]")
}

// The cached failure of a group does not apply to one with other drivers, and a node
// that gets the driver changes its class.
func TestDrivers_DistinguishFailuresAndClasses(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", has("driver.exec", "1"))
	w.job(job("s", 50, 1, 1).With(runsWith("sim")).Obj())
	w.want("s", "g waits for 1")
	seen := w.plan("s").Classes
	w.job(job("e", 50, 1, 1).With(runsWith("exec")).Obj())
	w.want("e", "e.g[0]@n1")
	w.want("s", "g waits for 1")
	w.node("n1", has("driver.exec", "1", "driver.sim", "1"))
	now := w.store.Snapshot()
	if _, known := seen[now.Node("n1").ClassKey]; known || len(seen) != 1 {
		t.Errorf("class of a node with another driver: %v", seen)
	}
	w.want("s", "s.g[0]@n1")
}
