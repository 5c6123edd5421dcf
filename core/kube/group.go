package kube

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// Group is what a pod wants, as a group of one instance. Own says whether the pod
// is one of a DaemonSet, whose pods each name their node: that is left out.
func (t *Translator) Group(p *Pod, own bool) *model.Group {
	g := &model.Group{
		Name: "pods", Count: 1, MaxParallelEvictions: 1,
		Resources: t.resources(t.podRequests(p)), Ports: t.hostPorts(p), Labels: t.labels(p),
		Tolerations: t.tolerations(p), KillTimeout: int64(gracePeriod(p)),
	}
	t.nodes(p, g, own)
	t.pods(p, g)
	t.spread(p, g)
	t.unexpressed(p)
	return g
}

// gracePeriod is how long a pod may take to stop; 30 s where it does not say.
func gracePeriod(p *Pod) time.Duration {
	if s := p.Spec.TerminationGracePeriod; s != nil {
		return time.Duration(min(max(*s, 0), 365*24*3600)) * time.Second
	}
	return 30 * time.Second
}

// VolumesNote is what Notes say of pods whose volumes may bind them to nodes.
const VolumesNote = "pods with volumes that may bind them to nodes or zones, or run into limits of volumes a node"

// unexpressed names what a pod says and nothing here can say.
func (t *Translator) unexpressed(p *Pod) {
	s := &p.Spec
	if slices.ContainsFunc(s.Volumes, func(v Volume) bool { return v.restrictsNodes() }) {
		t.Report.warn(VolumesNote, "placed as if every node reached them")
	}
	if len(s.ResourceClaims) > 0 {
		t.Report.warn("pods with resource claims (dynamic resource allocation)", "placed as if they had none")
	}
	if isSet(s.SchedulingGroup) || isSet(s.WorkloadRef) {
		t.Report.warn("pods of a scheduling group (gang)", "placed one by one")
	}
	if s.OS != nil && s.OS.Name != "" && s.OS.Name != "linux" {
		t.Report.info("pods that name an operating system", "placed by their selectors and tolerations alone, as kube-scheduler does")
	}
	if s.SchedulerName != "" && s.SchedulerName != "default-scheduler" {
		t.Report.info("pods of other schedulers than default-scheduler", "placed by the same rules as all")
	}
}

// nodes translates where among the nodes a pod wants to be.
func (t *Translator) nodes(p *Pod, g *model.Group, own bool) {
	for _, key := range slices.Sorted(maps.Keys(p.Spec.NodeSelector)) {
		g.Constraints = append(g.Constraints, t.require(&Requirement{Key: key, Operator: "In", Values: []string{p.Spec.NodeSelector[key]}}))
	}
	if p.Spec.Affinity == nil || p.Spec.Affinity.Node == nil {
		return
	}
	a := p.Spec.Affinity.Node
	if a.Required != nil {
		terms := a.Required.Terms
		if own {
			terms = withoutOwnNode(terms)
		}
		if len(terms) > 0 || !own {
			g.Constraints = append(g.Constraints, t.requireTerms(terms)...)
		}
	}
	for i := range a.Preferred {
		wish := &a.Preferred[i]
		if len(wish.Preference.Expressions)+len(wish.Preference.Fields) == 0 || wish.Weight == 0 {
			continue // a term without requirements is of no node
		}
		g.Affinities = append(g.Affinities, model.Affinity{
			Constraint: t.single(&wish.Preference), Weight: int(min(max(wish.Weight, 1), 100)),
		})
	}
}

// withoutOwnNode drops the node that the DaemonSet's controller chose for a pod.
func withoutOwnNode(terms []NodeTerm) []NodeTerm {
	var list []NodeTerm
	for _, term := range terms {
		term.Fields = nil
		if len(term.Expressions) == 0 {
			return nil // every node
		}
		list = append(list, term)
	}
	return list
}

// requireTerms is constraints that hold where one of the terms does.
func (t *Translator) requireTerms(terms []NodeTerm) []model.Constraint {
	if len(terms) == 1 && len(terms[0].Expressions)+len(terms[0].Fields) > 0 {
		var list []model.Constraint
		for i := range terms[0].Expressions {
			list = append(list, t.require(&terms[0].Expressions[i]))
		}
		for i := range terms[0].Fields {
			list = append(list, t.requireField(&terms[0].Fields[i]))
		}
		return list
	}
	return []model.Constraint{t.requireNodeSet(terms)}
}

// single is one constraint that holds where a term does.
func (t *Translator) single(term *NodeTerm) model.Constraint {
	switch {
	case len(term.Expressions) == 1 && len(term.Fields) == 0:
		return t.require(&term.Expressions[0])
	case len(term.Fields) == 1 && len(term.Expressions) == 0:
		return t.requireField(&term.Fields[0])
	}
	return t.requireNodeSet([]NodeTerm{*term})
}

