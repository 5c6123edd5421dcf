package kube

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// Group translates a pod into a group with one instance. If daemonSet is true the pod
// belongs to a DaemonSet; the node that its controller chose is then not a
// constraint.
func (t *Translator) Group(p *Pod, daemonSet bool) *model.Group {
	g := &model.Group{
		Name: "pods", Count: 1, MaxParallelEvictions: 1,
		Resources: t.resources(t.requestReader().pod(p)), Ports: t.hostPorts(p), Labels: t.labels(p),
		Tolerations: t.tolerations(p), KillTimeout: int64(gracePeriod(p)),
	}
	t.nodes(p, g, daemonSet)
	t.pods(p, g)
	t.spread(p, g)
	t.requestDevices(p, g)
	reportUnsupported(p, t.Report)
	return g
}

// gracePeriod returns the termination grace period of a pod; default: 30 s.
func gracePeriod(p *Pod) time.Duration {
	if s := p.Spec.TerminationGracePeriod; s != nil {
		return time.Duration(min(max(*s, 0), 365*24*3600)) * time.Second
	}
	return 30 * time.Second
}

// VolumesNote is the subject of the note on pods with volumes that may restrict their
// nodes.
const VolumesNote = "pods with volumes that may restrict them to nodes or zones, or reach the volume limit of a node"

// reportUnsupported reports the fields of a pod that have no equivalent in the model.
func reportUnsupported(p *Pod, r *Report) {
	s := &p.Spec
	if slices.ContainsFunc(s.Volumes, func(v Volume) bool { return v.restrictsNodes() }) {
		r.warn(VolumesNote, "placed as if all nodes could attach them")
	}
	if isSet(s.WorkloadRef) {
		r.warn("pods of a workload (the gangs of Kubernetes 1.35)", "placed one by one")
	}
	if s.OS != nil && s.OS.Name != "" && s.OS.Name != "linux" {
		r.info("pods that name an operating system", "placed by their selectors and tolerations only, as in kube-scheduler")
	}
	if s.SchedulerName != "" && s.SchedulerName != "default-scheduler" {
		r.info("pods of other schedulers than default-scheduler", "placed by the same rules as all pods")
	}
}

// nodes translates the node selector and the node affinity of a pod.
func (t *Translator) nodes(p *Pod, g *model.Group, daemonSet bool) {
	for _, key := range slices.Sorted(maps.Keys(p.Spec.NodeSelector)) {
		g.Constraints = append(g.Constraints, t.require(&Requirement{Key: key, Operator: "In", Values: []string{p.Spec.NodeSelector[key]}}))
	}
	if p.Spec.Affinity == nil || p.Spec.Affinity.Node == nil {
		return
	}
	a := p.Spec.Affinity.Node
	if a.Required != nil {
		terms := a.Required.Terms
		if daemonSet {
			terms = withoutOwnNode(terms)
		}
		if len(terms) > 0 || !daemonSet {
			g.Constraints = append(g.Constraints, t.requireTerms(terms)...)
		}
	}
	for i := range a.Preferred {
		preferred := &a.Preferred[i]
		if len(preferred.Preference.Expressions)+len(preferred.Preference.Fields) == 0 || preferred.Weight == 0 {
			continue // a term without requirements matches no node
		}
		g.Affinities = append(g.Affinities, model.Affinity{
			Constraint: t.single(&preferred.Preference), Weight: int(min(max(preferred.Weight, 1), 100)),
		})
	}
}

// withoutOwnNode removes the field terms by which the DaemonSet controller binds a
// pod to its node. It returns nil if a term has no other requirements: it matches
// every node.
func withoutOwnNode(terms []NodeTerm) []NodeTerm {
	var list []NodeTerm
	for _, term := range terms {
		term.Fields = nil
		if len(term.Expressions) == 0 {
			return nil // matches every node
		}
		list = append(list, term)
	}
	return list
}

// requireTerms returns constraints that hold on nodes that match one of the terms.
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

