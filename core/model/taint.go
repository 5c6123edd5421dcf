package model

import "fmt"

// TaintEffect is what a taint does to groups that do not tolerate it.
type TaintEffect string

// The effects.
const (
	NoSchedule       TaintEffect = "NoSchedule"       // they are not placed there
	PreferNoSchedule TaintEffect = "PreferNoSchedule" // they are placed elsewhere where there is room
)

// TaintEffects lists every effect in the order in which messages name them.
var TaintEffects = []TaintEffect{NoSchedule, PreferNoSchedule}

// Taint keeps groups off a node that do not tolerate it. What runs there
// already stays.
type Taint struct {
	Key, Value string
	Effect     TaintEffect
}

// String is key=value:effect, as Kubernetes writes it.
func (t Taint) String() string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

// TolerationOperator relates a toleration to the value of a taint.
type TolerationOperator string

// The operators.
const (
	TolerationEqual  TolerationOperator = "Equal"
	TolerationExists TolerationOperator = "Exists"
)

// Toleration lets a group go to nodes with a taint, whatever its effect.
type Toleration struct {
	Key      string             // "", with Exists: every taint
	Operator TolerationOperator // "": Equal
	Value    string             // of Equal
}

// Tolerates is whether the toleration is of the taint.
func (t *Toleration) Tolerates(taint *Taint) bool {
	if t.Operator == TolerationExists {
		return t.Key == "" || t.Key == taint.Key
	}
	return t.Key == taint.Key && t.Value == taint.Value
}

// Repelled is the first taint of the node that keeps the group off it; nil when
// there is none.
func (g *Group) Repelled(n *Node) *Taint {
	for i := range n.Taints {
		if t := &n.Taints[i]; t.Effect == NoSchedule && !g.tolerates(t) {
			return t
		}
	}
	return nil
}

// Discouraged is how many taints of the node make the group prefer others.
func (g *Group) Discouraged(n *Node) (count int) {
	for i := range n.Taints {
		if t := &n.Taints[i]; t.Effect == PreferNoSchedule && !g.tolerates(t) {
			count++
		}
	}
	return count
}

func (g *Group) tolerates(taint *Taint) bool {
	for i := range g.Tolerations {
		if g.Tolerations[i].Tolerates(taint) {
			return true
		}
	}
	return false
}

// Discourages is whether some taint of the node is a wish rather than a rule.
func (n *Node) Discourages() bool {
	for i := range n.Taints {
		if n.Taints[i].Effect == PreferNoSchedule {
			return true
		}
	}
	return false
}
