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
)

// Has is whether every hook of want is in h.
func (h Hooks) Has(want Hooks) bool { return h&want == want }

// Instance is one running copy of a policy. Calling a hook that Hooks does not
// list is an error of the caller. An error that is no *Error is the guest's own.
type Instance interface {
	Info() sdk.Info
	Hooks() Hooks
	PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error
	ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error
	SelectVictims(in *sdk.Candidates, out *sdk.Selection) error
	ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error
}
