package policy

// Fault says whose fault a failed call was.
type Fault uint8

// The kinds of faults.
const (
	FaultGuest   Fault = iota // the policy's own error, panic or trap
	FaultTimeout              // it took longer than allowed
	FaultLimit                // it wanted more fuel or memory than allowed
	FaultAnswer               // its answer breaks a rule: NaN, foreign row, missing option
	FaultABI                  // what it sent cannot be read
	FaultHost                 // ours
	// Faults is how many kinds there are.
	Faults = iota
)

func (f Fault) String() string {
	return [...]string{"guest", "timeout", "limit", "answer", "abi", "host"}[f]
}

// Error says which policy failed, where, and whose fault it was.
type Error struct {
	Policy  string // name; empty while nobody knows it
	Version string
	Hook    string
	Fault   Fault
	Err     error // the policy's own words first
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
