package policytest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// JobTypeBinding is the job type of preemptors that are bindings.
const JobTypeBinding = "binding"

// NewBindingVictims returns an empty answer, as a host passes it to PreemptBindings.
func NewBindingVictims(options int) *policy.BindingVictims {
	out := &policy.BindingVictims{}
	out.Reset()
	for k := range out.Tiers {
		out.Tiers[k] = make([]int64, options)
	}
	return out
}

// decideBindings is Decide for bindings. Eligibility depends on the base gap only.
func (s *Subject) decideBindings(c *Case) (*Decision, error) {
	d := &Decision{Chosen: -1}
	shown := *c
	shown.Options = slices.Clone(c.Options)
	whole := c.Candidates()
	gaps := slices.Repeat([]int32{max(1, c.Preemptor.Delta)}, whole.Rows.Len())
	for i := range shown.Options {
		rows := Eligible(whole, gaps, i)
		d.Eligible, d.Refused = append(d.Eligible, rows), append(d.Refused, nil)
		shown.Options[i].Rows = rowsAt(c.Options[i].Rows, rows)
	}
	victims, _, err := s.callPreemptBindings(&shown, &d.RecheckAt)
	if err != nil {
		return nil, err
	}
	spared := shown
	spared.Options = nil
	var at []int
	for i, v := range victims {
		d.Victims = append(d.Victims, mapped(v, d.Eligible[i]))
		if v == nil {
			continue
		}
		o := shown.Options[i]
		o.Rows = rowsAt(o.Rows, slices.Sorted(slices.Values(v)))
		spared.Options, at = append(spared.Options, o), append(at, i)
	}
	if len(at) == 0 {
		return d, nil
	}
	_, out, err := s.callPreemptBindings(&spared, new(int64))
	if err != nil {
		return nil, err
	}
	best := 0
	for i := range at {
		for k := range out.Tiers {
			if c := cmp.Compare(out.Tiers[k][i], out.Tiers[k][best]); c != 0 {
				if c < 0 {
					best = i
				}
				break
			}
		}
	}
	d.Chosen = at[best]
	return d, nil
}

func rowsAt(all []Row, at []int) (rows []Row) {
	for _, k := range at {
		rows = append(rows, all[k])
	}
	return rows
}

func (s *Subject) callPreemptBindings(c *Case, recheck *int64) ([][]int, *policy.BindingVictims, error) {
	const hook = "PreemptBindings"
	p := s.Bindings
	if p == nil {
		p = rules.New()
	}
	in := c.Candidates()
	out := NewBindingVictims(in.Len())
	if err := p.PreemptBindings(in, out); err != nil {
		return nil, nil, err
	}
	if err := checkSelection(hook, in, &out.Selection); err != nil {
		return nil, nil, err
	}
	*recheck = out.Recheck.Time()
	return EvictUntilFit(in, &out.Selection, false), out, nil
}

// checkSelection returns an AnswerError if a list names a row of another option or a
// row twice.
func checkSelection(hook string, in *policy.Candidates, list *policy.Selection) error {
	if list.Len() != in.Len() {
		return &AnswerError{hook, fmt.Sprintf("got %d answers for %d options", list.Len(), in.Len())}
	}
	for i := range in.Len() {
		rows := slices.Sorted(slices.Values(list.Rows(i)))
		for k, row := range rows {
			if row < in.FirstRow[i] || row >= in.FirstRow[i+1] {
				return &AnswerError{hook, fmt.Sprintf("option %d lists row %d, outside its rows %d to %d", i, row, in.FirstRow[i], in.FirstRow[i+1]-1)}
			}
			if k > 0 && rows[k-1] == row {
				return &AnswerError{hook, fmt.Sprintf("option %d lists row %d twice", i, row)}
			}
		}
	}
	return nil
}
