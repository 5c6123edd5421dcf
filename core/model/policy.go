package model

import "maps"

// What a policy version is made of.
const (
	PolicyWasm    = "wasm"
	PolicyProcess = "process"
	PolicyBuiltin = "builtin"
)

// What becomes of an evaluation whose policy is at fault.
const (
	OnFaultDeny    = "deny"    // nobody is evicted
	OnFaultDefault = "default" // the built-in default decides
)

// PolicyVersion is a policy module with one configuration, as the servers have
// it. It never changes but for Checks.
type PolicyVersion struct {
	ID      string // sha256:..., over Digest and Config
	Name    string // the name operators use
	Digest  string // sha256:..., of the module
	Kind    string // wasm, process or builtin
	Size    int64  // of the module in bytes; 0 for what does not travel through the log
	Config  []byte // canonical JSON
	Grants  []string
	OnFault string // "": what the scheduler configuration says
	Limits  PolicyLimits
	Signer  string // fingerprint of the key that signed it; "" unsigned

	Time        int64 // Unix nanoseconds at which it was loaded
	CreateIndex uint64
	ModifyIndex uint64
	Checks      map[string]PolicyCheck // by server id
}

// PolicyLimits bound what one call of a policy may use; 0: the host's default.
type PolicyLimits struct {
	Fuel       uint64
	FuelPerRow uint64
	Memory     int64 // bytes
	Time       int64 // nanoseconds
}

// PolicyCheck is what one server found when it tried a policy version.
type PolicyCheck struct {
	OK    bool
	Error string // "" when OK
	Time  int64  // Unix nanoseconds
}

// WithCheck is a copy of the version with one more check.
func (v *PolicyVersion) WithCheck(server string, c PolicyCheck) *PolicyVersion {
	next := *v
	next.Checks = maps.Clone(v.Checks)
	if next.Checks == nil {
		next.Checks = map[string]PolicyCheck{}
	}
	next.Checks[server] = c
	return &next
}

// PolicyState is what role the versions of one policy play.
type PolicyState struct {
	Name     string
	Active   string            // version id; "": none
	Previous string            // what rollback returns to; "": none
	Shadow   string            // runs beside the active one, nothing applied; "": none
	Tripped  map[string]string // version id -> why it was taken out of service
	// Until is when the leader rolls back from Active, Unix nanoseconds, unless it
	// is activated again before: it is on trial. 0: it is not.
	Until int64
	// LastTrial is the trial that ended last.
	LastTrial Trial

	ModifyIndex uint64
}

// Trial is how an activation for a time ended. The zero Trial is none.
type Trial struct {
	Version string
	Ended   TrialEnd
	Time    int64 // Unix nanoseconds
}

// TrialEnd is how a trial ended.
type TrialEnd string

// The ends of trials.
const (
	TrialExpired    TrialEnd = "expired"        // nobody confirmed it in time, so it was rolled back
	TrialConfirmed  TrialEnd = "confirmed"      // the version stays
	TrialRolledBack TrialEnd = "rolled back"    // before its time was over
	TrialReplaced   TrialEnd = "replaced"       // another version was activated
	TrialTripped    TrialEnd = "out of service" // the version kept failing
	TrialUnloaded   TrialEnd = "unloaded"       // the version was forgotten
)

// Uses is whether the version plays a role.
func (s *PolicyState) Uses(version string) bool {
	return version != "" && (s.Active == version || s.Previous == version || s.Shadow == version)
}
