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

// Has is whether every hook of want is in h.
func (h Hooks) Has(want Hooks) bool { return h&want == want }

// Module is the code of a policy, loaded and ready to be started: native Go, a
// WebAssembly module, an executable. It is safe for concurrent use.
type Module interface {
	// Digest identifies the code: of a built-in, its name and the version of its rules.
	Digest() string
	// Settings is the configuration that the policy takes.
	Settings() []sdk.Setting
	// Start makes an instance and configures it. An error that is no *Error is
	// the policy's own objection to the configuration.
	Start(c *sdk.Config) (Instance, error)
}

// Instance is one running copy of a policy. Calling a hook that Hooks does not
// list is an error of the caller. An error that is no *Error is the guest's own.
type Instance interface {
	Info() sdk.Info
	Hooks() Hooks
	PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error
	ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error
	SelectVictims(in *sdk.Candidates, out *sdk.Selection) error
	ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error
	PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error

	// Fuel is what the last call of a hook used; 0 where nobody counts.
	Fuel() uint64
	// Alive is false once the instance is of no more use, as after a trap.
	Alive() bool
	// Close frees what the instance holds.
	Close()
}
