package policy

import (
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Hooks is the set of hooks that an instance implements.
type Hooks uint8

// The hooks.
const (
	HookDelta Hooks = 1 << iota
	HookScoreVictims
	HookSelectVictims
	HookScoreOptions
	HookPreemptBindings
)

// Has reports whether every hook of want is in h.
func (h Hooks) Has(want Hooks) bool { return h&want == want }

// A Module is the code of a policy, ready to be started: native Go, a WebAssembly
// module, or an executable. It is safe for concurrent use.
type Module interface {
	// Digest identifies the code. For a built-in policy it is derived from its name
	// and the version of its rules.
	Digest() string
	// Settings returns the settings that the policy accepts.
	Settings() []sdk.Setting
	// Start creates and configures an instance. An error that is not an *Error is
	// the policy's own objection to the configuration.
	Start(c *sdk.Config) (Instance, error)
}

// An Instance is one running copy of a policy. Callers must not call a hook that
// Hooks does not list. An error that is not an *Error is the policy's own.
type Instance interface {
	Info() sdk.Info
	Hooks() Hooks
	PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error
	ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error
	SelectVictims(in *sdk.Candidates, out *sdk.Selection) error
	ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error
	PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error

	// Fuel returns the fuel that the last call of a hook used, or 0 if it is not
	// metered.
	Fuel() uint64
	// Alive returns false if the instance cannot be used any more, for instance
	// after a trap.
	Alive() bool
	// Close frees the resources of the instance.
	Close()
}
