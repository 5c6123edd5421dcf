package kube

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/core/model"
)

// Translator turns pods into groups of one cluster: one set of nodes, whose
// attributes and taints say what a pod's wishes come to.
//
// What a constraint or a term of ours cannot say is told by an attribute or a
// label of its own, which is put on the nodes or the groups that are meant: exact
// for this cluster, and no more than that.
type Translator struct {
	Nodes  []*model.Node // attributes are added to those of these
	Report *Report

	retained    map[string]bool // resources; nil: all
	considered  map[string]bool // resources of which told was chosen
	hasPodSlots bool            // a pod takes one of the node's slots
	amounts     amounts

	uniqueHostnames     bool                              // hostnames tell nodes apart
	noExecuteKeys       map[string]bool                   // keys of taints of effect NoExecute
	keepsAllTolerations bool                              // nodes may get other taints, so that every toleration is told
	nodeSets            map[string]string                 // attributes made, by what they stand for
	nodeSetMembers      map[string]func(*model.Node) bool // of which nodes an attribute was made
	selectorLabels      map[string][]*selectorLabel       // labels made, by namespace
	selectorByKey       map[string]*selectorLabel
	ports               portMap
	readLabels          map[string]bool // labels that some selector reads
	numeric             map[string]bool // by label: every value is a whole number
	spreads             map[string]*spreadSelector

	// frozen is whether nodes and groups are in use already, so that no attribute and
	// no label may be added to them. Whoever would need one is new: see Roster.
	frozen, needsRebuild bool

	wrongs     []error // the first of what is not as the API has it, and was taken for something
	wrongCount int

	firstNoAmount error
}

// addInvalid notes something that no API server would have let through.
func (t *Translator) addInvalid(err error) {
	if t.wrongCount++; len(t.wrongs) < maxProblems {
		t.wrongs = append(t.wrongs, err)
	}
}

// InvalidValues is everything that is not as the API has it, though its object could be read:
// amounts and times that are none. It names the first of them.
func (t *Translator) InvalidValues() error {
	all := slices.Clone(t.wrongs)
	if more := t.wrongCount - len(all); more > 0 {
		all = append(all, fmt.Errorf("and %d more", more))
	}
	return errors.Join(all...)
}

// spreadSelector is a selector of topology spread constraints.
type spreadSelector struct {
	namespace string
	selector  *LabelSelector
	pods      int
}

const (
	hostname = "kubernetes.io/hostname"
	// nodeSetPrefix and a number is an attribute that is made.
	nodeSetPrefix = "cede.import/nodes-"
)

// selectorLabel is a label that stands for a selector.
type selectorLabel struct {
	label    string
	selector *LabelSelector
}

// NewTranslator makes a translator for nodes that were translated already, such
// as those of a scenario. Its groups' resources are all told.
func NewTranslator(nodes []*model.Node, notes *Report) *Translator {
	t := &Translator{
		Nodes: nodes, Report: notes, amounts: amounts{}, nodeSets: map[string]string{}, nodeSetMembers: map[string]func(*model.Node) bool{}, selectorByKey: map[string]*selectorLabel{},
		readLabels: map[string]bool{}, numeric: map[string]bool{}, spreads: map[string]*spreadSelector{}, selectorLabels: map[string][]*selectorLabel{},
	}
	t.inspectNodes()
	return t
}

// inspectNodes finds out what the nodes' labels and taints can tell.
func (t *Translator) inspectNodes() {
	names := make(map[string]bool, len(t.Nodes))
	t.uniqueHostnames = true
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

func cutNumber(name, prefix string) (int, bool) {
	if len(name) <= len(prefix) || name[:len(prefix)] != prefix {
		return 0, false
	}
	n, err := strconv.Atoi(name[len(prefix):])
	return n, err == nil
}

// nodeSet is the attribute of the nodes for which holds is true.
func (t *Translator) nodeSet(of string, holds func(*model.Node) bool) string {
	if name, ok := t.nodeSets[of]; ok {
		return name
	}
	if t.frozen {
		t.needsRebuild = true
		return nodeSetPrefix
	}
	name := t.unusedNodeSet()
	t.nodeSets[of], t.nodeSetMembers[name] = name, holds
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

// unusedNodeSet is a name that no attribute has.
func (t *Translator) unusedNodeSet() string {
	for i := 1; ; i++ {
		name := nodeSetPrefix + strconv.Itoa(i)
		taken := false
		for _, other := range t.nodeSets {
			taken = taken || other == name
		}
		if !taken {
			return name
		}
	}
}

// labelFor is the label of the groups of a namespace that a selector selects.
func (t *Translator) labelFor(namespace string, s *LabelSelector) map[string]string {
	if pairs, ok := s.pairs(); ok {
		return pairs
	}
	key := namespace + " " + canonical(s)
	made := t.selectorByKey[key]
	if made == nil && t.frozen {
		t.needsRebuild = true
		return map[string]string{SelectorLabel(s): "true"}
	}
	if made == nil {
		made = &selectorLabel{label: SelectorLabel(s), selector: s}
		t.selectorByKey[key] = made
		t.selectorLabels[namespace] = append(t.selectorLabels[namespace], made)
	}
	return map[string]string{made.label: "true"}
}

// Label adds to a group's labels those that stand for selectors.
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

// perInstance are labels that controllers give each pod of a workload another
// value of. They are kept where something selects by them.
var perInstance = []string{
	"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "controller-revision-hash",
	"pod-template-generation", "batch.kubernetes.io/job-completion-index", "controller-uid", "batch.kubernetes.io/controller-uid",
}

// labels are a pod's without those that only tell its siblings apart.
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
