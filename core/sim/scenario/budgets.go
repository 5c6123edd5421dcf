package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// How strictly a budget is kept.
const (
	enforceBestEffort = "bestEffort"
	enforceStrict     = "strict"
)

// What goes when a job loses an allocation to a preemptor.
const (
	disruptSingle = "single"
	disruptAll    = "all"
)

var disruptionModes = []string{disruptSingle, disruptAll}

// String is the bound as it is written.
func (b Bound) String() string { return model.Bound(b).String() }

// MarshalJSON writes a percentage as a text.
func (b Bound) MarshalJSON() ([]byte, error) {
	if b.Percent {
		return json.Marshal(b.String())
	}
	return json.Marshal(b.Number)
}

func decodeBound(d *decoder, v reflect.Value, ev event) {
	const what, remedy = "a number, or a percentage", `write a whole number such as 1, or a percentage such as "50%"`
	text, percent := string(ev.text), false
	switch ev.kind {
	case kindNumber:
	case kindString:
		text, percent = strings.CutSuffix(text, "%")
		if !percent {
			d.wrongType(ev, what, remedy)
			return
		}
	default:
		d.wrongType(ev, what, remedy)
		return
	}
	n, ok := parseInt([]byte(text))
	if text == "" || !ok || n < math.MinInt32 || n > math.MaxInt32 {
		d.wrongType(ev, what, remedy)
		return
	}
	v.Set(reflect.ValueOf(Bound{Number: int32(n), Percent: percent}))
}

func (c *checker) checkBudgets() {
	var root *path
	seen := map[string]int{}
	for i := range c.f.Budgets {
		b, p := &c.f.Budgets[i], root.field("budgets").item(i)
		c.unique(p.field("name"), "budgets", "name", b.Name, i, seen)
		c.optionalName(p.field("namespace"), b.Namespace)
		c.oneOf(p.field("enforcement"), b.Enforcement, enforceBestEffort, enforceStrict)
		c.noEmptyKey(p.field("labels"), b.Labels)
		switch {
		case len(b.Labels) == 0 && b.MaxEvictions == nil:
			c.add(p.field("labels"), "labels are missing", "name the labels of the allocations that are meant, such as {app: web}")
		case len(b.Labels) > 0 && c.problems.len() == 0 && !c.selectsGroup(b):
			c.warnings = append(c.warnings, fmt.Sprintf("budgets[%d]: no group of namespace %s has the labels of %s: it protects nothing", i, b.namespace(), b.Name))
		}
		c.checkBounds(p, b)
		c.checkBound(p.field("minAvailable"), b.MinAvailable)
		c.checkBound(p.field("maxUnavailable"), b.MaxUnavailable)
	}
}

// checkBounds asks for one bound, and for a window where that is a rate.
func (c *checker) checkBounds(p *path, b *Budget) {
	switch m := b.resolve(); {
	case m.BoundCount() == 0:
		c.add(p, "neither minAvailable nor maxUnavailable nor maxEvictions is there", "write one of them, such as minAvailable: 1")
	case b.MinAvailable != nil && b.MaxUnavailable != nil:
		c.add(p.field("maxUnavailable"), "minAvailable and maxUnavailable exclude each other", "remove one of the two")
	case m.BoundCount() > 1:
		c.add(p.field("maxEvictions"), "maxEvictions and the other bounds exclude each other", "write two budgets")
	}
	switch {
	case b.MaxEvictions == nil && b.Window != 0:
		c.add(p.field("window"), "window is without maxEvictions", "write maxEvictions: how many may be evicted in the window")
	case b.MaxEvictions != nil && *b.MaxEvictions < 0:
		c.add(p.field("maxEvictions"), fmt.Sprintf("%d is negative: expected 0 or more", *b.MaxEvictions), "remove the sign")
	case b.MaxEvictions != nil && b.Window <= 0:
		c.add(p.field("window"), "window is missing: expected a time above 0", "write the time in which so many may be evicted, such as window: 1h")
	}
}

func (c *checker) checkBound(p *path, b *Bound) {
	switch {
	case b == nil:
	case b.Number < 0:
		c.add(p, fmt.Sprintf("%v is negative: expected 0 or more", b), "remove the sign")
	case b.Percent && b.Number > 100:
		c.add(p, fmt.Sprintf("%v is not a share: expected 0%% to 100%%", b), "write the share of the instances that are wanted")
	}
}

// selectsGroup is whether some group has the labels of a budget.
func (c *checker) selectsGroup(b *Budget) bool {
	term := model.LabelTerm{Labels: b.Labels}
	return slices.ContainsFunc(c.f.Jobs, func(j Job) bool {
		return cmp.Or(j.Namespace, model.DefaultNamespace) == b.namespace() &&
			slices.ContainsFunc(j.Groups, func(g Group) bool { return term.Matches(g.Labels) })
	})
}

func (b *Budget) namespace() string { return cmp.Or(b.Namespace, model.DefaultNamespace) }

func (b *Budget) resolve() *model.Budget {
	m := &model.Budget{
		Namespace: b.namespace(), Name: b.Name, Labels: b.Labels,
		MinAvailable: (*model.Bound)(b.MinAvailable), MaxUnavailable: (*model.Bound)(b.MaxUnavailable),
		Strict: b.Enforcement == enforceStrict,
	}
	if b.MaxEvictions != nil {
		m.MaxEvictions = &model.Rate{Number: *b.MaxEvictions, Window: time.Duration(b.Window)}
		m.Strict = b.Enforcement != enforceBestEffort // so many and no more, unless somebody says otherwise
	}
	return m
}
