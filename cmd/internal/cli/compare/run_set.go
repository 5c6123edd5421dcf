package compare

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun/runs"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/bound"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// A runSet holds all runs of one comparison.
type runSet struct {
	*comparison
	store    *runs.Store
	observe  func(share float64, text string) // receives the progress; may be nil
	progress *term.Progress

	mu     sync.Mutex
	total  int // runs to play, without stored ones
	done   int
	shares map[*runSpec]float64 // of the runs in progress, from 0 to 1

	versions map[string]string // of the policies as written

	runs     []compare.Run // ordered by file, policy and seed; policies as written
	faults   []error
	warnings []string
}

func newRunSet(c *comparison, store *runs.Store) *runSet {
	return &runSet{comparison: c, store: store, shares: map[*runSpec]float64{}, versions: map[string]string{}, progress: c.env.Progress()}
}

// A runSpec is one run of a comparison.
type runSpec struct {
	*workload
	f      *scenario.File // the workload's, with the seed of the run
	policy string
	ties   tiebreak.Order
	first  bool // first run of its policy and name, whose decisions are compared
	input  *runs.Input
}

// runSpecs lists the runs of workloads. The first run of each policy equals that of
// `cede sim run`; the seeds of the others follow its seed.
func (s *runSet) runSpecs(list []*workload) ([]runSpec, error) {
	var specs []runSpec
	var problems []error
	for _, w := range list {
		digest, err := runs.Digest(w.File)
		if err != nil {
			return nil, err
		}
		for _, p := range s.policies {
			input, err := s.inputOf(w, p, digest)
			if err != nil {
				problems = append(problems, simrun.RunError(w.ScenarioFile, err, true))
				continue
			}
			for i := range uint64(s.seeds) {
				g := runSpec{workload: w, f: w.File, policy: p, first: i == 0 && w.draw == 1, input: input}
				if i > 0 {
					g.f = seeded(w.File, w.Seed+i)
					g.ties.Seed = max(g.f.Seed, 1) // 0 would order by ID
				}
				specs = append(specs, g)
			}
		}
	}
	return specs, cmdutil.JoinProblems("the command line", problems...)
}

