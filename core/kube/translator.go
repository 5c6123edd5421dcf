package kube

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/core/model"
)

// A Translator translates pods into groups for one set of nodes.
//
// If a constraint or a label term of the model cannot express a requirement, the
// translator evaluates it and stores the result: as an attribute on the nodes that
// match, or as a label on the groups that a selector selects. Both are exact for these
// nodes and groups only.
type Translator struct {
	Nodes  []*model.Node // the translator adds attributes to them
	Report *Report

	retained    map[string]bool // resources to translate; nil: all
	considered  map[string]bool // resources from which retained was chosen
	hasPodSlots bool            // each pod occupies one pod slot of its node
	amounts     amounts

	uniqueHostnames bool            // each node has a hostname label of its own
	noExecuteKeys   map[string]bool // keys of taints with effect NoExecute
	nodeSets        map[string]string
	nodeSetMembers  map[string]func(*model.Node) bool // by attribute
	selectorLabels  map[string][]*selectorLabel       // by namespace
	selectorByKey   map[string]*selectorLabel
	ports           portMap
	readLabels      map[string]bool // labels that a selector reads
	numeric         map[string]bool // by label: every value is a whole number
	spreads         map[string]*spreadSelector
	claimed         claimReader

	// live is set if the translation follows a running cluster: nodes may get other
	// taints later, and budgets keep their names.
	live bool
	// frozen is set once nodes and groups are in use, so that no attribute or label may
	// be added to them. If a pod requires a new one, needsRebuild is set instead. See
	// IncrementalCluster.
	frozen, needsRebuild bool

	invalid invalidValues
}

// An invalidValues collects values that an API server would have rejected.
type invalidValues struct {
	first       []error // at most maxProblems
	count       int
	firstAmount error
	lines       map[*Metadata]int // line numbers of objects, if they are read from a file
}

func (v *invalidValues) add(err error) {
	if v.count++; len(v.first) < maxProblems {
		v.first = append(v.first, err)
	}
}

// InvalidValues returns an error that lists the first invalid quantities and timestamps
// of objects that were otherwise readable, or nil if there are none. It also reports
// whether one of them is a quantity.
func (t *Translator) InvalidValues() (hasQuantity bool, err error) {
	all := slices.Clone(t.invalid.first)
	if more := t.invalid.count - len(all); more > 0 {
		all = append(all, fmt.Errorf("and %d more", more))
	}
	return t.invalid.firstAmount != nil, errors.Join(all...)
}

// A spreadSelector is a selector of topology spread constraints.
type spreadSelector struct {
	namespace string
	selector  *LabelSelector
	pods      int // pods with such a constraint
}

const (
	hostname = "kubernetes.io/hostname"
	// nodeSetPrefix and a number form the attribute of a node set.
	nodeSetPrefix = "cede.import/nodes-"
)

// A selectorLabel is a label on every group that a selector selects.
type selectorLabel struct {
	label    string
	selector *LabelSelector
}

// NewTranslator returns a translator for nodes that are already translated, such as
// those of a scenario. It retains all resources.
func NewTranslator(nodes []*model.Node, report *Report) *Translator {
	t := &Translator{
		Nodes: nodes, Report: report, amounts: amounts{}, nodeSets: map[string]string{}, nodeSetMembers: map[string]func(*model.Node) bool{},
		selectorByKey: map[string]*selectorLabel{}, readLabels: map[string]bool{}, numeric: map[string]bool{}, spreads: map[string]*spreadSelector{},
		selectorLabels: map[string][]*selectorLabel{},
	}
	t.inspectNodes()
	return t
}

// inspectNodes derives the inputs of the translation from labels, taints and capacity.
func (t *Translator) inspectNodes() {
	names := make(map[string]bool, len(t.Nodes))
	t.uniqueHostnames = true
	t.claimed.indexDevices(t.Nodes)
	t.noExecuteKeys = map[string]bool{}
	for _, n := range t.Nodes {
		host, ok := n.Attributes[hostname]
		t.uniqueHostnames = t.uniqueHostnames && ok && !names[host]
		names[host] = true
		for _, taint := range n.Taints {
			if taint.Effect == model.NoExecute {
				t.noExecuteKeys[taint.Key] = true
			}
		}
		for key := range n.Attributes {
			if _, ok := cutNumber(key, nodeSetPrefix); ok {
				t.nodeSets["taken "+key] = key
			}
		}
		if _, ok := n.Capacity[podSlots]; ok {
			t.hasPodSlots = true
		}
	}
}

