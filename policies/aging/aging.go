package aging

import "github.com/cede-scheduler/cede/sdk/policy"

// Policy is the policy "aging". It must be configured before its first call.
type Policy struct {
	halfLife int64 // nanoseconds in which the gap halves
	grace    int64 // nanoseconds of waiting before the gap begins to shrink
	settle   int64 // nanoseconds after its start in which an allocation is not evicted by age
	floor    int32 // smallest gap that waiting leads to
}

var (
	_ policy.Policy       = (*Policy)(nil)
	_ policy.Configurable = (*Policy)(nil)
	_ policy.DeltaHook    = (*Policy)(nil)
)

// New returns a policy that must be configured.
func New() *Policy { return &Policy{} }

// Info implements policy.Policy.
func (*Policy) Info() policy.Info {
	return policy.Info{Name: "aging", Delta: 10, Columns: policy.StartColumn | policy.TimeColumns}
}

// year bounds durations, in seconds. Even decades in nanoseconds fit an int64.
const year = 365 * 24 * 3600

// Settings implements policy.Configurable.
func (*Policy) Settings() []policy.Setting {
	return []policy.Setting{
		{
			Name: "halfLife", Kind: policy.Duration, Default: "10m", Limits: policy.Between(1, year), Range: policy.Between(60, 6*3600),
			Doc: "waiting time in which the required priority gap halves",
		},
		{
			Name: "grace", Kind: policy.Duration, Default: "0s", Limits: policy.Between(0, year), Range: policy.Between(0, 1800),
			Doc: "waiting time before the gap begins to shrink",
		},
		{
			Name: "floor", Kind: policy.Integer, Default: "1", Limits: policy.Between(1, 1<<31-1), Range: policy.Between(1, 20),
			Doc: "gap, in points of priority, below which age does not shrink it",
		},
		{
			Name: "settle", Kind: policy.Duration, Default: "5m", Limits: policy.Between(0, year), Range: policy.Between(0, 1800),
			Doc: "time since its start in which an allocation is not evicted by age alone",
		},
	}
}

// Configure implements policy.Configurable.
func (p *Policy) Configure(c *policy.Config) error {
	p.halfLife, p.grace, p.settle = c.Duration("halfLife"), c.Duration("grace"), c.Duration("settle")
	p.floor = int32(c.Integer("floor"))
	return nil
}

// PriorityDelta implements policy.DeltaHook.
func (p *Policy) PriorityDelta(in *policy.Candidates, gap []int32, recheck *policy.Recheck) error {
	who := in.Preemptor
	if who.Delta <= p.floor {
		return nil
	}
	aged := p.gap(who.Delta, who.Waiting)
	wait := waits{policy: p, base: who.Delta}
	for row, priority := range in.Rows.Priority {
		apart := int64(who.Priority) - int64(priority)
		if apart >= int64(who.Delta) || apart < int64(p.floor) {
			continue // eligible at any age, or never
		}
		// An allocation that has not started loses no work and needs no time to settle.
		settled := in.Now
		if start := in.Rows.Start[row]; start < in.Now {
			settled = start + p.settle
		}
		if apart >= int64(aged) && settled <= in.Now {
			gap[row] = aged
			continue
		}
		recheck.At(max(settled, in.Now-who.Waiting+wait.until(int32(apart))))
	}
	return nil
}
