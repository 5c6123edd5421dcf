package nomad

import (
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// Network is the name of the dimension that is bandwidth.
const Network = "network"

// Policy is the policy named nomad.
type Policy struct {
	in      *policy.Candidates
	network int    // the dimension that is bandwidth, or -1
	skip    []bool // by dimension: is no dimension of the last step

	// Of the option at hand, whose rows are first to end: the victims of the
	// finished steps and then of the current one, and by row less first,
	// whether it is one of them.
	first, end int
	victims    []int32
	gone       []bool

	need    rules.Need
	lack    rules.Shortfall
	penalty []float64  // by row of a priority group
	order   []measured // what a superset filter sorts
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
