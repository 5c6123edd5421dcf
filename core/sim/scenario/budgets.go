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

// Enforcement modes of a budget.
const (
	enforceBestEffort = "bestEffort"
	enforceStrict     = "strict"
)

// Disruption modes: the unit of eviction if a job loses an allocation to a preemptor.
const (
	disruptSingle = "single"
	disruptAll    = "all"
)

var disruptionModes = []string{disruptSingle, disruptAll}

// String returns the bound in the notation of a file.
func (b Bound) String() string { return model.Bound(b).String() }

// MarshalJSON writes a percentage as a string, a number as it is.
func (b Bound) MarshalJSON() ([]byte, error) {
	if b.Percent {
		return json.Marshal(b.String())
	}
	return json.Marshal(b.Number)
}

func decodeBound(d *decoder, v reflect.Value, ev event) {
	const noun, remedy = "a number, or a percentage", `write an integer such as 1, or a percentage such as "50%"`
	text, percent := string(ev.text), false
	switch ev.kind {
	case kindNumber:
	case kindString:
		text, percent = strings.CutSuffix(text, "%")
		if !percent {
			d.wrongType(ev, noun, remedy)
			return
		}
	default:
		d.wrongType(ev, noun, remedy)
		return
	}
	n, ok := parseInt([]byte(text))
	if text == "" || !ok || n < math.MinInt32 || n > math.MaxInt32 {
		d.wrongType(ev, noun, remedy)
		return
	}
	v.Set(reflect.ValueOf(Bound{Number: int32(n), Percent: percent}))
}

// checkBudgets checks the budgets. It warns if the labels of a budget select no group.
func (c *checker) checkBudgets() {
	var root *path
	seen := map[string]int{}
	for i := range c.f.Budgets {
		b, p := &c.f.Budgets[i], root.field("budgets").item(i)
		c.unique(p.field("name"), "budgets", "name", b.Name, i, seen)
		c.optionalName(p.field("namespace"), b.Namespace)
		c.oneOf(p.field("enforcement"), b.Enforcement, valuesOf[Budget]("enforcement")...)
		c.noEmptyKey(p.field("labels"), b.Labels)
		switch {
		case len(b.Labels) == 0 && b.MaxEvictions == nil:
			c.add(p.field("labels"), "labels are missing", "write the labels of the allocations to select, such as {app: web}")
		case len(b.Labels) > 0 && c.problems.len() == 0 && !c.selectsGroup(b):
			c.warnings = append(c.warnings, fmt.Sprintf("budgets[%d]: no group of namespace %s has the labels of %s, so it protects no allocation", i, b.namespace(), b.Name))
		}
		c.checkBounds(p, b)
		c.checkBound(p.field("minAvailable"), b.MinAvailable)
		c.checkBound(p.field("maxUnavailable"), b.MaxUnavailable)
	}
}

// checkBounds requires exactly one bound, and a window if the bound is a rate.
func (c *valueChecker) checkBounds(p *path, b *Budget) {
	switch m := b.resolve(); {
	case m.BoundCount() == 0:
		c.add(p, "one of minAvailable, maxUnavailable and maxEvictions is required", "add one, such as minAvailable: 1")
	case b.MinAvailable != nil && b.MaxUnavailable != nil:
		c.add(p.field("maxUnavailable"), "minAvailable and maxUnavailable are mutually exclusive", "remove one of the two")
	case m.BoundCount() > 1:
		c.add(p.field("maxEvictions"), "maxEvictions and the other bounds are mutually exclusive", "write two budgets")
	}
	switch {
	case b.MaxEvictions == nil && b.Window != 0:
		c.add(p.field("window"), "window requires maxEvictions", "add maxEvictions, the number of evictions allowed in the window")
	case b.MaxEvictions != nil && *b.MaxEvictions < 0:
		c.add(p.field("maxEvictions"), fmt.Sprintf("%d is negative: expected 0 or more", *b.MaxEvictions), "remove the sign")
	case b.MaxEvictions != nil:
		c.checkWindow(p.field("window"), b.Window)
	}
}

func (c *valueChecker) checkBound(p *path, b *Bound) {
	switch {
	case b == nil:
	case b.Number < 0:
		c.add(p, fmt.Sprintf("%v is negative: expected 0 or more", b), "remove the sign")
	case b.Percent && b.Number > 100:
		c.add(p, fmt.Sprintf("%v is not a valid percentage: expected 0%% to 100%%", b), "write a percentage of the requested instances")
	}
}

// selectsGroup reports whether the budget's labels select a group of some job.
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
		m.Strict = b.Enforcement != enforceBestEffort // a rate limits evictions strictly unless the file overrides it
	}
	return m
}
