package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/link"
)

// The fuel of a call is limited to policy.MaxCallFuel. It suffices for a call with these
// numbers of elements, and for larger ones unless a policy raises its fuel: candidates are
// twice those at which the host ends a call, and options are those of all nodes.
const (
	MaxCandidates = 8192
	MaxOptions    = 20_000
)

// fuel reports each hook that may take more fuel than a call has, so that no call of rules
// that were checked ends for lack of fuel. See ADR 0093.
func (c *checker) fuel(s *Source, p *ir.Program) {
	fuel, err := link.FuelOf(p)
	if err != nil {
		c.add(s.first(), 0, err.Error(), "shorten texts, or use fewer keys")
		return
	}
	limits := s.Limits.Bounded()
	if limits.Fuel < link.FixedFuel {
		c.add(s.first(), 0, fmt.Sprintf("a call has %d ticks of fuel besides those for each candidate; rules need %d", limits.Fuel, link.FixedFuel),
			"remove limits.fuel, or set it to a higher number")
		return
	}
	var hooks []hookFuel
	if s.Eligible != nil {
		hooks = append(hooks, hookFuel{MaxCandidates, "candidate", fuel[0].Row + fuel[0].Option, []Expression{*s.Eligible}, []int{0}})
	}
	if len(s.Order) > 0 {
		hooks = append(hooks, hookFuel{MaxCandidates, "candidate", fuel[1].Row + fuel[1].Option, s.Order, fuel[1].Entries})
	}
	if len(s.Option) > 0 {
		hooks = append(hooks, hookFuel{MaxOptions, "option", fuel[2].Option, s.Option, fuel[2].Entries})
	}
	need := 0 // one limit must suffice for all hooks
	for i := range hooks {
		if h := &hooks[i]; h.isPossible(limits) {
			need = max(need, h.needs())
		}
	}
	for i := range hooks {
		c.within(limits, &hooks[i], need)
		c.inTime(limits, &hooks[i])
	}
}

// ticksPerSecond is the fuel that compiled code uses in a second on a fast machine: calls near
// their limit used 3 to 6 billion. A call that takes longer than its time even there has no
// chance anywhere.
const ticksPerSecond = 4_000_000_000

// inTime reports a problem if a call of a hook cannot finish within the time limit, with the
// most elements and the ticks that are counted for each.
func (c *checker) inTime(limits policy.Limits, h *hookFuel) {
	ticks := min(uint64(h.ticks)*h.elements, policy.MaxCallFuel)
	takes := (time.Duration(ticks) * time.Second / ticksPerSecond).Round(time.Millisecond)
	if takes <= limits.Time {
		return
	}
	i := slices.Index(h.parts, slices.Max(h.parts))
	c.add(&h.entries[i], 0, fmt.Sprintf("a call with %d %ss may take %v; limits.time is %v", h.elements, h.element, takes, limits.Time),
		fmt.Sprintf("shorten the rules, or set limits.time to at least %v", takes))
}

// hookFuel is the fuel that a hook may take.
type hookFuel struct {
	elements uint64 // the most of one call
	element  string
	ticks    int // for each element
	entries  []Expression
	parts    []int // ticks by entry
}

// most returns the ticks for each element that a call has if nothing else limits it.
func (h *hookFuel) most(limits policy.Limits) uint64 {
	return (policy.MaxCallFuel - limits.Fuel) / h.elements
}

// needs returns the limit for each element that suffices, in whole thousands.
func (h *hookFuel) needs() int { return (h.ticks + 999) / 1000 * 1000 }

// isPossible reports whether a policy can have the limit that suffices.
func (h *hookFuel) isPossible(limits policy.Limits) bool {
	return uint64(h.needs()) <= min(h.most(limits), policy.MaxLimits.FuelPerRow)
}

// within reports a problem unless a call of a hook has enough fuel for the ticks of each
// element. The problem is that of the entry that takes most. need is the limit that suffices
// for every hook.
func (c *checker) within(limits policy.Limits, h *hookFuel, need int) {
	has := min(limits.FuelPerRow, h.most(limits))
	if uint64(h.ticks) <= has {
		return
	}
	i := slices.Index(h.parts, slices.Max(h.parts))
	reason := fmt.Sprintf("up to %d ticks of fuel for each %s; a call has %d for each", h.ticks, h.element, has)
	if len(h.entries) > 1 {
		reason = fmt.Sprintf("all entries take up to %d ticks of fuel for each %s, this one %d; a call has %d for each", h.ticks, h.element, h.parts[i], has)
	}
	hint := fmt.Sprintf("shorten the rules, or set limits: {fuelPerRow: %d} in the manifest", need)
	if h.entries[i].place(0).File == "" {
		hint = fmt.Sprintf("shorten the rules, or write them to a policy.yaml with limits: {fuelPerRow: %d}", need)
	}
	if !h.isPossible(limits) {
		hint = fmt.Sprintf("shorten the rules: no policy has more than %d ticks for each %s", h.most(limits), h.element)
	}
	c.add(&h.entries[i], 0, reason, hint)
}

// first returns the first expression.
func (s *Source) first() *Expression {
	if s.Eligible != nil {
		return s.Eligible
	}
	return &slices.Concat(s.Order, s.Option)[0]
}
