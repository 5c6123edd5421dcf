// Package decay implements the example policy that exists in every guest language:
// here in Go, and under sdk/c, sdk/rust and sdk/assemblyscript with the same settings
// and bit-identical answers. Tests of hosts use it, and authors can compare it with
// the version in their own language.
//
// Lost work counts less the older the allocation is. Victims are ordered by the work
// that evicting them loses, halved for each halfLife since the work began.
// Allocations younger than grace require a larger priority gap. Options are ranked by
// the highest priority among their victims, then by fit minus the lost work.
//
// A Policy keeps no state between calls except its configuration. It must be used by
// one goroutine at a time.
package decay

import (
	"errors"
	"math"

	"github.com/cede-scheduler/cede/sdk/fmath"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// Policy implements the policy named decay.
type Policy struct {
	halfLife, grace   int64
	graceGap          int32
	weight            float64
	fewest, fitBefore bool
	factors           map[string]float64 // +Inf for namespaces that are never evicted
}

var (
	_ policy.Configurable = (*Policy)(nil)
	_ policy.DeltaHook    = (*Policy)(nil)
	_ policy.VictimScorer = (*Policy)(nil)
	_ policy.OptionScorer = (*Policy)(nil)
)

// New returns a policy. Configure must be called before its first use.
func New() *Policy { return &Policy{} }

// Info implements policy.Policy.
func (*Policy) Info() policy.Info {
	return policy.Info{
		Name:  "decay",
		Delta: 10,
		Columns: policy.StartColumn | policy.LostWorkColumn | policy.JobColumns | policy.EvictionColumns |
			policy.FitColumns | policy.TimeColumns,
	}
}

// Settings implements policy.Configurable.
func (*Policy) Settings() []policy.Setting {
	return []policy.Setting{
		{Name: "halfLife", Kind: policy.Duration, Doc: "age at which lost work counts for half", Default: "1h", Limits: policy.Between(1, 31536000), Range: policy.Between(60, 86400)},
		{Name: "grace", Kind: policy.Duration, Doc: "age below which an eviction requires graceGap", Default: "0s", Limits: policy.AtLeast(0), Choices: []string{"0s", "1m", "10m"}},
		{Name: "graceGap", Kind: policy.Integer, Doc: "priority gap required within the grace", Default: "50", Limits: policy.Between(0, 100)},
		{Name: "weight", Kind: policy.Number, Doc: "weight of lost hours against the fit of an option", Default: "0.1", Limits: policy.AtLeast(0), Range: policy.Between(0.001, 10)},
		{Name: "fewest", Kind: policy.Bool, Doc: "prefer options with fewer victims before weighing them", Default: "true"},
		{Name: "fit", Kind: policy.Text, Doc: "whether fit counts before or after the evictions", Default: "after", OneOf: []string{"before", "after"}, Choices: []string{"before", "after"}},
		{Name: "spare", Kind: policy.Texts, Doc: "namespaces from which nothing is evicted"},
		{Name: "factors", Kind: policy.Numbers, Doc: "factor of lost hours by namespace, 1 if absent", Limits: policy.AtLeast(0)},
	}
}

// Configure implements policy.Configurable.
func (p *Policy) Configure(c *policy.Config) error {
	p.halfLife, p.grace = c.Duration("halfLife"), c.Duration("grace")
	p.graceGap, p.weight = int32(c.Integer("graceGap")), c.Number("weight")
	p.fewest, p.fitBefore = c.Bool("fewest"), c.Text("fit") == "before"
	p.factors = map[string]float64{}
	for _, f := range c.Numbers("factors") {
		p.factors[f.Item] = f.Number
	}
	for _, name := range c.Texts("spare") {
		if _, twice := p.factors[name]; twice {
			return errors.New("a namespace cannot both be spared and have a factor, or have two factors; remove one: " + name)
		}
		p.factors[name] = math.Inf(1)
	}
	return nil
}

// factorOf returns the factor of lost work in a namespace.
func (p *Policy) factorOf(name string) float64 {
	if f, ok := p.factors[name]; ok {
		return f
	}
	return 1
}

// PriorityDelta implements policy.DeltaHook. Allocations within their grace require a
// larger gap. If the grace alone protects one, the result includes the time at which
// it ends.
func (p *Policy) PriorityDelta(in *policy.Candidates, gap []int32, recheck *policy.Recheck) error {
	for row, start := range in.Rows.Start {
		until := start + p.grace
		if in.Now >= until || gap[row] >= p.graceGap {
			continue
		}
		has := int64(in.Preemptor.Priority) - int64(in.Rows.Priority[row])
		if has >= int64(gap[row]) && has < int64(p.graceGap) {
			recheck.At(until)
		}
		gap[row] = p.graceGap
	}
	return nil
}

// ScoreVictims implements policy.VictimScorer. Groups that have reached their
// eviction limit come last.
func (p *Policy) ScoreVictims(in *policy.Candidates, out *policy.VictimScores) error {
	rows := &in.Rows
	factor := 1.0
	for row, namespace := range rows.Namespace {
		if row == 0 || namespace != rows.Namespace[row-1] {
			factor = p.factorOf(in.Strings[namespace])
		}
		if limit := rows.EvictionLimit[row]; limit > 0 && rows.Evictions[row] >= limit {
			out.Tier[row] = 1
		}
		if math.IsInf(factor, 1) {
			out.Score[row] = factor
			continue
		}
		seconds := float64(float64(rows.LostWork[row]) / 1e9 * factor)
		halfLives := float64(max(in.Now-rows.Start[row], 0)) / float64(p.halfLife)
		out.Score[row] = float64(seconds * fmath.Exp(-float64(halfLives*math.Ln2)))
	}
	return nil
}

// ScoreOptions implements policy.OptionScorer.
func (p *Policy) ScoreOptions(in *policy.Options, out *policy.OptionScores) error {
	fit := in.FitAfter
	if p.fitBefore {
		fit = in.FitBefore
	}
	for i, victims := range in.VictimCount {
		out.Tiers[0][i] = int64(in.HighestPriority[i])
		if victims == 0 {
			out.Tiers[0][i] = math.MinInt64
		}
		if p.fewest {
			out.Tiers[1][i] = int64(victims)
		}
		hours := float64(in.LostWork[i]) / 3600e9
		sum, n := rules.Parts(in, fit, i)
		out.Score[i] = sum/n - float64(p.weight*fmath.Log(1+hours))
	}
	return nil
}
