package rules

import (
	"fmt"
	"slices"

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
	if s.Eligible != nil {
		c.within(limits, MaxCandidates, fuel[0].Row+fuel[0].Option, "candidate", []Expression{*s.Eligible}, []int{0})
	}
	if len(s.Order) > 0 {
		c.within(limits, MaxCandidates, fuel[1].Row+fuel[1].Option, "candidate", s.Order, fuel[1].Entries)
	}
	if len(s.Option) > 0 {
		c.within(limits, MaxOptions, fuel[2].Option, "option", s.Option, fuel[2].Entries)
	}
}

// within reports a problem unless a call with the given number of elements has enough fuel
// for the ticks of each. The problem is that of the entry that takes most.
func (c *checker) within(limits policy.Limits, elements uint64, ticks int, element string, entries []Expression, parts []int) {
	most := (policy.MaxCallFuel - limits.Fuel) / elements
	has := min(limits.FuelPerRow, most)
	if uint64(ticks) <= has {
		return
	}
	i := slices.Index(parts, slices.Max(parts))
	reason := fmt.Sprintf("up to %d ticks of fuel for each %s; a call has %d for each", ticks, element, has)
	if len(entries) > 1 {
		reason = fmt.Sprintf("all entries take up to %d ticks of fuel for each %s, this one %d; a call has %d for each", ticks, element, parts[i], has)
	}
	hint := fmt.Sprintf("shorten the rules, or set limits: {fuelPerRow: %d} in the manifest", (ticks+999)/1000*1000)
	if entries[i].place(0).File == "" {
		hint = fmt.Sprintf("shorten the rules, or write them to a policy.yaml with limits: {fuelPerRow: %d}", (ticks+999)/1000*1000)
	}
	if uint64(ticks) > min(most, policy.MaxLimits.FuelPerRow)/1000*1000 {
		hint = fmt.Sprintf("shorten the rules: no policy has more than %d ticks for each %s", most, element)
	}
	c.add(&entries[i], 0, reason, hint)
}

// first returns the first expression.
func (s *Source) first() *Expression {
	if s.Eligible != nil {
		return s.Eligible
	}
	return &slices.Concat(s.Order, s.Option)[0]
}
