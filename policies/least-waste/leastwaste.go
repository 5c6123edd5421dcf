package leastwaste

import (
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// Policy is the policy "least-waste".
type Policy struct {
	bands int32 // width of a band of priorities; 0: one band for all
	waste rules.Waste

	relocates  bool // since version 2: relocation breaks ties
	relocation rules.Relocation

	// State of the current call and option, whose rows are first to end.
	rows       *policy.Rows
	first, end int
	balance    rules.Balance
	victims    []int32
	taken      []bool  // by row less first: it is a victim
	ranks      []rank  // by row less first
	order      []int32 // rows with a gain, the cheapest first
	spared     []int32 // redundant rows of the current exchange
	alone      [1]int32

	// The victims of default are the upper bound of the cost.
	greedy rules.Default
	seeds  policy.Selection
	other  rules.Balance
	needed []int32
}

var (
	_ policy.Policy         = (*Policy)(nil)
	_ policy.Configurable   = (*Policy)(nil)
	_ policy.VictimSelector = (*Policy)(nil)
	_ policy.OptionScorer   = (*Policy)(nil)
)

// New returns a policy with the newest version of the rules, 2. It must be configured.
func New() *Policy { return &Policy{relocates: true} }

// NewVersion1 returns a policy with version 1 of the rules, which ignore where victims could
// run instead. It must be configured.
func NewVersion1() *Policy { return &Policy{} }

// Settings implements policy.Configurable.
func (*Policy) Settings() []policy.Setting {
	return append([]policy.Setting{{
		Name: "bands", Kind: policy.Integer, Default: "10", Limits: policy.Between(0, 1<<31-1), Choices: []string{"0", "1", "5", "10", "20", "40"},
		Doc: "Width of the bands of priority within which waste decides: with 10, priorities 20 to 29 are one band; 0: one band for all.",
	}}, rules.WasteSettings()...)
}

// Configure implements policy.Configurable.
func (p *Policy) Configure(c *policy.Config) error {
	p.bands = int32(c.Integer("bands"))
	p.waste.Configure(c)
	return nil
}

// Info implements policy.Policy.
func (p *Policy) Info() policy.Info {
	info := policy.Info{
		Name:     "least-waste",
		Delta:    rules.Delta,
		Monotone: true,
		Columns: p.waste.Columns() | policy.MustLeaveColumn | policy.DeviceColumns |
			policy.VictimColumns | policy.FitColumns,
	}
	if p.relocates {
		info.Columns |= policy.RelocationColumns
	}
	return info
}
