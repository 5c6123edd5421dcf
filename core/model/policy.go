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
)

// The reactions to a policy fault.
const (
	OnFaultDeny    = "deny"    // nothing is evicted
	OnFaultDefault = "default" // the built-in default decides
)

// A PolicyVersion is a policy module with one configuration. It never changes
// except for Checks.
type PolicyVersion struct {
	ID      string // sha256:..., over Digest and Config
	Name    string // the name operators use
	Digest  string // sha256:..., of the module
	Kind    string // wasm, process or builtin
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