// single returns one constraint that is equivalent to a term.
func (t *Translator) single(term *NodeTerm) model.Constraint {
	switch {
	case len(term.Expressions) == 1 && len(term.Fields) == 0:
		return t.require(&term.Expressions[0])
	case len(term.Fields) == 1 && len(term.Expressions) == 0:
		return t.requireField(&term.Fields[0])
	}
	return t.requireNodeSet([]NodeTerm{*term})
}

// requireNodeSet returns a constraint on the attribute of the nodes that match a term.
func (t *Translator) requireNodeSet(terms []NodeTerm) model.Constraint {
	for i := range terms {
		for _, r := range slices.Concat(terms[i].Expressions, terms[i].Fields) {
			checkOperator(&r, t.Report)
		}
	}
	name := t.nodeSet(canonical(terms), func(n *model.Node) bool {
		return slices.ContainsFunc(terms, func(term NodeTerm) bool { return term.matches(n.ID, n.Attributes) })
	})
	t.Report.info("node affinities without an equivalent single constraint", "replaced by an attribute on matching nodes, "+nodeSetPrefix+"N")
	return model.Constraint{Attribute: name, Operator: model.OpIsSet}
}

// checkOperator reports an unknown operator.
func checkOperator(r *Requirement, report *Report) {
	if !r.isKnown() {
		report.warn("requirements with an unknown operator", "treated as never satisfied")
	}
}

// requireField translates a requirement on a node field.
func (t *Translator) requireField(r *Requirement) model.Constraint {
	if r.Key == "metadata.name" && r.Operator == "In" && len(r.Values) == 1 && r.Values[0] != "" {
		return model.Constraint{Attribute: "node.id", Operator: model.OpEqual, Value: r.Values[0]}
	}
	return t.requireNodeSet([]NodeTerm{{Fields: []Requirement{*r}}})
}

// require translates a requirement on a node label.
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

// isNumeric reports whether every value of a label is a whole number, and the other
// value as well. Results are cached per label.
func (t *Translator) isNumeric(label, other string) bool {
	all, known := t.numeric[label]
	if !known {
		all = allNumbers(t.Nodes, label)
		t.numeric[label] = all
	}
	return all && isWholeNumber(other)
}

// allNumbers reports whether every node that has the label has a whole number as value.
func allNumbers(nodes []*model.Node, label string) bool {
	return !slices.ContainsFunc(nodes, func(n *model.Node) bool {
		value, ok := n.Attributes[label]
		return ok && !isWholeNumber(value)
	})
}

// isWholeNumber reports whether a text is an integer that a float64 represents
// exactly: the model compares numbers as floats.
func isWholeNumber(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n > -1<<53 && n < 1<<53
}

// pods translates pod affinity and anti-affinity.
func (t *Translator) pods(p *Pod, g *model.Group) {
	a := p.Spec.Affinity
	if a == nil {
		return
	}
	if a.Pod != nil {
		for i := range a.Pod.Required {
			g.Colocate = t.term(p, &a.Pod.Required[i], g.Colocate, "pod affinities")
		}
		t.Report.Add(Note{Count: len(a.Pod.Preferred), Subject: "preferred pod affinities", Handling: "left out: they only rank nodes with free capacity"})
	}
	if a.PodAnti != nil {
		for i := range a.PodAnti.Required {
			g.Separate = t.term(p, &a.PodAnti.Required[i], g.Separate, "pod anti-affinities")
		}
		t.Report.Add(Note{Count: len(a.PodAnti.Preferred), Subject: "preferred pod anti-affinities", Handling: "left out: they only rank nodes with free capacity"})
	}
}

// podGroupLabel is the label of groups whose pods share a topology domain with all other pods
// of their PodGroup. Its value is the name of the PodGroup.
const podGroupLabel = "cede.import/pod-group"