// requireNodeSet tells terms by an attribute of the nodes for which one of them holds.
func (t *Translator) requireNodeSet(terms []NodeTerm) model.Constraint {
	for i := range terms {
		for _, r := range slices.Concat(terms[i].Expressions, terms[i].Fields) {
			t.checkOperator(&r)
		}
	}
	name := t.nodeSet(canonical(terms), func(n *model.Node) bool {
		return slices.ContainsFunc(terms, func(term NodeTerm) bool { return term.matches(n.ID, n.Attributes) })
	})
	t.Report.info("node affinities that no single constraint can say", "told by an attribute of the nodes that they match, "+nodeSetPrefix+"N")
	return model.Constraint{Attribute: name, Operator: model.OpIsSet}
}

func (t *Translator) checkOperator(r *Requirement) {
	if !r.isKnown() {
		t.Report.warn("requirements with an operator that is not known", "taken never to hold")
	}
}

func (t *Translator) requireField(r *Requirement) model.Constraint {
	if r.Key == "metadata.name" && r.Operator == "In" && len(r.Values) == 1 && r.Values[0] != "" {
		return model.Constraint{Attribute: "node.id", Operator: model.OpEqual, Value: r.Values[0]}
	}
	return t.requireNodeSet([]NodeTerm{{Fields: []Requirement{*r}}})
}

// require is a requirement as a constraint.
func (t *Translator) require(r *Requirement) model.Constraint {
	plain := r.Key != "" && !slices.Contains(r.Values, "")
	c := model.Constraint{Attribute: r.Key}
	switch {
	case r.Operator == "In" && r.Key != "" && len(r.Values) == 1 && r.Values[0] == "":
		c.Operator, c.Value = model.OpRegexp, "^$"
		return c
	case r.Operator == "In" && plain && len(r.Values) == 1:
		c.Operator, c.Value = model.OpEqual, r.Values[0]
		return c
	case r.Operator == "NotIn" && plain && len(r.Values) == 1:
		c.Operator, c.Value = model.OpNotEqual, r.Values[0]
		return c
	case (r.Operator == "In" || r.Operator == "NotIn") && plain && len(r.Values) > 1:
		c.Operator, c.Values = model.OpIn, slices.Sorted(slices.Values(r.Values))
		if r.Operator == "NotIn" {
			c.Operator = model.OpNotIn
		}
		return c
	case r.Operator == "Exists" && r.Key != "":
		c.Operator = model.OpIsSet
		return c
	case r.Operator == "DoesNotExist" && r.Key != "":
		c.Operator = model.OpIsNotSet
		return c
	case (r.Operator == "Gt" || r.Operator == "Lt") && plain && len(r.Values) == 1 && t.isNumeric(r.Key, r.Values[0]):
		c.Operator, c.Value = model.OpGreater, r.Values[0]
		if r.Operator == "Lt" {
			c.Operator = model.OpLess
		}
		return c
	}
	return t.requireNodeSet([]NodeTerm{{Expressions: []Requirement{*r}}})
}

// isNumeric is whether every value of a label is a whole number, as is the other.
func (t *Translator) isNumeric(label, other string) bool {
	all, known := t.numeric[label]
	if !known {
		all = t.allNumbers(label)
		t.numeric[label] = all
	}
	return all && isWholeNumber(other)
}

func (t *Translator) allNumbers(label string) bool {
	return !slices.ContainsFunc(t.Nodes, func(n *model.Node) bool {
		value, ok := n.Attributes[label]
		return ok && !isWholeNumber(value)
	})
}

// isWholeNumber is whether a text is a whole number that is compared as one: numbers are
// compared as floats.
func isWholeNumber(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n > -1<<53 && n < 1<<53
}

// pods translates where a pod wants to be with regard to others.
func (t *Translator) pods(p *Pod, g *model.Group) {
	a := p.Spec.Affinity
	if a == nil {
		return
	}
	if a.Pod != nil {
		for i := range a.Pod.Required {
			g.Colocate = t.term(p, &a.Pod.Required[i], g.Colocate, "pod affinities")
		}
		t.Report.Add(Note{Count: len(a.Pod.Preferred), Subject: "preferred pod affinities", Handling: "left out: they choose among nodes with room, and keep nobody off any"})
	}
	if a.PodAnti != nil {
		for i := range a.PodAnti.Required {
			g.Separate = t.term(p, &a.PodAnti.Required[i], g.Separate, "pod anti-affinities")
		}
		t.Report.Add(Note{Count: len(a.PodAnti.Preferred), Subject: "preferred pod anti-affinities", Handling: "left out: they choose among nodes with room, and keep nobody off any"})
	}
}

