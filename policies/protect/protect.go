package protect

import (
	"github.com/cede-scheduler/cede/sdk/policy"
)

// Policy is the policy "protect". It must be configured before its first call.
type Policy struct {
	minimum minimum
	// override is the gap from which protection does not apply; 0: it always applies.
	override int64

	maxEvictions int32 // of one group in one plan; 0: unlimited
	pause        int64 // nanoseconds until the next plan

	limited []int32 // scratch: rows of an option that are subject to the limit
}

var (
	_ policy.Policy       = (*Policy)(nil)
	_ policy.Configurable = (*Policy)(nil)
	_ policy.DeltaHook    = (*Policy)(nil)
)

// New returns a policy that must be configured.
func New() *Policy { return &Policy{} }

// Info implements policy.Policy. It requests only the columns that the configuration
// needs.
func (p *Policy) Info() policy.Info {
	columns := policy.StartColumn | policy.TimeColumns
	if len(p.minimum.namespaces) > 0 {
		columns |= policy.JobColumns
	}
	if len(p.minimum.labels) > 0 {
		columns |= policy.LabelColumns
	}
	if p.maxEvictions > 0 {
		columns |= policy.JobColumns | policy.EvictionColumns | policy.MustLeaveColumn
	}
	return policy.Info{Name: "protect", Delta: 10, Columns: columns}
}

// PriorityDelta implements policy.DeltaHook.
func (p *Policy) PriorityDelta(in *policy.Candidates, gap []int32, recheck *policy.Recheck) error {
	who := in.Preemptor
	for row, priority := range in.Rows.Priority {
		if !p.mayProtect(who, priority) {
			continue
		}
		start := in.Rows.Start[row]
		if start >= in.Now {
			continue // it has not started and loses no work
		}
		if end := start + p.minimum.of(in, row); end > in.Now {
			gap[row] = policy.NeverEligible
			recheck.At(end)
		}
	}
	if p.maxEvictions > 0 {
		p.limit(in, gap, recheck)
	}
	return nil
}

// mayProtect reports whether a row may be protected: it would be eligible, and the
// preemptor's gap is below the override.
func (p *Policy) mayProtect(who *policy.Preemptor, priority int32) bool {
	apart := int64(who.Priority) - int64(priority)
	return apart >= int64(who.Delta) && (p.override == 0 || apart < p.override)
}