// shareDomain translates the topology constraints of a pod group to which the pods of a group
// of the model belong; nil: to none.
func (g *PodGroup) shareDomain(t *Translator, pods *model.Group) {
	if g == nil {
		return
	}
	if g.Spec.SchedulingConstraints.HasUnknown {
		t.Report.warn("pods of pod groups with scheduling constraints other than topology", "those constraints left out")
	}
	for _, c := range g.Spec.SchedulingConstraints.Topology {
		if c.Key == "" {
			t.Report.warn("pods of pod groups with a topology constraint without a key", "that constraint left out")
			continue
		}
		name := g.Metadata.Name
		if pods.Labels[podGroupLabel] != name {
			labels := make(map[string]string, len(pods.Labels)+1)
			maps.Copy(labels, pods.Labels)
			labels[podGroupLabel] = name
			pods.Labels = labels
		}
		pods.Colocate = append(pods.Colocate, model.LabelTerm{Labels: map[string]string{podGroupLabel: name}, TopologyKey: t.topology(c.Key)})
	}
}

// term translates one term of pod affinity and appends the result to list.
func (t *Translator) term(p *Pod, w *PodTerm, list []model.LabelTerm, subject string) []model.LabelTerm {
	own := p.namespace()
	inNamespace := len(w.Namespaces) == 0 && w.NamespaceSelector == nil || slices.Contains(w.Namespaces, own)
	otherNamespaces := w.NamespaceSelector != nil || slices.ContainsFunc(w.Namespaces, func(n string) bool { return n != own })
	if otherNamespaces {
		t.Report.warn(subject+" to pods of other namespaces", "applied within the pod's own namespace only")
	}
	if w.NamespaceSelector != nil && len(w.NamespaceSelector.Labels)+len(w.NamespaceSelector.Expressions) == 0 {
		inNamespace = true // an empty namespace selector selects every namespace
	}
	selector, ok := narrowed(p, w.Selector, w.MatchLabelKeys, w.MismatchLabelKeys)
	switch {
	case w.TopologyKey == "":
		t.Report.warn(subject+" without a topology key", "left out")
		return list
	case !ok:
		t.Report.warn(subject+" without a selector, which select nothing", "left out")
		return list
	case !inNamespace:
		return list
	}
	return append(list, model.LabelTerm{Labels: t.labelFor(own, selector), TopologyKey: t.topology(w.TopologyKey)})
}

// narrowed returns a selector that also requires the pod's own values of the match
// labels and excludes those of the mismatch labels. It returns false if there is no
// selector.
func narrowed(p *Pod, s *LabelSelector, match, mismatch []string) (*LabelSelector, bool) {
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

// topology returns the model's name of a topology key.
func (t *Translator) topology(key string) string {
	if key == hostname && t.uniqueHostnames {
		return model.TopologyNode
	}
	return key
}

// spread translates topology spread constraints.
func (t *Translator) spread(p *Pod, g *model.Group) {
	for i := range p.Spec.TopologySpreadConstraints {
		w := &p.Spec.TopologySpreadConstraints[i]
		selector, ok := narrowed(p, w.Selector, w.MatchLabelKeys, nil)
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
			t.Report.warn("topology spread constraints with the key of another one of the pod", "left out")
			continue
		}
		t.countSpread(p, selector)
		rule := model.Spread{Attribute: attribute, Weight: 50}
		if hard {
			rule.MaxSkew = int(max(w.MaxSkew, 1))
		}
		if hard && w.MinDomains != nil && *w.MinDomains > 1 {
			t.Report.warn("topology spread constraints with minDomains", "minDomains ignored")
		}
		if hard && (w.NodeTaintsPolicy == "Honor" || w.NodeAffinityPolicy == "Ignore") {
			t.Report.warn("topology spread constraints with nodeTaintsPolicy or nodeAffinityPolicy", "domains are counted by the pod's own constraints")
		}
		g.Spread = append(g.Spread, rule)
	}
}

// countSpread counts the pods that are spread by a selector.
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

// namespace returns the namespace of a pod; default: "default".
func (p *Pod) namespace() string { return cmp.Or(p.Metadata.Namespace, model.DefaultNamespace) }
