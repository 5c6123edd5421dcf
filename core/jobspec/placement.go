package jobspec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// placement adds the constraints, affinities, spreads, label terms and tolerations of
// the job, the group and its tasks to the group.
func (c *conversion) placement(path string, m *model.Group, j *client.Job, g *client.TaskGroup) {
	m.Constraints = append(m.Constraints, c.constraints("Constraints", j.Constraints, true)...)
	m.Constraints = append(m.Constraints, c.constraints(path+".Constraints", g.Constraints, true)...)
	m.Affinities = append(m.Affinities, c.affinities("Affinities", j.Affinities)...)
	m.Affinities = append(m.Affinities, c.affinities(path+".Affinities", g.Affinities)...)
	for i, t := range g.Tasks {
		if t == nil {
			continue
		}
		at := fmt.Sprintf("%s.Tasks[%d]", path, i)
		m.Constraints = append(m.Constraints, c.constraints(at+".Constraints", t.Constraints, true)...)
		m.Affinities = append(m.Affinities, c.affinities(at+".Affinities", t.Affinities)...)
	}
	m.Spread = append(m.Spread, c.spreads("Spreads", j.Spreads)...)
	m.Spread = append(m.Spread, c.spreads(path+".Spreads", g.Spreads)...)
	m.Colocate = c.terms(path+".Colocate", g.Colocate)
	m.Separate = c.terms(path+".Separate", g.Separate)
	m.Tolerations = c.tolerations(path+".Tolerations", g.Tolerations)
	if n := len(m.Constraints) + len(m.Affinities) + len(m.Spread) + len(m.Colocate) + len(m.Separate) + len(m.Tolerations); n > maxTerms {
		c.add(path, fmt.Sprintf("%d constraints, affinities, spreads, label terms and tolerations: expected at most %d", n, maxTerms), "combine some of them, for example with the operator in")
	}
}

func (c *conversion) constraints(path string, list []*client.Constraint, mayCount bool) []model.Constraint {
	var all []model.Constraint
	for i, k := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if k == nil {
			c.add(at, "constraint is null", "remove it")
			continue
		}
		if len(c.problems) < maxProblems {
			all = append(all, c.constraint(at, k, mayCount))
		}
	}
	return all
}

func (c *conversion) constraint(path string, k *client.Constraint, mayCount bool) model.Constraint {
	m := model.Constraint{Operator: operatorOf(k.Operand)}
	m.Attribute = c.attribute(path+".LTarget", k.LTarget)
	if m.Operator == model.OpIn || m.Operator == model.OpNotIn {
		m.Values = splitValues(k.RTarget)
	} else {
		m.Value = k.RTarget
	}
	if m.Operator == model.OpDistinctHosts {
		if k.RTarget == "" || k.RTarget == "true" {
			m.Value = "" // Nomad's "true" is the default
		}
	}
	c.checkConstraint(path, &m, k, mayCount)
	return m
}

// operatorOf returns the operator of an operand, including Nomad's synonyms.
func operatorOf(operand string) model.Operator {
	switch operand {
	case "==", "is", "":
		return model.OpEqual
	case "not":
		return model.OpNotEqual
	}
	return model.Operator(operand)
}

func (c *conversion) affinities(path string, list []*client.Affinity) []model.Affinity {
	var all []model.Affinity
	for i, a := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if a == nil {
			c.add(at, "affinity is null", "remove it")
			continue
		}
		if len(c.problems) == maxProblems {
			break
		}
		m := model.Affinity{Weight: defaultWeight}
		m.Constraint = c.constraint(at, &client.Constraint{LTarget: a.LTarget, RTarget: a.RTarget, Operand: a.Operand}, false)
		if a.Weight != nil {
			if m.Weight = *a.Weight; m.Weight < -100 || m.Weight > 100 {
				c.add(at+".Weight", fmt.Sprintf("invalid weight %d: must be between -100 and 100", m.Weight), "a negative weight repels")
			}
		}
		all = append(all, m)
	}
	return all
}

