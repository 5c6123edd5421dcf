package policy

// A Fault classifies a failed call.
type Fault uint8

// The kinds of faults.
const (
	FaultGuest   Fault = iota // the policy's own error, panic or trap
	FaultTimeout              // it took longer than allowed
	FaultLimit                // it exceeded its fuel or memory limit
	FaultAnswer               // its answer breaks a rule: NaN, foreign row, missing option
	FaultABI                  // its data cannot be decoded
	FaultHost                 // an error of the host
	// Faults is the number of kinds.
	Faults = iota
)

func (f Fault) String() string {
	return [...]string{"guest", "timeout", "limit", "answer", "abi", "host"}[f]
}

// An Error describes a failed call of a policy.
type Error struct {
	Policy  string // name; empty if not known yet
	Version string
	Hook    string
	Fault   Fault
	Err     error // starts with the policy's own message
	Hint    string
}

func (e *Error) Error() string {
	s := e.Err.Error()
	if e.Hook != "" {
		s = e.Hook + ": " + s
	}
	if e.Policy != "" {
		s = "policy " + e.Policy + ": " + s
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }
