package optimal

import (
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// The costs that the setting named cost knows.
const (
	byPriority = "priority"
	byVictims  = "victims"
	byWaste    = "waste"
)

// Policy is the policy named optimal.
type Policy struct {
	cost     string
	maxSteps int64
	waste    rules.Waste
	greedy   rules.Default // its sets are where the search starts

	// Of the call and the option at hand.
	rows    *policy.Rows
	balance rules.Balance
	seeds   policy.Selection
	fixed   []int32 // rows that must leave
	best    []int32 // the rows of the cheapest set known, but for the fixed
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

// New returns a policy that is ready once it is configured.
func New() *Policy { return &Policy{} }

// Settings implements policy.Configurable.
func (*Policy) Settings() []policy.Setting {
	return append([]policy.Setting{
		{
			Name: "cost", Kind: policy.Text, Default: byPriority, OneOf: []string{byPriority, byVictims, byWaste},
			Doc: "What is least: priority (the highest, then how many, then the sum), victims (how many, then the sum of priorities), " +
				"or waste (lost work, then how many, then the sum).",
		},
		{
			Name: "maxSteps", Kind: policy.Integer, Default: "2000", Limits: policy.Between(0, 10_000_000),
			Doc: "Steps of the search on one option, after which the cheapest set found so far counts; 0: default's.",
		},
	}, rules.WasteSettings()...)
}

// Configure implements policy.Configurable.
func (p *Policy) Configure(c *policy.Config) error {
	p.cost, p.maxSteps = c.Text("cost"), c.Integer("maxSteps")
	p.waste.Configure(c)
	return nil
}

// Info implements policy.Policy. By priority, nobody above the lowest
// sufficient priority is ever evicted.
func (p *Policy) Info() policy.Info {
	info := policy.Info{
		Name: "optimal", Delta: rules.Delta, Ascending: p.cost == byPriority,
		Columns: policy.UseColumns | policy.MustLeaveColumn | policy.DeviceColumns | policy.FitColumns |
			policy.BudgetColumns,
	}
	if p.cost == byWaste {
		info.Columns |= p.waste.Columns() | policy.VictimColumns
	}
	return info
}

// Cut is for how many options of the last SelectVictims the search came to its
// limit.
func (p *Policy) Cut() int { return p.cut }
