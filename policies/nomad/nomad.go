package nomad

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	lack    rules.Lack
	penalty []float64  // by row of a priority group
	order   []measured // what a superset filter sorts
	nets    []int64    // [option][request], see preferDeviceGroups
}

var (
	_ policy.Policy         = (*Policy)(nil)
	_ policy.Configurable   = (*Policy)(nil)
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

// Configure implements policy.Configurable. There is nothing to configure yet.
func (*Policy) Configure(config []byte) error {
	if len(strings.TrimSpace(string(config))) == 0 {
		return nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(config, &keys); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if keys == nil {
		return errors.New("configuration: expected an object, found null")
	}
	unknown := make([]string, 0, len(keys))
	for k := range keys {
		unknown = append(unknown, k)
	}
	slices.Sort(unknown)
	if len(unknown) > 0 {
		return fmt.Errorf("configuration: unknown key %q: the policy nomad has no settings", unknown[0])
	}
	return nil
}
