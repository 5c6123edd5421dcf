package optimal

import (
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// The values of the setting cost.
const (
	byPriority = "priority"
	byVictims  = "victims"
	byWaste    = "waste"
)

// Policy is the policy "optimal".
type Policy struct {
	cost     string
	maxSteps int64
	waste    rules.Waste
	greedy   rules.Default // its sets are the start of the search

	// State of the current call and option.
	rows    *policy.Rows
	balance rules.Balance
	seeds   policy.Selection
	fixed   []int32 // rows that must be evicted
	best    []int32 // rows of the cheapest known set, without the fixed ones
	search  search
	budgets budgets
	cut     int
}

var (
	_ policy.Policy         = (*Policy)(nil)
	_ policy.Configurable   = (*Policy)(nil)
	_ policy.VictimSelector = (*Policy)(nil)
	_ policy.OptionScorer   = (*Policy)(nil)
)

// New returns a policy that must be configured.
func New() *Policy { return &Policy{} }

// Settings implements policy.Configurable.
func (*Policy) Settings() []policy.Setting {
	return append([]policy.Setting{
		{
			Name: "cost", Kind: policy.Text, Default: byPriority, OneOf: []string{byPriority, byVictims, byWaste},
			Choices: []string{byPriority, byVictims, byWaste},
			Doc: "Quantity to minimise: priority (the highest, then the number, then the sum), victims (the number, then the sum of priorities), " +
				"or waste (lost work, then the number, then the sum).",
		},
		{
			Name: "maxSteps", Kind: policy.Integer, Default: "2000", Limits: policy.Between(0, 10_000_000),
			Doc: "Maximum number of search steps per option, after which the cheapest known set is used; 0: the set of default.",
		},
	}, rules.WasteSettings()...)
}

// Configure implements policy.Configurable.
func (p *Policy) Configure(c *policy.Config) error {
	p.cost, p.maxSteps = c.Text("cost"), c.Integer("maxSteps")
	p.waste.Configure(c)
	return nil
}

// Info implements policy.Policy. With cost priority, no row above the lowest
// sufficient priority is ever evicted.
func (p *Policy) Info() policy.Info {
	info := policy.Info{
		Name: "optimal", Delta: rules.Delta, Ascending: p.cost == byPriority, Monotone: true,
		Columns: policy.UseColumns | policy.MustLeaveColumn | policy.DeviceColumns | policy.FitColumns |
			policy.BudgetColumns,
	}
	if p.cost == byWaste {
		info.Columns |= p.waste.Columns() | policy.VictimColumns
	}
	return info
}

// Cut returns the number of options of the last SelectVictims on which the search
// reached its limit.
func (p *Policy) Cut() int { return p.cut }
