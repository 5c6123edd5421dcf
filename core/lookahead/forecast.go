package lookahead

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/lifetime"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// The bounds of a forecast. Fuel is counted as that of plays.
const (
	ForecastDraws   = 9
	ForecastHorizon = 24 * time.Hour
	minDraws        = 5         // that must end before the deadline
	forecastFuel    = 1_000_000 // of one draw
	forecastSlice   = 50_000    // fuel between two looks at the deadline
)

// Durations are drawn from the runs that have ended, if there are enough of them. Otherwise
// a stated duration is multiplied by a factor between 1/defaultSpread and defaultSpread.
const (
	minRuns       = 5
	defaultSpread = 1.25
)

// A Queue predicts when the waiting instances of all jobs start.
type Queue struct {
	Index uint64 // of the state
	Now   int64  // Unix nanoseconds
	Draws int    // that were played to their end
	// Running counts the instances that run, and Ending those whose end can be
	// drawn: the job states a duration, or enough runs of its group have ended.
	Running, Ending int
	// Exhausted counts the draws that ended before the horizon because they cost too much.
	Exhausted int
	Jobs      map[model.JobKey]*QueuedJob
}

// A QueuedJob is a job with waiting instances.
type QueuedJob struct {
	EvalID   string
	Position int // 1: the first of the queue
	Waiting  int // instances
	Since    int64
	// First and All hold the times at which the first instance and the last one have started,
	// in Unix nanoseconds, ascending. A draw in which that does not happen has no time.
	First, All []int64
}

// ForecastQueue plays a snapshot forward with the durations of running instances drawn at
// random, ForecastDraws times, and returns when the waiting instances start. Nothing else
// arrives. The draws depend on the snapshot alone, and their number on the deadline of the
// context. It returns the error of the context if too few draws ended before.
func ForecastQueue(ctx context.Context, snap *state.Snapshot, now int64, set *policy.Set) (*Queue, error) {
	q := &Queue{Index: snap.Index(), Now: now, Jobs: waitingJobs(snap)}
	runs := endedRuns(snap)
	p := newPlayer(nil, scheduler.Config{})
	p.set = set
	for n := range ForecastDraws {
		d := &draw{runs: runs, number: n, now: now, waiting: map[model.JobKey]*waitingJob{}}
		for key, job := range q.Jobs {
			d.waiting[key] = &waitingJob{left: job.Waiting, started: map[slot]bool{}}
		}
		p.outlook = d.outlook(snap)
		q.Running, q.Ending = d.running, d.ending
		exhausted, err := d.play(ctx, p, snap)
		if ctx.Err() != nil && q.Draws >= minDraws {
			break
		}
		if err != nil {
			return nil, err
		}
		q.add(d, exhausted)
	}
	for _, job := range q.Jobs {
		slices.Sort(job.First)
		slices.Sort(job.All)
	}
	return q, nil
}

// add adds the times of a draw.
func (q *Queue) add(d *draw, exhausted bool) {
	q.Draws++
	if exhausted {
		q.Exhausted++
	}
	for key, w := range d.waiting {
		job := q.Jobs[key]
		if w.first != 0 {
			job.First = append(job.First, w.first)
		}
		if w.all != 0 {
			job.All = append(job.All, w.all)
		}
	}
}

// Quantile returns the p-quantile of times among draws, and false if it is beyond the
// horizon. times are ascending.
func Quantile(times []int64, draws int, p float64) (int64, bool) {
	at := max(1, int(math.Ceil(p*float64(draws)))) - 1
	if at >= len(times) {
		return 0, false
	}
	return times[at], true
}

