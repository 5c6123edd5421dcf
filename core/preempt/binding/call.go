package binding

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// hookBindings is the name of the hook in errors and metrics.
const hookBindings = "PreemptBindings"

// call calls the policy about the options as they are. It lays out anew each time: the
// two calls of a search are about different rows. It returns a *policy.Error if the
// policy fails or answers another number of clusters.
func (s *search) call() (*sdk.Candidates, *sdk.BindingVictims, error) {
	in := s.layOut()
	out := &sdk.BindingVictims{}
	out.Reset()
	for k := range out.Tiers {
		out.Tiers[k] = make([]int64, in.Len())
	}
	if s.version == nil {
		return in, out, rules.New().PreemptBindings(in, out)
	}
	instance, err := s.version.AcquireObserved(s.req.OnCall)
	if err != nil {
		return nil, nil, err
	}
	defer s.version.Release(instance)
	if err := s.version.RecordCall(hookBindings, instance.PreemptBindings(in, out)); err != nil {
		return nil, nil, err
	}
	if out.Len() != in.Len() {
		return nil, nil, s.badAnswer("answered %d clusters of %d", out.Len(), in.Len())
	}
	return in, out, nil
}

// badAnswer records and returns an error of the policy. The built-in rules cannot
// answer wrongly, so that is a defect and panics.
func (s *search) badAnswer(format string, args ...any) error {
	if s.version == nil {
		panic("binding: the built-in rules returned an invalid answer")
	}
	return s.version.RecordBadAnswer(hookBindings, format, args...)
}

// layOut lays out the options in columns. Freed is zero, because nothing has been
// evicted yet.
func (s *search) layOut() *sdk.Candidates {
	s.ids.Reset()
	in := &sdk.Candidates{
		Now: s.req.Now, Preemptor: s.preemptor(), Dims: s.snap.Dims().Names(), FirstRow: []int32{0},
		Need: make([][]float64, s.dims), Freed: make([][]float64, s.dims), Rows: sdk.Rows{Use: make([][]float64, s.dims)},
	}
	for i := range s.options {
		o := &s.options[i]
		in.Place = append(in.Place, s.ids.ID(s.req.Clusters[o.cluster].ID))
		for d := range s.dims {
			in.Need[d] = append(in.Need[d], float64(o.need[d]))
			in.Freed[d] = append(in.Freed[d], 0)
		}
		for _, row := range o.rows {
			s.appendRow(&in.Rows, row)
		}
		in.FirstRow = append(in.FirstRow, int32(len(in.Rows.Priority)))
	}
	in.Strings = s.ids.List
	return in
}

// appendRow appends one candidate. A binding is both the job and the group of its rows.
func (s *search) appendRow(r *sdk.Rows, row row) {
	key := row.assignment.Binding
	name := s.ids.ID(key.Namespace + "\x00" + key.ID)
	r.Priority = append(r.Priority, row.priority)
	r.Start = append(r.Start, row.assignment.StartTime)
	r.LostWork = append(r.LostWork, row.assignment.LostWork(s.req.Now, row.checkpoint))
	r.Namespace, r.Job, r.Group = append(r.Namespace, s.ids.ID(key.Namespace)), append(r.Job, name), append(r.Group, name)
	for d := range s.dims {
		r.Use[d] = append(r.Use[d], float64(row.vec[d]))
	}
}

// preemptor describes the binding as policies read it. Amounts are those of all missing
// replicas together.
func (s *search) preemptor() *sdk.Preemptor {
	b := s.req.Binding
	ask := b.TotalAsk(s.req.Replicas)
	p := &sdk.Preemptor{
		Namespace: b.Namespace, Job: b.ID, Group: b.ID, JobType: model.JobBinding.String(), Priority: b.Priority,
		Delta: preempt.BaseGap(s.req.Policy, s.req.Delta), Waiting: s.req.Waiting, Attempts: s.req.Attempts,
	}
	for d := range s.dims {
		p.Ask = append(p.Ask, float64(ask[d]))
	}
	return p
}
