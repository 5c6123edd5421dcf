package model

import (
	"maps"
	"strings"
)

// The kinds of policy versions.
const (
	PolicyWasm    = "wasm"
	PolicyProcess = "process"
	PolicyBuiltin = "builtin"
	// PolicyComposition is an archive of other policies.
	PolicyComposition = "composition"
)

// The reactions to a policy fault.
const (
	OnFaultDeny    = "deny"    // nothing is evicted
	OnFaultDefault = "default" // the built-in default decides
)

// A PolicyVersion is a policy module with one configuration. It never changes
// except for Checks and Shadow.
type PolicyVersion struct {
	ID      string // sha256:..., over Digest and Config
	Name    string // the name operators use
	Digest  string // sha256:..., of the module
	Kind    string // wasm, process, builtin or composition
	Size    int64  // of the module in bytes; 0 if it is not distributed through the log
	Config  []byte // canonical JSON
	Grants  []string
	OnFault string // "" uses the scheduler configuration
	Limits  PolicyLimits
	Signer  string // fingerprint of the key that signed it; "" unsigned

	Time        int64 // Unix nanoseconds at which it was loaded
	CreateIndex uint64
	ModifyIndex uint64
	Checks      map[string]PolicyCheck // by server id
	// Shadow holds the sums of its newest shadow run, over all servers.
	Shadow ShadowSums
}

// ShadowSums compare a shadow with the active version on the same decisions.
type ShadowSums struct {
	Compared int64 // decisions
	Active   PolicySums
	Shadow   PolicySums
}

// Add adds the sums of further decisions.
func (s *ShadowSums) Add(o *ShadowSums) {
	s.Compared += o.Compared
	s.Active.Add(&o.Active)
	s.Shadow.Add(&o.Shadow)
}

// PolicyLimits bound the resources of one policy call; 0 uses the host's default.
type PolicyLimits struct {
	Fuel       uint64
	FuelPerRow uint64
	Memory     int64 // bytes
	Time       int64 // nanoseconds
}

// A PolicyCheck is the result of loading a policy version on one server.
type PolicyCheck struct {
	OK    bool
	Error string // "" when OK
	Time  int64  // Unix nanoseconds
}

// HasModule reports whether servers store the module of the version.
func (v *PolicyVersion) HasModule() bool { return v.Kind == PolicyWasm || v.Kind == PolicyComposition }

// WithCheck returns a copy of the version with one more check.
func (v *PolicyVersion) WithCheck(server string, c PolicyCheck) *PolicyVersion {
	next := *v
	next.Checks = maps.Clone(v.Checks)
	if next.Checks == nil {
		next.Checks = map[string]PolicyCheck{}
	}
	next.Checks[server] = c
	return &next
}

// A PolicyState holds the roles of the versions of one policy.
type PolicyState struct {
	Name     string
	Active   string            // version id; "": none
	Previous string            // version that a rollback activates; "": none
	Shadow   string            // runs alongside the active version without effect; "": none
	Tripped  map[string]string // by version ID: why it was taken out of service
	// Until is when the leader rolls back from Active, in Unix nanoseconds, unless
	// the trial is confirmed before; 0 if Active is not on trial.
	Until int64
	// LastTrial is the trial that ended last.
	LastTrial Trial

	ModifyIndex uint64
}

// A Trial is the end of a time-limited activation. The zero value means that there
// was none.
type Trial struct {
	Version string
	Ended   TrialEnd
	Time    int64  // Unix nanoseconds
	Actor   string // that ended it; "" if unknown
	Reason  string // the condition that held, with its values; "" if there was none
}

// TrialEnd is how a trial ended.
type TrialEnd string

// The ends of trials.
const (
	TrialExpired    TrialEnd = "expired"        // not confirmed in time, so it was rolled back
	TrialConfirmed  TrialEnd = "confirmed"      // the version stays
	TrialRolledBack TrialEnd = "rolled back"    // before its time was over
	TrialReplaced   TrialEnd = "replaced"       // another version was activated
	TrialTripped    TrialEnd = "out of service" // the version kept failing
	TrialUnloaded   TrialEnd = "unloaded"       // the version was deleted
	TrialPromoted   TrialEnd = "promoted"       // its condition for promotion held, and the version stays
	TrialStopped    TrialEnd = "stopped"        // its condition to stop held, so it was rolled back
)

// Uses reports whether the version has a role.
func (s *PolicyState) Uses(version string) bool {
	return version != "" && (s.Active == version || s.Previous == version || s.Shadow == version)
}

// ShortVersion returns the first 12 digits of the hash of a policy version, as users see it.
func ShortVersion(id string) string {
	const digits = 12
	hash := strings.TrimPrefix(id, "sha256:")
	return hash[:min(len(hash), digits)]
}