// waitingJobs returns the jobs with waiting evaluations, in the order of the queue.
func waitingJobs(snap *state.Snapshot) map[model.JobKey]*QueuedJob {
	evals := map[model.JobKey]*model.Evaluation{}
	for e := range snap.Evals() {
		if e.Status.Final() || e.Type == model.JobBinding || missing(snap, e) == 0 {
			continue
		}
		// The blocked evaluation of a job counts the missing instances.
		if old := evals[e.JobKey()]; old == nil || old.Status != model.EvalBlocked && e.Status == model.EvalBlocked {
			evals[e.JobKey()] = e
		}
	}
	list := slices.SortedFunc(maps.Values(evals), (*model.Evaluation).CompareQueued)
	jobs := make(map[model.JobKey]*QueuedJob, len(list))
	for i, e := range list {
		jobs[e.JobKey()] = &QueuedJob{EvalID: e.ID, Position: i + 1, Waiting: missing(snap, e), Since: e.CreateTime}
	}
	return jobs
}

// missing returns the number of instances that an evaluation waits for. An evaluation that
// was not processed does not hold it: then it is the difference to the job.
func missing(snap *state.Snapshot, e *model.Evaluation) (n int) {
	for _, queued := range e.Queued {
		n += queued
	}
	job := snap.Job(e.JobKey())
	if n > 0 || job == nil || job.Stopped || job.Type.PerNode() {
		return n
	}
	allocs := snap.AppendJobAllocs(nil, job.Key())
	for _, g := range job.Groups {
		n += g.Missing(allocs)
	}
	return n
}

// runKey identifies a group through the versions of its job.
type runKey struct {
	job   model.JobKey
	group string
}

// runs holds the lengths of runs that have ended by themselves.
type runs struct {
	byGroup map[runKey][]int64 // nanoseconds of work, ascending
	ratios  []float64          // to the stated durations, over all groups, ascending
}

func endedRuns(snap *state.Snapshot) *runs {
	r := &runs{byGroup: map[runKey][]int64{}}
	for a := range snap.Allocs() {
		work := a.EndTime - a.StartTime + a.SavedWork
		if !a.Completed() || !a.Started || work <= 0 {
			continue
		}
		key := runKey{a.Job.Key(), a.Group.Name}
		r.byGroup[key] = append(r.byGroup[key], work)
		if a.Group.Duration > 0 {
			r.ratios = append(r.ratios, float64(work)/float64(a.Group.Duration))
		}
	}
	for _, list := range r.byGroup {
		slices.Sort(list)
	}
	slices.Sort(r.ratios)
	return r
}

// total draws the work of an allocation, in nanoseconds, that has done some of it. It
// returns false if its end cannot be predicted.
func (r *runs) total(rng *rand.Rand, a *model.Allocation, done int64) (int64, bool) {
	const tries = 16
	if list := r.byGroup[runKey{a.Job.Key(), a.Group.Name}]; len(list) >= minRuns {
		at, _ := slices.BinarySearch(list, done+1)
		if longer := list[at:]; len(longer) > 0 {
			return longer[rng.IntN(len(longer))], true
		}
		return done, true // it runs longer than all others did: due at any moment
	}
	if a.Group.Duration <= 0 {
		return 0, false
	}
	for range tries {
		factor := math.Exp((2*rng.Float64() - 1) * math.Log(defaultSpread))
		if len(r.ratios) >= minRuns {
			factor = r.ratios[rng.IntN(len(r.ratios))]
		}
		if total := int64(factor * float64(a.Group.Duration)); total > done {
			return total, true
		}
	}
	return done, true // overdue
}

// waitingJob counts the instances of a job that have started in a draw.
type waitingJob struct {
	left       int
	started    map[slot]bool
	first, all int64 // Unix nanoseconds; 0: not yet
}

// A draw is one play of the queue.
type draw struct {
	*game
	runs            *runs
	number          int
	now             int64
	running, ending int
	unstarted       []string // placements of the snapshot that wait for nothing
	placed          []string // that have not started
	waiting         map[model.JobKey]*waitingJob
	open            int // jobs with instances that have not started
}

// end returns the end of an allocation that starts or runs, and false if it is unknown.
// The drawn value depends on the allocation and the number of the draw, not on the order of
// calls.
func (d *draw) end(a *model.Allocation, now int64) (int64, bool) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(a.ID)) // a hash does not fail
	done := a.Age(now) + a.SavedWork
	total, known := d.runs.total(rand.New(rand.NewPCG(h.Sum64(), uint64(d.number))), a, done)
	return now + total - done, known
}

