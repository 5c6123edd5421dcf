package scenario

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
)

// checkTaints checks the taints of a node; key and effect together must be unique.
func (c *checker) checkTaints(list *path, taints []Taint) {
	type same struct{ key, effect string }
	seen := map[same]int{}
	for i := range taints {
		t, p := &taints[i], list.item(i)
		if t.Key == "" {
			c.add(p.field("key"), "key is missing", "write a key such as gpu")
		}
		if t.Effect == "" {
			c.add(p.field("effect"), "effect is missing", "write NoSchedule, PreferNoSchedule or NoExecute")
		}
		c.checkEffect(p.field("effect"), t.Effect)
		if first, ok := seen[same{t.Key, t.Effect}]; ok {
			c.add(p, fmt.Sprintf("taints[%d] has the same key and effect", first), "remove one of the two")
		}
		seen[same{t.Key, t.Effect}] = i
	}
}

func (c *checker) checkEffect(p *path, effect string) {
	c.oneOf(p, effect, string(model.NoSchedule), string(model.PreferNoSchedule), string(model.NoExecute))
}

// checkToleration checks a toleration. Only NoExecute tolerations may have a duration.
func (c *checker) checkToleration(p *path, t *Toleration) {
	c.oneOf(p.field("operator"), t.Operator, string(model.TolerationEqual), string(model.TolerationExists))
	switch exists := t.Operator == string(model.TolerationExists); {
	case exists && t.Value != "":
		c.add(p.field("value"), "operator Exists accepts no value", "remove the value, or write operator Equal")
	case !exists && t.Key == "":
		c.add(p.field("key"), "key is missing", "name the taint's key; operator Exists without a key tolerates every taint")
	}
	c.checkEffect(p.field("effect"), t.Effect)
	c.checkDuration(p.field("for"), t.For)
	if t.For != 0 && t.Effect != string(model.NoExecute) {
		c.add(p.field("for"), "a toleration with a duration requires effect NoExecute", "write effect: NoExecute, or remove for")
	}
}
