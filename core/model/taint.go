package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// TaintEffect is what a taint does to groups that do not tolerate it.
type TaintEffect string

// The effects.
const (
	NoSchedule       TaintEffect = "NoSchedule"       // they are not placed there
	PreferNoSchedule TaintEffect = "PreferNoSchedule" // they are placed elsewhere where there is room
	NoExecute        TaintEffect = "NoExecute"        // they are not placed there, and leave
)

// TaintEffects lists every effect in the order in which messages name them.
var TaintEffects = []TaintEffect{NoSchedule, PreferNoSchedule, NoExecute}

// Taint keeps groups off a node that do not tolerate it. What runs there
// already stays, unless its effect is NoExecute.
type Taint struct {
	Key, Value string
	Effect     TaintEffect
	Set        bool // by an operator, so that it outlives what the node says of itself
	// Since is when a node got a taint of effect NoExecute, Unix ns; else 0.
	Since int64
}

// String is key=value:effect, as Kubernetes writes it.
func (t Taint) String() string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

// DeclaredTaints is the taints that the node itself has declared.
func (n *Node) DeclaredTaints() (list []Taint) {
	for _, t := range n.Taints {
		if !t.Set {
			list = append(list, t)
		}
	}
	return list
}

// MergeTaints is the taints a node has that declares some and of which operators
// set others: of two with one key and effect theirs holds. It is sorted.
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

// Matches is whether two taints are of one key and effect, of which a node has
// one.
func (t Taint) Matches(o Taint) bool { return t.Key == o.Key && t.Effect == o.Effect }

// TolerationOperator relates a toleration to the value of a taint.
type TolerationOperator string

// The operators.
const (
	TolerationEqual  TolerationOperator = "Equal"
	TolerationExists TolerationOperator = "Exists"
)

// Toleration lets a group go to nodes with a taint, and stay there.
type Toleration struct {
	Key      string             // "", with Exists: every taint
	Operator TolerationOperator // "": Equal
	Value    string             // of Equal
	Effect   TaintEffect        // "": every one
	For      time.Duration      // how long an allocation may stay, of NoExecute; 0: for ever
}

// String is key=value:effect, with how long where that is limited.
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

// Tolerates is whether the toleration is of the taint.
func (t *Toleration) Tolerates(taint *Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Operator == TolerationExists {
		return t.Key == "" || t.Key == taint.Key
	}
	return t.Key == taint.Key && t.Value == taint.Value
}

// UntoleratedTaint is the first taint of the node that keeps the group off it; nil when
// there is none.
func (g *Group) UntoleratedTaint(n *Node) *Taint {
	for i := range n.Taints {
		if t := &n.Taints[i]; t.Effect != PreferNoSchedule && !g.tolerates(t) {
			return t
		}
	}
	return nil
}

// CountSoftTaints is how many taints of the node make the group prefer others: wishes, and
// those beside which it stays only for some time.
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

// HasSoftTaint is whether some taint of the node may be a wish rather than a rule.
func (n *Node) HasSoftTaint() bool {
	for i := range n.Taints {
		if n.Taints[i].Effect != NoSchedule {
			return true
		}
	}
	return false
}

// HasNoExecute is whether some taint of the node has work leave it.
func (n *Node) HasNoExecute() bool {
	for i := range n.Taints {
		if n.Taints[i].Effect == NoExecute {
			return true
		}
	}
	return false
}

// NoExecuteAt is when an allocation of the group that came to the node at a time has to
// leave it, Unix ns, and for the sake of which taint; nil: it may stay. Of several
// tolerations of a taint that which lets it stay longest counts.
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

// stays is how long an allocation may stay beside a taint; not limited: for ever.
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

// StampTaints gives taints of effect NoExecute the time since when the node has them:
// now, unless it had them already.
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

// EqualTaints is whether two lists say the same, since whenever.
func EqualTaints(a, b []Taint) bool {
	return slices.EqualFunc(a, b, func(x, y Taint) bool {
		x.Since, y.Since = 0, 0
		return x == y
	})
}