// outlook returns the ends of the snapshot, drawn at random.
func (d *draw) outlook(snap *state.Snapshot) outlook {
	o := outlook{snap: snap, now: d.now}
	until := d.now + int64(ForecastHorizon)
	for c := range snap.ChunkCount() {
		chunk := snap.Chunk(c)
		for i := range chunk.Len() {
			for _, row := range chunk.Rows(i) {
				d.addRow(&o, row.Alloc, until)
			}
			for _, a := range chunk.Stopping(i) {
				o.ends = append(o.ends, lifetime.End{At: max(d.now, a.EndTime+a.Group.KillTimeout), Alloc: a.ID, Stop: true})
			}
		}
	}
	slices.SortFunc(o.ends, func(a, b lifetime.End) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Alloc, b.Alloc)) })
	return o
}

func (d *draw) addRow(o *outlook, a *model.Allocation, until int64) {
	if !a.Started {
		before := len(o.waits)
		o.addWaits(a.ID, a, 0)
		if len(o.waits) == before {
			d.unstarted = append(d.unstarted, a.ID)
		}
		return
	}
	d.running++
	at, known := d.end(a, d.now)
	if !known {
		return
	}
	d.ending++
	if at <= until {
		o.ends = append(o.ends, lifetime.End{At: at, Alloc: a.ID})
	}
}

// play plays until every waiting instance has started, or until the horizon. exhausted is
// true if the fuel was used up before.
func (d *draw) play(ctx context.Context, p *Player, snap *state.Snapshot) (exhausted bool, err error) {
	d.game = newGame(p, snap, d.now)
	d.horizon, d.fuel = d.now+int64(ForecastHorizon), forecastSlice
	d.applier = planner.NewApplier(planner.Config{
		Store: d.store, Committer: planner.DirectCommitter{Store: d.store, OnCommit: d.commit}, PlacementVerifier: &feasible.Verifier{},
	})
	d.open = len(d.waiting)
	isBinding := func(e *model.Evaluation) bool { return e.Type == model.JobBinding }
	broker.Batch(d.broker, func() { d.feed.Restore(snap, d.now, 0, isBinding) })
	d.start(d.unstarted...)
	for left := forecastFuel; d.open > 0; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		drained := d.drain(ctx)
		d.observe()
		switch {
		case drained && !d.advance():
			return false, nil
		case drained:
		case d.fuel > 0:
			return false, fmt.Errorf("an evaluation cannot be planned at %s", d.clock.Now().UTC().Format(time.RFC3339))
		case left <= forecastSlice:
			return true, nil
		default:
			left -= forecastSlice
			d.fuel = forecastSlice
		}
	}
	return false, nil
}

// commit processes a commit, and records its placements.
func (d *draw) commit(snap *state.Snapshot, batch *apply.Batch, evals []*model.Evaluation) {
	for _, bp := range batch.Plans {
		for _, i := range bp.Groups {
			for _, a := range bp.Plan.Groups[i].Placements {
				d.placed = append(d.placed, a.ID)
			}
		}
	}
	d.committed(snap, batch, evals)
}

// observe records the placements that have started, and draws their ends.
func (d *draw) observe() {
	snap, now := d.store.Snapshot(), d.clock.Now().UnixNano()
	d.placed = slices.DeleteFunc(d.placed, func(id string) bool {
		a := snap.Alloc(id)
		if a == nil || !a.Live() {
			return true // evicted before it started
		}
		if a.Started {
			d.startedAt(now, a)
		}
		return a.Started
	})
}

func (d *draw) startedAt(now int64, a *model.Allocation) {
	if at, known := d.end(a, now); known && a.Group.Duration == 0 { // the game adds the end of the others
		d.ends.Add(lifetime.End{At: at, Alloc: a.ID})
	}
	w := d.waiting[a.Job.Key()]
	if w == nil || w.all != 0 || w.started[slotOf(a)] {
		return
	}
	w.started[slotOf(a)] = true
	w.first = cmp.Or(w.first, now)
	if len(w.started) >= w.left {
		w.all = now
		d.open--
	}
}
