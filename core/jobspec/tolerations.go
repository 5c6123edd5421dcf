package jobspec

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/core/model/jsonschema"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Tolerations exist at two levels. A job's preemption toleration limits which
// preemptors may evict it; a group's tolerations list the node taints that it
// tolerates.

// Disruption modes: evict a single allocation, or all allocations of the job.
const (
	disruptSingle = "single"
	disruptAll    = "all"
)

// tolerationOperators and taintEffects list the values of fields of a toleration.
var (
	tolerationOperators = []string{string(model.TolerationEqual), string(model.TolerationExists)}
	taintEffects        = []string{string(model.NoSchedule), string(model.PreferNoSchedule), string(model.NoExecute)}
)

// preemptionToleration reads the toleration of a job. The names of its fields depend
// on the dialect.
func (o *object) preemptionToleration(to **client.PreemptionToleration, priority, runtime string) {
	t := o.child("a preemption toleration", "toleration", "Toleration")
	if t == nil {
		return
	}
	*to = &client.PreemptionToleration{}
	t.integer(priority, "MinPreemptorPriority", setPtr(&(*to).MinPreemptorPriority))
	t.duration(runtime, "MinRuntime", set(&(*to).MinRuntime))
	const taints = "tolerations of taints belong to a group: move it there"
	t.unsupported(map[string]string{"key": taints, "operator": taints, "value": taints, "effect": taints})
	t.done()
}

// tolerations reads the tolerations of a group.
func (o *object) tolerations(name string) (list []*client.Toleration) {
	o.each("a toleration", name, "Tolerations", func(o *object) {
		t := &client.Toleration{}
		o.text("key", "Key", set(&t.Key))
		o.text("operator", "Operator", set(&t.Operator))
		o.scalar("value", "Value", set(&t.Value))
		o.text("effect", "Effect", set(&t.Effect))
		o.duration("for", "For", set(&t.For))
		describe(o, func(s *jsonschema.Schema) {
			setOptions(s, "operator", tolerationOperators)
			setOptions(s, "effect", taintEffects)
		})
		o.done()
		list = append(list, t)
	})
	return list
}

// scalar reads a string. It also accepts a number or boolean and returns its text,
// because taint values are compared as strings.
func (o *object) scalar(name, path string, to func(string)) {
	declare(o, name, jsonschema.Scalar())
	if v := o.one(name, path); v != nil {
		if v.kind == kindText || v.kind == kindNumber || v.kind == kindBool {
			to(v.text)
			return
		}
		o.typeError(name, path, v, "a string", "write one value in quotes")
	}
}

func (c *conversion) checkToleration(path string, t *client.PreemptionToleration) {
	if t == nil {
		return
	}
	if p := t.MinPreemptorPriority; p != nil && (*p < math.MinInt32 || *p > math.MaxInt32) {
		c.add(path+".MinPreemptorPriority", fmt.Sprintf("invalid priority %d: must be between -2147483648 and 2147483647", *p), "1 to 100 is usual")
	}
	c.checkDuration(path+".MinRuntime", t.MinRuntime)
}

// toleration converts a validated toleration. It returns nil if no field is set.
func toleration(t *client.PreemptionToleration) *model.PreemptionToleration {
	if t == nil || t.MinPreemptorPriority == nil && t.MinRuntime == 0 {
		return nil
	}
	m := &model.PreemptionToleration{MinRuntime: int64(t.MinRuntime)}
	if t.MinPreemptorPriority != nil {
		m.MinPreemptorPriority = new(int32(*t.MinPreemptorPriority))
	}
	return m
}

func fromToleration(m *model.PreemptionToleration) *client.PreemptionToleration {
	if m == nil {
		return nil
	}
	t := &client.PreemptionToleration{MinRuntime: time.Duration(m.MinRuntime)}
	if m.MinPreemptorPriority != nil {
		t.MinPreemptorPriority = new(int(*m.MinPreemptorPriority))
	}
	return t
}

func (c *conversion) tolerations(path string, list []*client.Toleration) []model.Toleration {
	var all []model.Toleration
	for at, t := range elements(c, path, "toleration", list) {
		m := model.Toleration{Key: t.Key, Operator: model.TolerationOperator(cmp.Or(t.Operator, string(model.TolerationEqual))), Value: t.Value, Effect: model.TaintEffect(t.Effect), For: t.For}
		c.oneOf(at+".Operator", t.Operator, tolerationOperators...)
		c.oneOf(at+".Effect", t.Effect, taintEffects...)
		c.checkDuration(at+".For", t.For)
		value, key, limit := fieldcheck.Toleration(m)
		c.report(at+".Value", value)
		c.report(at+".Key", key)
		c.report(at+".For", limit)
		if len(t.Key) > maxName || len(t.Value) > maxName || strings.ContainsAny(t.Key, " \t\n") {
			c.add(at, fmt.Sprintf("invalid taint %.60q=%.60q: expected a key without spaces, and a key and value of at most %d bytes each", t.Key, t.Value, maxName), "copy the key and value of the taint of the node")
		}
		all = append(all, m)
	}
	return all
}

func fromTolerations(list []model.Toleration) (all []*client.Toleration) {
	for _, t := range list {
		all = append(all, &client.Toleration{Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect), For: t.For})
	}
	return all
}