// cutNumber returns the number after a prefix.
func cutNumber(name, prefix string) (int, bool) {
	if len(name) <= len(prefix) || name[:len(prefix)] != prefix {
		return 0, false
	}
	n, err := strconv.Atoi(name[len(prefix):])
	return n, err == nil
}

// nodeSet returns the attribute of the nodes for which holds returns true. Equal
// definitions share one attribute. It sets needsRebuild if the translator is frozen and
// the definition is new.
func (t *Translator) nodeSet(definition string, holds func(*model.Node) bool) string {
	if name, ok := t.nodeSets[definition]; ok {
		return name
	}
	if t.frozen {
		t.needsRebuild = true
		return nodeSetPrefix
	}
	name := t.unusedNodeSet()
	t.nodeSets[definition], t.nodeSetMembers[name] = name, holds
	for _, n := range t.Nodes {
		if holds(n) {
			setAttribute(n, name)
		}
	}
	return name
}

func setAttribute(n *model.Node, name string) {
	if n.Attributes == nil {
		n.Attributes = map[string]string{}
	}
	n.Attributes[name] = "true"
}

// unusedNodeSet returns the first attribute name that is not in use.
func (t *Translator) unusedNodeSet() string {
	for i := 1; ; i++ {
		name := nodeSetPrefix + strconv.Itoa(i)
		used := false
		for _, other := range t.nodeSets {
			used = used || other == name
		}
		if !used {
			return name
		}
	}
}

// labelFor returns labels that exactly the groups of the namespace have that the
// selector selects. It sets needsRebuild if the translator is frozen and a new selector
// label would be required.
func (t *Translator) labelFor(namespace string, s *LabelSelector) map[string]string {
	if pairs, ok := s.pairs(); ok {
		return pairs
	}
	key := namespace + " " + canonical(s)
	label := t.selectorByKey[key]
	if label == nil && t.frozen {
		t.needsRebuild = true
		return map[string]string{SelectorLabel(s): "true"}
	}
	if label == nil {
		label = &selectorLabel{label: SelectorLabel(s), selector: s}
		t.selectorByKey[key] = label
		t.selectorLabels[namespace] = append(t.selectorLabels[namespace], label)
	}
	return map[string]string{label.label: "true"}
}

// Label returns the labels of a group together with the selector labels that apply to
// it. It returns the argument itself if none applies.
func (t *Translator) Label(namespace string, labels map[string]string) map[string]string {
	var own []*selectorLabel
	for _, s := range t.selectorLabels[namespace] {
		if s.selector.Matches(labels) {
			own = append(own, s)
		}
	}
	if len(own) == 0 {
		return labels
	}
	more := make(map[string]string, len(labels)+len(own))
	maps.Copy(more, labels)
	for _, s := range own {
		more[s.label] = "true"
	}
	return more
}

// perInstance lists the labels that controllers set to a different value for each pod of a workload. They
// are dropped unless a selector reads them: otherwise each pod would be its own group.
var perInstance = []string{
	"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "controller-revision-hash",
	"pod-template-generation", "batch.kubernetes.io/job-completion-index", "controller-uid", "batch.kubernetes.io/controller-uid",
}

// labels returns the labels of a pod without the per-instance labels that no selector
// reads.
func (t *Translator) labels(p *Pod) map[string]string {
	if !slices.ContainsFunc(perInstance, func(k string) bool { _, ok := p.Metadata.Labels[k]; return ok && !t.readLabels[k] }) {
		return p.Metadata.Labels
	}
	kept := make(map[string]string, len(p.Metadata.Labels))
	for k, v := range p.Metadata.Labels {
		if t.readLabels[k] || !slices.Contains(perInstance, k) {
			kept[k] = v
		}
	}
	return kept
}
