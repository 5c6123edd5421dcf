package compare

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// A runSet holds all runs of one comparison.
type runSet struct {
	*comparison
	progress *term.Progress
	total    int

	mu   sync.Mutex
	done int

	runs     []compare.Run // ordered by file, policy and seed; policies as written
	faults   []error
	warnings []string
}

func newRunSet(c *comparison, files int) *runSet {
	return &runSet{comparison: c, progress: c.env.Progress(), total: files * len(c.policies) * c.seeds}
}

// A runSpec is one run of a comparison.
type runSpec struct {
	file   string
	f      *scenario.File
	policy string
	ties   tiebreak.Order
	first  bool // first run of its policy, whose decisions are compared
}

// runSpecs lists the runs of one file. The first run of each policy equals that of
// `cede sim run`; the seeds of the others follow its seed.
func (s *runSet) runSpecs(file string, f *scenario.File) []runSpec {
	var list []runSpec
	for _, p := range s.policies {
		for i := range uint64(s.seeds) {
			g := runSpec{file: file, f: f, policy: p, first: i == 0}
			if i > 0 {
				g.f = seeded(f, f.Seed+i)
				g.ties.Seed = max(g.f.Seed, 1) // 0 would order by ID
			}
			list = append(list, g)
		}
	}
	return list
}

// play plays one file under every policy and seed, several runs concurrently. The
// results do not depend on the concurrency.
func (s *runSet) play(ctx context.Context, file string, f *scenario.File) error {
	app.TuneForSimulation()
	specs := s.runSpecs(file, f)
	runs, errs := make([]*sim.Run, len(specs)), make([]error, len(specs))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	crew := s.workers(f, len(specs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range crew {
		wg.Go(func() {
			for i := range next {
				if runs[i], errs[i] = s.playOne(ctx, &specs[i], max(1, s.env.Cores/crew)); errs[i] != nil {
					cancel() // the result of the other runs is not used
				}
			}
		})
	}
	for i := range specs {
		next <- i
	}
	close(next)
	wg.Wait()
	if err := firstCause(errs); err != nil {
		return err
	}
	for i := range specs {
		s.addResult(&specs[i], runs[i])
	}
	return nil
}

// firstCause returns the first error that is not caused by another one's
// cancellation.
func firstCause(errs []error) error {
	var cancelled error
	for _, err := range errs {
		switch {
		case err == nil:
		case cmdutil.ExitOf(err) == cmdutil.ExitInterrupted:
			cancelled = err
		default:
			return err
		}
	}
	return cancelled
}

func (s *runSet) playOne(ctx context.Context, g *runSpec, workers int) (*sim.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	run, err := sim.Play(ctx, g.f, sim.Options{
		Policy: g.policy, Resolve: s.players.Resolver(g.f, g.file, g.policy), Ties: g.ties, Workers: workers, Timing: s.timing,
		Progress: func(p sim.Progress) { s.show(g, p) },
	})
	s.mu.Lock()
	s.done++
	s.mu.Unlock()
	return run, err
}

func (s *runSet) show(g *runSpec, p sim.Progress) {
	s.progress.Show(func(elapsed time.Duration) string {
		s.mu.Lock()
		done := s.done
		s.mu.Unlock()
		name := fmt.Sprintf("%s of %s runs done; %s under %s, seed %d", cmdutil.Thousands(done), cmdutil.Thousands(s.total), g.f.Name, g.policy, g.f.Seed)
		return simrun.FormatProgress(name, p, elapsed)
	})
}

// addResult stores the parts of a run that the comparison uses, so that the rest can
// be freed.
func (s *runSet) addResult(g *runSpec, run *sim.Run) {
	r := compare.Run{
		Scenario: run.Result.Scenario, Policy: g.policy, Seed: run.Result.Seed,
		Metrics: run.Metrics, Series: run.Series,
	}
	if g.first {
		r.Decisions = decisions(run.Result)
	}
	s.runs = append(s.runs, r)
	name := fmt.Sprintf("%s under %s, seed %d", g.file, s.players.DisplayNames[g.policy], g.f.Seed)
	if err := simrun.FaultsError(name, run.Faults, s.players.OnFault); err != nil {
		s.faults = append(s.faults, err)
	}
	for _, w := range run.Warnings {
		if w = g.file + ": " + w; !slices.Contains(s.warnings, w) {
			s.warnings = append(s.warnings, w)
		}
	}
}

// namedRuns returns the runs with the display names of their policies.
func (s *runSet) namedRuns() []compare.Run {
	runs := slices.Clone(s.runs)
	for i := range runs {
		runs[i].Policy = s.players.DisplayNames[runs[i].Policy]
	}
	return runs
}

// decisions returns the placements of a run with their evictions.
func decisions(r *sim.Result) []compare.Decision {
	list := make([]compare.Decision, len(r.Placements))
	for i := range r.Placements {
		p := &r.Placements[i]
		victims := slices.Clone(p.Preempted)
		for _, ids := range p.PreemptedElsewhere {
			victims = append(victims, ids...)
		}
		slices.Sort(victims)
		list[i] = compare.Decision{
			At: int64(p.At), Preemptor: p.Alloc, Job: p.Job, Group: p.Group,
			Node: p.Node, Victims: victims, Score: p.Score,
		}
	}
	return list
}

// Approximate cost of playing a scenario, measured with the complete google-2011
// trace.
const (
	bytesPerRun      = 32 << 20
	bytesPerInstance = 8 << 10
)

// workers returns the number of concurrent runs: one per core, fewer if memory is short.
func (s *runSet) workers(f *scenario.File, specs int) int {
	instances := len(f.Running)
	for i := range f.Jobs {
		for _, g := range f.Jobs[i].Groups {
			if g.Count == nil {
				instances++
			} else {
				instances += *g.Count
			}
		}
	}
	for i := range f.Nodes {
		if c := f.Nodes[i].Count; c == nil {
			instances++
		} else {
			instances += *c
		}
	}
	n := min(s.env.Cores, specs)
	if memory := s.env.Memory(); memory > 0 {
		n = min(n, int(memory/(bytesPerRun+bytesPerInstance*int64(instances))))
	}
	return max(n, 1)
}
