package preempt

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// shared computes the tables that are the same for every option: what ready
// nodes offer, and what each namespace uses. Only policies that ask for them
// pay for the scan.
func (f *Finder) shared(ids *dictionary) *sdk.Shared {
	dims := f.dims.Len()
	s := &sdk.Shared{Totals: make([]float64, dims)}
	use := map[string]*model.Vector{}
	for c := range f.snap.Chunks() {
		chunk := f.snap.Chunk(c)
		for i := range chunk.Len() {
			if chunk.Schedulable()>>i&1 == 1 {
				for d := range dims {
					s.Totals[d] += float64(chunk.Node(i).Avail[d])
				}
			}
			addUse(use, chunk.Rows(i))
		}
	}
	s.Namespaces.Use = make([][]float64, dims)
	for _, name := range sortedKeys(use) {
		s.Namespaces.Name = append(s.Namespaces.Name, ids.id(name))
		s.Namespaces.Weight = append(s.Namespaces.Weight, f.req.weight(name))
		for d := range dims {
			s.Namespaces.Use[d] = append(s.Namespaces.Use[d], float64(use[name][d]))
		}
	}
	return s
}

func addUse(use map[string]*model.Vector, rows []state.Row) {
	for i := range rows {
		name := rows[i].Group.Job.Namespace
		if use[name] == nil {
			use[name] = new(model.Vector)
		}
		use[name].Add(&rows[i].Group.Ask.Vec)
	}
}

// weight is a namespace's weight, 1 where nothing says otherwise.
func (r *Request) weight(namespace string) float64 {
	if w, ok := r.Weights[namespace]; ok {
		return w
	}
	return 1
}