// TrialActor is the actor of verdicts: the trial itself decides by its conditions.
const TrialActor = "trial"

// Limits of trials with blocks.
const (
	// MaxTrialBlocks bounds the blocks of a trial, which are part of the state.
	MaxTrialBlocks = 1000
	// MinTrialBlock is the shortest block in nanoseconds.
	MinTrialBlock = int64(60 * 1e9)
)

// A TrialPlan describes a trial in which the active version and a candidate decide in
// alternate blocks of time. Blocks form pairs: each version decides in one block of a
// pair, in an order that the seed determines.
type TrialPlan struct {
	Block   int64 // nanoseconds
	Washout int64 // nanoseconds at the start of a block that are not measured
	Seed    uint64
	// StopIf and PromoteIf are conditions on the measures; "" never holds.
	StopIf, PromoteIf string
	// Measures is the number of measures that the conditions read. They share the error
	// rate of the trial.
	Measures int32
}

// CandidateDecides reports whether the candidate decides in a block, counted from 0.
func (p *TrialPlan) CandidateDecides(block int) bool {
	// splitmix64: the bits of consecutive pairs are independent.
	x := p.Seed + uint64(block/2+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	first := (x^x>>31)>>63 == 1
	return first == (block%2 == 0)
}

// A PolicyTrial is a trial with blocks, in progress or the last one of its policy.
type PolicyTrial struct {
	Name                string // of the policy
	Baseline, Candidate string // version IDs; the baseline was active before
	Plan                TrialPlan
	Start, Until        int64  // Unix nanoseconds
	Actor               string // that started it
	// Blocks are complete, the oldest first. The slice is shared and read-only.
	Blocks []TrialBlock
	// Current is the block in progress; the last one if the trial has ended.
	Current TrialBlock
	// End is the zero value while the trial runs.
	End Trial

	ModifyIndex uint64
}

// A TrialBlock is a period in which one version decides, with its sums.
type TrialBlock struct {
	Start     int64 // Unix nanoseconds
	Candidate bool  // the candidate decides; otherwise the baseline
	Sums      PolicySums
}

// PolicySums are sums over the jobs of one policy and their committed plans.
type PolicySums struct {
	Arrived          int64 // millicores that new versions of jobs request, the load
	Placed           int64 // allocations
	Waited           int64 // nanoseconds from the evaluation to its placement, summed over placements
	Victims          int64
	LostWork         int64 // nanoseconds of victims since their start or checkpoint
	LostCPU          int64 // millicore-seconds
	LostMemory       int64 // MiB-seconds
	BudgetViolations int64 // victims that overran a disruption budget
	HighestPriority  int32 // of the victims; 0 if there are none
}

// Running reports whether the trial is in progress.
func (t *PolicyTrial) Running() bool { return t != nil && t.End.Ended == "" }

// BlockEnd returns the end of the current block in Unix nanoseconds.
func (t *PolicyTrial) BlockEnd() int64 { return t.Current.Start + t.Plan.Block }

// Measures reports whether the current block is measured at a time in Unix nanoseconds:
// after its washout, and before its end.
func (t *PolicyTrial) Measures(now int64) bool {
	return t.Running() && now >= t.Current.Start+t.Plan.Washout && now < t.BlockEnd()
}

// Decides returns the version that decides in the current block, and the other one.
func (t *PolicyTrial) Decides() (active, other string) {
	if t.Current.Candidate {
		return t.Candidate, t.Baseline
	}
	return t.Baseline, t.Candidate
}

// Concerns reports whether the version takes part in the trial.
func (t *PolicyTrial) Concerns(version string) bool {
	return version == t.Baseline || version == t.Candidate
}

// Add adds the sums of further plans.
func (s *PolicySums) Add(o *PolicySums) {
	s.Arrived += o.Arrived
	s.Placed += o.Placed
	s.Waited += o.Waited
	s.Victims += o.Victims
	s.LostWork += o.LostWork
	s.LostCPU += o.LostCPU
	s.LostMemory += o.LostMemory
	s.BudgetViolations += o.BudgetViolations
	s.HighestPriority = max(s.HighestPriority, o.HighestPriority)
}

// AddVictim adds a victim at a time in Unix nanoseconds.
func (s *PolicySums) AddVictim(a *Allocation, now int64, violates bool) {
	lost := a.Group.LostWork(a.Age(now))
	s.Victims++
	s.LostWork += lost
	const millisecond, perSecond = 1e6, 1e3
	for d, sum := range map[int]*int64{CPU: &s.LostCPU, Memory: &s.LostMemory} {
		if d < len(a.Group.Ask.Vec) {
			*sum += lost / millisecond * a.Group.Ask.Vec[d] / perSecond
		}
	}
	if violates {
		s.BudgetViolations++
	}
	s.HighestPriority = max(s.HighestPriority, a.Job.Priority)
}
