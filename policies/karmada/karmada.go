package karmada

import (
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// Policy is the policy "karmada". It must be configured before its first call.
type Policy struct {
	bindings
	jobs rules.Default // version 1 of the rules of default
}

var (
	_ policy.Policy           = (*Policy)(nil)
	_ policy.Configurable     = (*Policy)(nil)
	_ policy.BindingPreemptor = (*Policy)(nil)
	_ policy.VictimSelector   = (*Policy)(nil)
	_ policy.OptionScorer     = (*Policy)(nil)
)

// New returns a policy that must be configured.
func New() *Policy { return &Policy{} }

// NewVersion1 returns a policy with version 1 of the rules, which leave jobs to default: since
// version 2 of default, relocation breaks ties among their victims.
func NewVersion1() policy.Policy { return &bindings{} }

// Info implements policy.Policy.
func (p *Policy) Info() policy.Info {
	info, jobs := p.bindings.Info(), p.jobs.Info()
	info.Columns, info.Monotone = jobs.Columns, jobs.Monotone
	return info
}

// SelectVictims implements policy.VictimSelector.
func (p *Policy) SelectVictims(in *policy.Candidates, out *policy.Selection) error {
	return p.jobs.SelectVictims(in, out)
}

// ScoreOptions implements policy.OptionScorer.
func (p *Policy) ScoreOptions(in *policy.Options, out *policy.OptionScores) error {
	return p.jobs.ScoreOptions(in, out)
}

// bindings decides about bindings alone.
type bindings struct {
	fewest  bool
	elastic bool
	several bool // multiCluster
	rules   rules.Bindings
	search  search
}

// Info implements policy.Policy.
func (p *bindings) Info() policy.Info {
	return policy.Info{Name: "karmada", Delta: 1, Ascending: !p.fewest, Elastic: p.elastic, MultiCluster: p.several}
}

// The settings and their values.
const (
	victims, clusters, elastic, several = "victims", "clusters", "elastic", "multiCluster"

	lowest, fewest   = "lowest", "fewest"
	number, priority = "number", "priority"
)

// Settings implements policy.Configurable.
func (*bindings) Settings() []policy.Setting {
	return []policy.Setting{
		{
			Name: victims, Kind: policy.Text, Default: lowest, OneOf: []string{lowest, fewest}, Choices: []string{lowest, fewest},
			Doc: "victims of a cluster: the lowest priorities that free enough, or the fewest bindings that do",
		},
		{
			Name: clusters, Kind: policy.Text, Default: number, OneOf: []string{number, priority}, Choices: []string{number, priority},
			Doc: "choice of the cluster: by the number of victims and then their priorities, or by priorities first",
		},
		{
			Name: elastic, Kind: policy.Bool, Choices: []string{"false", "true"},
			Doc: "if true, a binding with minReplicas is shrunk as far as necessary before it is evicted",
		},
		{
			Name: several, Kind: policy.Bool, Choices: []string{"false", "true"},
			Doc: "if true, capacity is freed on several clusters if no single one suffices",
		},
	}
}

// Configure implements policy.Configurable.
func (p *bindings) Configure(c *policy.Config) error {
	p.fewest = c.Text(victims) == fewest
	p.elastic, p.several = c.Bool(elastic), c.Bool(several)
	p.rules.PriorityFirst, p.rules.Elastic = c.Text(clusters) == priority, p.elastic
	return nil
}

// PreemptBindings implements policy.BindingPreemptor.
func (p *bindings) PreemptBindings(in *policy.Candidates, out *policy.BindingVictims) error {
	if !p.fewest {
		return p.rules.PreemptBindings(in, out)
	}
	for i := range in.Len() {
		for _, row := range p.search.fewest(in, i, p.rules.Order(in, i)) {
			out.Pick(int(row))
		}
		out.Next()
	}
	p.rules.Rank(in, out)
	return nil
}