// term translates one term of pod affinity, and appends what it comes to.
func (t *Translator) term(p *Pod, w *PodTerm, list []model.LabelTerm, what string) []model.LabelTerm {
	own := p.namespace()
	here := len(w.Namespaces) == 0 && w.NamespaceSelector == nil || slices.Contains(w.Namespaces, own)
	elsewhere := w.NamespaceSelector != nil || slices.ContainsFunc(w.Namespaces, func(n string) bool { return n != own })
	if elsewhere {
		t.Report.warn(what+" towards pods of other namespaces", "told within the pod's own namespace alone")
	}
	if w.NamespaceSelector != nil && len(w.NamespaceSelector.Labels)+len(w.NamespaceSelector.Expressions) == 0 {
		here = true // every namespace
	}
	selector, ok := t.narrowed(p, w.Selector, w.MatchLabelKeys, w.MismatchLabelKeys)
	switch {
	case w.TopologyKey == "":
		t.Report.warn(what+" without a topology key", "left out")
		return list
	case !ok:
		t.Report.warn(what+" without a selector, which select nothing", "left out")
		return list
	case !here:
		return list
	}
	return append(list, model.LabelTerm{Labels: t.labelFor(own, selector), TopologyKey: t.topology(w.TopologyKey)})
}

// narrowed is a selector with the labels of the pod itself that it shall match,
// and those that it shall not.
func (t *Translator) narrowed(p *Pod, s *LabelSelector, match, mismatch []string) (*LabelSelector, bool) {
	if s == nil {
		return nil, false
	}
	if len(match)+len(mismatch) == 0 {
		return s, true
	}
	own := &LabelSelector{Labels: s.Labels, Expressions: slices.Clone(s.Expressions)}
	for i, keys := range [][]string{match, mismatch} {
		for _, key := range keys {
			if value, ok := p.Metadata.Labels[key]; ok {
				own.Expressions = append(own.Expressions, Requirement{Key: key, Operator: [...]string{"In", "NotIn"}[i], Values: []string{value}})
			}
		}
	}
	return own, true
}

// topology is a topology key in our words.
func (t *Translator) topology(key string) string {
	if key == hostname && t.uniqueHostnames {
		return model.TopologyNode
	}
	return key
}

// spread translates how a pod wants to be spread.
func (t *Translator) spread(p *Pod, g *model.Group) {
	for i := range p.Spec.TopologySpreadConstraints {
		w := &p.Spec.TopologySpreadConstraints[i]
		selector, ok := t.narrowed(p, w.Selector, w.MatchLabelKeys, nil)
		if !ok || w.TopologyKey == "" || !selector.Matches(p.Metadata.Labels) {
			t.Report.warn("topology spread constraints that do not select the pod itself", "left out")
			continue
		}
		attribute := w.TopologyKey
		if attribute == hostname && t.uniqueHostnames {
			attribute = "node.id"
		}
		hard := cmp.Or(w.WhenUnsatisfiable, "DoNotSchedule") == "DoNotSchedule"
		if slices.ContainsFunc(g.Spread, func(s model.Spread) bool { return s.Attribute == attribute && (s.MaxSkew > 0) == hard }) {
			t.Report.warn("topology spread constraints beside another one of the same key", "left out")
			continue
		}
		t.countSpread(p, selector)
		rule := model.Spread{Attribute: attribute, Weight: 50}
		if hard {
			rule.MaxSkew = int(max(w.MaxSkew, 1))
		}
		if hard && w.MinDomains != nil && *w.MinDomains > 1 {
			t.Report.warn("topology spread constraints with minDomains", "told without it")
		}
		if hard && (w.NodeTaintsPolicy == "Honor" || w.NodeAffinityPolicy == "Ignore") {
			t.Report.warn("topology spread constraints with a policy for nodes of its own", "domains are counted by the pod's own constraints")
		}
		g.Spread = append(g.Spread, rule)
	}
}

// countSpread notes that the pods of a selector are spread.
func (t *Translator) countSpread(p *Pod, s *LabelSelector) {
	if t.frozen {
		return
	}
	key := p.namespace() + " " + canonical(s)
	if t.spreads[key] == nil {
		t.spreads[key] = &spreadSelector{namespace: p.namespace(), selector: s}
	}
	t.spreads[key].pods++
}

// namespace is the pod's, default where it names none.
func (p *Pod) namespace() string { return cmp.Or(p.Metadata.Namespace, model.DefaultNamespace) }