// play plays all workloads under every policy and seed, several runs concurrently, except
// the stored ones. The results do not depend on the concurrency.
func (s *runSet) play(ctx context.Context, list []*workload) error {
	specs, err := s.runSpecs(list)
	if err != nil {
		return err
	}
	if err := checkStored(s.store, specs); err != nil {
		return err
	}
	results, errs := make([]result, len(specs)), make([]error, len(specs))
	var todo []int // positions in specs
	for i := range specs {
		var finished bool
		if results[i], finished, err = stored(s.store, &specs[i]); err != nil {
			return err
		} else if !finished {
			todo = append(todo, i)
		}
	}
	s.total = len(todo)
	if err := s.data.Start(len(specs)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var files []*scenario.File
	for _, w := range list {
		files = append(files, w.File)
	}
	crew := runs.Workers(s.env, files, max(len(todo), 1))
	next := make(chan int)
	var wg sync.WaitGroup
	for range crew {
		wg.Go(func() {
			for i := range next {
				if results[i], errs[i] = s.playOne(ctx, i, &specs[i], max(1, s.env.Cores/crew)); errs[i] != nil {
					cancel() // the result of the other runs is not used
				}
			}
		})
	}
	for _, i := range todo {
		next <- i
	}
	close(next)
	wg.Wait()
	if i, err := runs.FirstCause(errs); err != nil {
		return simrun.RunError(specs[i].ScenarioFile, err, true)
	}
	for i := range specs {
		s.add(&specs[i], &results[i])
	}
	return nil
}

// playOne plays the run at a position in the list of all runs.
func (s *runSet) playOne(ctx context.Context, i int, g *runSpec, workers int) (result, error) {
	if err := ctx.Err(); err != nil {
		return result{}, err
	}
	options := sim.Options{
		Policy: g.policy, Resolve: s.players.Resolver(g.f, g.Path, g.policy), Ties: g.ties, Workers: workers, Timing: s.timing,
		Progress: func(p sim.Progress) { s.show(g, p) },
	}
	recorder := bound.NewRecorder(s.boundSteps)
	if s.bound {
		options.Evaluated = recorder.Evaluated
	}
	id := simrun.RunID(g.f, g.draw, s.players.DisplayNames[g.policy])
	run, err := s.data.Play(i, id, options, func(o sim.Options) (*sim.Run, error) { return sim.Play(ctx, g.f, o) })
	s.mu.Lock()
	s.done++
	delete(s.shares, g)
	s.mu.Unlock()
	if err != nil {
		return result{}, err
	}
	r := newResult(g, run)
	if s.bound {
		if r.Bound, err = recorder.Finish(g.f, run); err != nil {
			return result{}, err
		}
		if !g.first {
			r.Bound.Regrets = nil // reports show those of the first run
		}
	}
	return r, s.store.Add(storedRun(g, &r))
}

// show reports the progress of all runs, and of the one that has just advanced.
func (s *runSet) show(g *runSpec, p sim.Progress) {
	s.progress.Show(func(elapsed time.Duration) string {
		share, name := s.advance(g, p)
		if s.observe != nil {
			s.observe(share, name)
		}
		return term.ProgressLine(share, elapsed, name,
			"at "+scenario.Duration(p.Now.Truncate(time.Second)).String(), elapsed.Round(time.Second).String())
	})
}

// advance records the progress of a run. It returns the share of all runs that is played,
// and a description of the current run.
func (s *runSet) advance(g *runSpec, p sim.Progress) (share float64, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares[g] = max(simrun.Share(p), 0)
	share = float64(s.done)
	for _, part := range s.shares {
		share += min(part, 1)
	}
	text = fmt.Sprintf("%s of %s done; %s under %s, seed %d", cmdutil.Thousands(s.done), cmdutil.Count(s.total, "run", "runs"), g.Name, g.policy, g.f.Seed)
	return share / float64(max(s.total, 1)), text
}

// A result holds the parts of a run that the comparison uses, so that the rest can be
// freed.
type result struct {
	compare.Run
	version  string // of the policy
	faults   []error
	warnings []string
}

func newResult(g *runSpec, run *sim.Run) result {
	r := result{
		Run: compare.Run{
			Scenario: run.Result.Scenario, Draw: g.draw, Policy: g.policy, Seed: run.Result.Seed,
			Metrics: run.Metrics, Series: run.Series,
		},
		version: run.Result.PolicyVersion, faults: run.Faults, warnings: run.Warnings,
	}
	if g.first {
		r.Decisions = runs.Decisions(run.Result)
	}
	return r
}

func (s *runSet) add(g *runSpec, r *result) {
	s.runs = append(s.runs, r.Run)
	s.versions[s.players.DisplayNames[g.policy]] = r.version
	name := fmt.Sprintf("%s under %s, seed %d", g.workload, s.players.DisplayNames[g.policy], g.f.Seed)
	if err := simrun.FaultsError(name, r.faults, s.players.OnFault); err != nil {
		s.faults = append(s.faults, err)
	}
	for _, w := range r.warnings {
		if w = g.Path + ": " + w; !slices.Contains(s.warnings, w) {
			s.warnings = append(s.warnings, w)
		}
	}
}

// numberDraws removes the number of a workload that is the only one of its name.
func (s *runSet) numberDraws() {
	several := map[string]bool{}
	for i := range s.runs {
		several[s.runs[i].Scenario] = several[s.runs[i].Scenario] || s.runs[i].Draw > 1
	}
	for i := range s.runs {
		if !several[s.runs[i].Scenario] {
			s.runs[i].Draw = 0
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
