package bound

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// cohorts maps all-or-none jobs to positions in Problem.Cohorts. The position is
// divisible if members may leave alone, and protected if none may.
type cohorts map[model.JobKey]int

const (
	divisible = -1
	protected = -2
)

// findCohorts adds the cohorts of all jobs that may be evicted as a whole.
func (b *builder) findCohorts() {
	b.cohorts = cohorts{}
	if !b.evicts {
		return
	}
	for c := range b.snap.ChunkCount() {
		chunk := b.snap.Chunk(c)
		for i := range chunk.Len() {
			rows := chunk.Rows(i)
			for at := range rows {
				if a := rows[at].Alloc; a.InCohort() {
					b.addCohort(a.Job.Key())
				}
			}
		}
	}
}

// addCohort adds the cohort of a job.
func (b *builder) addCohort(key model.JobKey) {
	if _, seen := b.cohorts[key]; seen {
		return
	}
	cost, whole, alone := int64(0), true, false
	live := map[string]int{}
	for _, a := range b.snap.AppendJobAllocs(nil, key) {
		if !a.InCohort() || a.LostWith(b.snap.Node(a.NodeID), b.Now) {
			continue
		}
		cost += b.costs.Of(a, b.Now)
		whole = whole && b.candidate(a)
		live[a.Group.Name]++
	}
	if job := b.snap.Job(key); job != nil {
		for group, n := range live {
			alone = alone || job.SurplusInstances(group, n) > 0
		}
	}
	switch {
	case alone:
		b.cohorts[key] = divisible
		b.drop("disruptionMode with minCount")
	case !whole:
		b.cohorts[key] = protected
	default:
		b.cohorts[key] = len(b.problem.Cohorts)
		b.problem.Cohorts = append(b.problem.Cohorts, Cohort{Cost: cost})
	}
}

// cohortOf returns the cohort of a row; negative: it has none. ok is false if the row is not a candidate.
func (b *builder) cohortOf(row *state.Row) (cohort int, ok bool) {
	if !b.candidate(row.Alloc) {
		return -1, false
	}
	if !row.Alloc.InCohort() {
		return -1, true
	}
	at := b.cohorts[row.Alloc.Job.Key()]
	if at == protected {
		return -1, false
	}
	return at, true
}
