package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// TaintEffect is the effect of a taint on groups that do not tolerate it.
type TaintEffect string

// The effects.
const (
	NoSchedule       TaintEffect = "NoSchedule"       // not placed on the node
	PreferNoSchedule TaintEffect = "PreferNoSchedule" // placed on other nodes if possible
	NoExecute        TaintEffect = "NoExecute"        // not placed on the node, and evicted from it
)

// TaintEffects lists every effect in the order in which messages name them.
var TaintEffects = []TaintEffect{NoSchedule, PreferNoSchedule, NoExecute}

// A Taint excludes groups that do not tolerate it from a node. Existing allocations
// remain, unless its effect is NoExecute.
type Taint struct {
	Key, Value string
	Effect     TaintEffect
	Set        bool // set by an operator: it survives a new registration of the node
	// Since is when the node got a taint of effect NoExecute, in Unix nanoseconds;
	// otherwise 0.
	Since int64
}

// String returns key=value:effect, the form that Kubernetes uses.
func (t Taint) String() string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

// DeclaredTaints returns the taints that the node itself declares.
func (n *Node) DeclaredTaints() (list []Taint) {
	for _, t := range n.Taints {
		if !t.Set {
			list = append(list, t)
		}
	}
	return list
}

// MergeTaints returns the declared taints of a node with those that operators set,
// sorted. If both have the same key and effect, the operators' one is used.
func MergeTaints(declared, set []Taint) []Taint {
	var all []Taint
	for _, list := range [][]Taint{set, declared} {
		for _, t := range list {
			if !slices.ContainsFunc(all, t.Matches) {
				all = append(all, t)
			}
		}
	}
	slices.SortFunc(all, func(a, b Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect))
	})
	return all
}

// Matches reports whether two taints have the same key and effect, which is unique
// on a node.
func (t Taint) Matches(o Taint) bool { return t.Key == o.Key && t.Effect == o.Effect }

// TolerationOperator relates a toleration to the value of a taint.
type TolerationOperator string

// The operators.
const (
	TolerationEqual  TolerationOperator = "Equal"
	TolerationExists TolerationOperator = "Exists"
)

// A Toleration allows a group on nodes with a taint.
type Toleration struct {
	Key      string             // "", with Exists: every taint
	Operator TolerationOperator // "": Equal
	Value    string             // of Equal
	Effect   TaintEffect        // "": every one
	For      time.Duration      // how long an allocation may remain with a taint of effect NoExecute; 0 for ever
}

// String returns key=value:effect, with the duration if it is limited.
func (t Toleration) String() string {
	text := cmp.Or(t.Key, "*")
	if t.Operator != TolerationExists {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	if t.For != 0 {
		text += " for " + t.For.String()
	}
	return text
}

// Tolerates reports whether the toleration matches the taint.
func (t *Toleration) Tolerates(taint *Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Operator == TolerationExists {
		return t.Key == "" || t.Key == taint.Key
	}
	return t.Key == taint.Key && t.Value == taint.Value
}

// UntoleratedTaint returns the first taint of the node that excludes the group, or
// nil if there is none.
func (g *Group) UntoleratedTaint(n *Node) *Taint {
	for i := range n.Taints {
		if t := &n.Taints[i]; t.Effect != PreferNoSchedule && !g.tolerates(t) {
			return t
		}
	}
	return nil
}

// CountSoftTaints returns how many taints of the node make the group prefer others:
// taints of effect PreferNoSchedule, and those that it tolerates only for some
// time.
func (g *Group) CountSoftTaints(n *Node) (count int) {
	for i := range n.Taints {
		t := &n.Taints[i]
		_, leaves := g.stays(t)
		if t.Effect == PreferNoSchedule && !g.tolerates(t) || t.Effect == NoExecute && leaves {
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

// HasSoftTaint reports whether some taint of the node may lower its rank instead of
// excluding it.
func (n *Node) HasSoftTaint() bool {
	for i := range n.Taints {
		if n.Taints[i].Effect != NoSchedule {
			return true
		}
	}
	return false
}

// HasNoExecute reports whether some taint of the node has the effect NoExecute.
func (n *Node) HasNoExecute() bool {
	for i := range n.Taints {
		if n.Taints[i].Effect == NoExecute {
			return true
		}
	}
	return false
}

// NoExecuteAt returns when an allocation of the group that was placed on the node
// at since must be evicted, in Unix nanoseconds, and the taint that requires it;
// the taint is nil if it may remain. If several tolerations match a taint, the
// longest counts.
func (g *Group) NoExecuteAt(n *Node, since int64) (at int64, by *Taint) {
	for i := range n.Taints {
		t := &n.Taints[i]
		if t.Effect != NoExecute {
			continue
		}
		stay, limited := g.stays(t)
		if !limited {
			continue
		}
		if until := max(t.Since, since) + int64(stay); by == nil || until < at {
			at, by = until, t
		}
	}
	return at, by
}

// IsExpelledFrom reports whether a NoExecute taint that the node has now ends the stay of
// every allocation of the group, at once or after some time.
func (g *Group) IsExpelledFrom(n *Node) bool {
	_, by := g.NoExecuteAt(n, 0)
	return by != nil
}

// stays returns how long an allocation may remain with a taint; limited is false if
// there is no limit.
func (g *Group) stays(taint *Taint) (stay time.Duration, limited bool) {
	for i := range g.Tolerations {
		if t := &g.Tolerations[i]; t.Tolerates(taint) {
			if t.For == 0 {
				return 0, false
			}
			stay = max(stay, t.For)
		}
	}
	return stay, true
}

// StampTaints sets the time of taints of effect NoExecute: now, unless the node had
// them before.
func StampTaints(taints, before []Taint, now int64) []Taint {
	taints = slices.Clone(taints)
	for i := range taints {
		t := &taints[i]
		if t.Since = 0; t.Effect != NoExecute {
			continue
		}
		t.Since = now
		for _, old := range before {
			if t.Matches(old) && t.Value == old.Value {
				t.Since = old.Since
			}
		}
	}
	return taints
}

// EqualTaints reports whether two lists are equal, apart from the time of taints.
func EqualTaints(a, b []Taint) bool {
	return slices.EqualFunc(a, b, func(x, y Taint) bool {
		x.Since, y.Since = 0, 0
		return x == y
	})
}