func (c *conversion) spreads(path string, list []*client.Spread) []model.Spread {
	var all []model.Spread
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if s == nil {
			c.add(at, "spread is null", "remove it")
			continue
		}
		m := model.Spread{Attribute: c.attribute(at+".Attribute", s.Attribute), Weight: defaultWeight, MaxSkew: s.MaxSkew}
		if s.Weight != nil {
			m.Weight = *s.Weight
		}
		for k, t := range s.SpreadTarget {
			if t == nil {
				c.add(fmt.Sprintf("%s.SpreadTarget[%d]", at, k), "target is null", "remove it")
				continue
			}
			if m.Targets == nil {
				m.Targets = map[string]int{}
			}
			if _, twice := m.Targets[t.Value]; twice {
				c.add(fmt.Sprintf("%s.SpreadTarget[%d].Value", at, k), fmt.Sprintf("duplicate target %.100q", t.Value), "list each value once")
			}
			m.Targets[t.Value] = t.Percent
		}
		c.checkSpread(at, s, &m)
		all = append(all, m)
	}
	return all
}

func (c *conversion) terms(path string, list []*client.LabelTerm) []model.LabelTerm {
	var all []model.LabelTerm
	for i, t := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if t == nil {
			c.add(at, "label term is null", "remove it")
			continue
		}
		if len(t.Labels) == 0 {
			c.add(at+".Labels", "labels are missing", "set the labels of the allocations to match, such as {app: web}")
		}
		c.checkKeys(at+".Labels", t.Labels)
		m := model.LabelTerm{Labels: clone(t.Labels), TopologyKey: model.TopologyNode}
		if t.TopologyKey != "" {
			if m.TopologyKey = c.attribute(at+".TopologyKey", t.TopologyKey); m.TopologyKey == "node.id" {
				m.TopologyKey = model.TopologyNode
			}
		}
		all = append(all, m)
	}
	return all
}

// attribute converts Nomad's attribute references: ${attr.x} and ${meta.x} become x,
// and ${node.class} becomes node.class. It returns plain names unchanged.
func (c *conversion) attribute(path, target string) string {
	inner, braced := strings.CutPrefix(target, "${")
	if !braced {
		if strings.Contains(target, "${") {
			c.add(path, fmt.Sprintf("invalid attribute %.100q: expected one reference", target), "write ${attr.NAME}, or the name alone")
		}
		return target
	}
	inner, closed := strings.CutSuffix(inner, "}")
	name := inner
	for _, prefix := range []string{"attr.", "meta.", "device.attr."} {
		if rest, ok := strings.CutPrefix(inner, prefix); ok {
			name = rest
		}
	}
	switch {
	case inner == "node.unique.id":
		return "node.id"
	case inner == "node.unique.name":
		return "unique.hostname"
	case inner == "node.class", inner == "node.datacenter", inner == "node.id":
		return inner
	case !closed || name == "" || name == inner || strings.ContainsAny(name, "${}"):
		c.add(path, fmt.Sprintf("invalid attribute %.100q", target), "write ${attr.NAME}, ${meta.NAME}, ${node.class}, ${node.datacenter} or ${node.unique.id}")
	}
	return name
}

// The API represents the list of values of a constraint as one string: separated by
// commas, or a JSON list if a value contains a comma or outer spaces.

func splitValues(text string) []string {
	if strings.HasPrefix(text, "[") {
		var list []string
		if json.Unmarshal([]byte(text), &list) == nil {
			return list
		}
	}
	if text == "" {
		return nil
	}
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

func joinValues(values []string) string {
	text := strings.Join(values, ",")
	if slices.Equal(splitValues(text), values) {
		return text
	}
	if values == nil {
		return ""
	}
	list, _ := json.Marshal(values) // marshalling strings cannot fail
	return string(list)
}
