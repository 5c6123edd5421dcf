package policy

import (
	"time"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// A Call records one call of a hook: its subject, cost and result. Violations that
// are found later, such as a foreign row in the answer, are not part of it.
type Call struct {
	Policy, Version, Digest string
	Hook                    string
	Options, Rows           int
	Fuel                    uint64
	Started                 time.Time
	Duration                time.Duration
	Err                     error
}

// observed reports every call to the version's observer and to the caller that
// acquired the instance.
type observed struct {
	Instance
	version *Version
	caller  func(Call)
}

func (o *observed) tell(hook string, options, rows int, call func() error) error {
	from := time.Now()
	err := call()
	v := o.version
	c := Call{
		Policy: v.Name, Version: v.ID, Digest: v.Digest, Hook: hook, Options: options, Rows: rows,
		Fuel: o.Fuel(), Started: from, Duration: time.Since(from), Err: err,
	}
	for _, tell := range [...]func(Call){v.observe, o.caller} {
		if tell != nil {
			tell(c)
		}
	}
	return err
}

func (o *observed) PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error {
	return o.tell("PriorityDelta", in.Len(), in.Rows.Len(), func() error { return o.Instance.PriorityDelta(in, gap, recheck) })
}

func (o *observed) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	return o.tell("ScoreVictims", in.Len(), in.Rows.Len(), func() error { return o.Instance.ScoreVictims(in, out) })
}

func (o *observed) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	return o.tell("SelectVictims", in.Len(), in.Rows.Len(), func() error { return o.Instance.SelectVictims(in, out) })
}

func (o *observed) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error {
	return o.tell("ScoreOptions", in.Len(), in.Victims.Len(), func() error { return o.Instance.ScoreOptions(in, out) })
}

func (o *observed) PreemptBindings(in *sdk.Candidates, out *sdk.BindingVictims) error {
	return o.tell("PreemptBindings", in.Len(), in.Rows.Len(), func() error { return o.Instance.PreemptBindings(in, out) })
}
