package jobspec

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/core/model/jsonschema"
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

// elements yields the elements of a list with their paths. It reports those that are null
// and omits them.
func elements[T any](c *conversion, path, noun string, list []*T) iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		for i, element := range list {
			at := fmt.Sprintf("%s[%d]", path, i)
			if element == nil {
				c.add(at, noun+" is null", "remove it")
			} else if !yield(at, element) {
				return
			}
		}
	}
}

func (c *conversion) constraints(path string, list []*client.Constraint, mayCount bool) []model.Constraint {
	var all []model.Constraint
	for at, k := range elements(c, path, "constraint", list) {
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
	if o, ok := operatorSynonyms[operand]; ok {
		return o
	}
	return model.Operator(operand)
}

// operatorSynonyms holds Nomad's other names of operators.
var operatorSynonyms = map[string]model.Operator{"==": model.OpEqual, "is": model.OpEqual, "": model.OpEqual, "not": model.OpNotEqual}

func (c *conversion) affinities(path string, list []*client.Affinity) []model.Affinity {
	var all []model.Affinity
	for at, a := range elements(c, path, "affinity", list) {
		if len(c.problems) == maxProblems {
			break
		}
		m := model.Affinity{Weight: defaultWeight}
		m.Constraint = c.constraint(at, &client.Constraint{LTarget: a.LTarget, RTarget: a.RTarget, Operand: a.Operand}, false)
		if a.Weight != nil {
			m.Weight = *a.Weight
			c.report(at+".Weight", fieldcheck.AffinityWeight(m.Weight))
		}
		all = append(all, m)
	}
	return all
}

func (c *conversion) spreads(path string, list []*client.Spread) []model.Spread {
	var all []model.Spread
	for at, s := range elements(c, path, "spread", list) {
		m := model.Spread{Attribute: c.attribute(at+".Attribute", s.Attribute), Weight: defaultWeight, MaxSkew: s.MaxSkew}
		if s.Weight != nil {
			m.Weight = *s.Weight
		}
		for at, t := range elements(c, at+".SpreadTarget", "target", s.SpreadTarget) {
			if m.Targets == nil {
				m.Targets = map[string]int{}
			}
			if _, twice := m.Targets[t.Value]; twice {
				c.add(at+".Value", fmt.Sprintf("duplicate target %.100q", t.Value), "list each value once")
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
	for at, t := range elements(c, path, "label term", list) {
		c.report(at+".Labels", fieldcheck.TermLabels(t.Labels))
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
		return model.AttributeName(target)
	}
	inner, closed := strings.CutSuffix(inner, "}")
	name := inner
	for _, prefix := range []string{"attr.", "meta.", "device.attr."} {
		if rest, ok := strings.CutPrefix(inner, prefix); ok {
			name = rest
		}
	}
	switch {
	case inner == "node.unique.name":
		return "unique.hostname"
	case inner == "node.class", inner == "node.datacenter", model.AttributeName(inner) == model.AttributeNodeID:
		return model.AttributeName(inner)
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

// A placementSyntax is the syntax of constraints, affinities and spreads in one dialect.
type placementSyntax struct {
	constraints, affinities, spreads, maxSkew string // names of fields

	constraint func(*object) *client.Constraint // reads all fields of a constraint
	targets    func(*object, *client.Spread)    // reads the targets of a spread
}

var (
	nomadPlacement = placementSyntax{"constraint", "affinity", "spread", "max_skew", nomadConstraint, nomadTargets}
	plainPlacement = placementSyntax{"constraints", "affinities", "spread", "maxSkew", plainConstraint, plainTargets}
)

// read appends the placement rules of an object. If spreads is nil, the object has none.
func (p *placementSyntax) read(o *object, constraints *[]*client.Constraint, affinities *[]*client.Affinity, spreads *[]*client.Spread) {
	o.each("a constraint", p.constraints, "Constraints", func(o *object) {
		*constraints = append(*constraints, p.constraint(o))
	})
	o.each("an affinity", p.affinities, "Affinities", func(o *object) {
		a := &client.Affinity{}
		o.integer("weight", "Weight", setPtr(&a.Weight))
		c := p.constraint(o)
		describeConstraint(o, false)
		a.LTarget, a.RTarget, a.Operand = c.LTarget, c.RTarget, c.Operand
		*affinities = append(*affinities, a)
	})
	if spreads == nil {
		return
	}
	o.each("a spread", p.spreads, "Spreads", func(o *object) {
		s := &client.Spread{}
		o.text("attribute", "Attribute", set(&s.Attribute))
		o.integer("weight", "Weight", setPtr(&s.Weight))
		o.integer(p.maxSkew, "MaxSkew", set(&s.MaxSkew))
		p.targets(o, s)
		describe(o, func(s *jsonschema.Schema) {
			s.Require("attribute")
			s.SetMinimum("weight", 1)
			targets := jsonschema.Integer(0, 100)
			s.Set("targets", jsonschema.Map(targets))
		})
		o.done()
		*spreads = append(*spreads, s)
	})
}

// terms reads the label terms of a field; key is the name of the topology key.
func (o *object) terms(what, name, path, key string) []*client.LabelTerm {
	var terms []*client.LabelTerm
	o.each(what, name, path, func(o *object) {
		t := &client.LabelTerm{}
		o.textTable("labels", "Labels", set(&t.Labels))
		o.text(key, "TopologyKey", set(&t.TopologyKey))
		describe(o, func(s *jsonschema.Schema) { s.Require("labels") })
		o.done()
		terms = append(terms, t)
	})
	return terms
}
