package nomad

import (
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// Network is the name of the bandwidth dimension.
const Network = "network"

// Policy is the policy "nomad".
type Policy struct {
	in      *policy.Candidates
	network int    // index of the bandwidth dimension, or -1
	skip    []bool // by dimension: the last step ignores it

	// State of the current option, whose rows are first to end: the victims of the
	// finished steps followed by those of the current step, and, by row less first,
	// whether a row is one of them.
	first, end int
	victims    []int32
	gone       []bool

	need    rules.Need
	lack    rules.Shortfall
	penalty []float64  // by row of a priority group
	order   []measured // input of a superset filter
	nets    []int64    // [option][request], see preferDeviceGroups
}

var (
	_ policy.Policy         = (*Policy)(nil)
	_ policy.VictimSelector = (*Policy)(nil)
	_ policy.OptionScorer   = (*Policy)(nil)
)

// New returns a ready policy.
func New() *Policy { return &Policy{} }

// Info implements policy.Policy.
func (*Policy) Info() policy.Info {
	return policy.Info{
		Name:      "nomad",
		Delta:     10,
		Ascending: true,
		Columns: policy.UseColumns | policy.EvictionColumns | policy.MustLeaveColumn |
			policy.DeviceColumns | policy.VictimColumns | policy.FitColumns,
		KeepRedundant: true,
	}
}
