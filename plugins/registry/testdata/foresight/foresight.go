// Package foresight is a policy that decides by the columns of relocation and of look-ahead.
package foresight

import (
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// Policy selects victims as default does. Of the options it prefers those that lose the least
// work within ten minutes, then those whose victims can run elsewhere, then those with the
// shortest chain of evictions and the least delay.
type Policy struct{ *rules.Default }

var (
	_ policy.Policy         = Policy{}
	_ policy.VictimSelector = Policy{}
	_ policy.OptionScorer   = Policy{}
)

// New returns a policy.
func New() policy.Policy { return Policy{rules.New()} }

// Info implements policy.Policy.
func (p Policy) Info() policy.Info {
	info := p.Default.Info()
	info.Name, info.Monotone, info.Columns = "foresight", false, info.Columns|policy.LookAheadColumns
	return info
}

// ScoreOptions implements policy.OptionScorer.
func (p Policy) ScoreOptions(in *policy.Options, out *policy.OptionScores) error {
	if err := p.Default.ScoreOptions(in, out); err != nil {
		return err
	}
	for i := range in.Len() {
		out.Tiers[1][i] = in.ExpectedLostWork[i]
		out.Tiers[2][i] = out.Tiers[3][i]
		out.Tiers[3][i] = int64(in.CascadeDepth[i])<<48 | in.ExpectedDelay[i]>>16
	}
	return nil
}
