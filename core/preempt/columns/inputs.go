package columns

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Inputs hold the values that all calls of a search share. Workers only read them.
type Inputs struct {
	Scope      *protect.Scope
	Dimensions *model.Dimensions
	DimNames   []string // of Dimensions
	Preemptor  sdk.Preemptor
	Evictions  *protect.EvictionCounts // of the plan; nil: none yet

	// totals is the shared table of a policy that reads totals alone; nil: not computed.
	totals *sdk.Shared
}

// ResetTotals discards the totals of an earlier search.
func (in *Inputs) ResetTotals() { in.totals = nil }
