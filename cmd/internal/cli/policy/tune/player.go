package tune

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun/runs"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/generate"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/tune"
)

// A workload is a scenario to play: a draw of a description, or a scenario with another seed
// of its tie-breaks.
type workload struct {
	*simrun.ScenarioFile
	draw   int // from 1, among those of the same argument
	ties   tiebreak.Order
	digest string
}

// A source is the content of an argument of --on: a description or a scenario.
type source struct {
	name string
	spec *generate.Spec
	file *simrun.ScenarioFile // if spec is nil
}

// readSources reads each argument of --on once: standard input cannot be read again, and a file
// may change during the search. It returns an error that lists every unreadable argument.
func (c *command) readSources() error {
	var errs []error
	for _, name := range c.on {
		spec, err := simrun.ReadDescription(c.env, name)
		if err == nil {
			c.sources = append(c.sources, source{name: name, spec: spec})
			continue
		}
		file, other := simrun.ReadScenario(c.env, name)
		if other != nil {
			errs = append(errs, err)
			continue
		}
		c.sources = append(c.sources, source{name: name, file: file})
	}
	return cmdutil.JoinProblems("--on", errs...)
}

// scenarios returns the arguments of --on that are scenarios, each once: their workloads differ in
// tie-breaks only.
func (c *command) scenarios() (names []string) {
	for i := range c.sources {
		if s := &c.sources[i]; s.spec == nil && !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return names
}

// workloads returns n workloads of each source after the first skip ones, one source after the
// other for each draw.
func (c *command) workloads(skip, n int) ([]*workload, error) {
	list := make([]*workload, 0, n*len(c.sources))
	for draw := skip; draw < skip+n; draw++ {
		for i := range c.sources {
			w, err := c.sources[i].workload(draw)
			if err != nil {
				return nil, err
			}
			list = append(list, w)
		}
	}
	return list, nil
}

// workload returns a draw of a source, from 0.
func (s *source) workload(draw int) (w *workload, err error) {
	w = &workload{draw: draw + 1}
	if s.spec != nil {
		spec := *s.spec
		spec.Seed += uint64(draw)
		f, _, err := simrun.Generate(s.name, &spec, func(generate.Progress) {})
		if err != nil {
			return nil, err
		}
		w.ScenarioFile = &simrun.ScenarioFile{File: f, Path: s.name}
	} else {
		own := *s.file.File
		own.Seed = max(own.Seed, 1) + uint64(draw) // 0 would order ties by ID
		w.ScenarioFile = &simrun.ScenarioFile{File: &own, Path: s.name, Lines: s.file.Lines}
		w.ties.Seed = own.Seed
	}
	w.digest, err = runs.Digest(w.File)
	return w, err
}

// checkDistinct returns an error if two workloads have the same name and seed. One workload
// that counts twice would narrow the intervals, and one of the race would not be held out.
func checkDistinct(list []*workload) error {
	seen := map[runs.Name]*workload{}
	for _, w := range list {
		name := runs.Name{Scenario: w.Name, Seed: w.Seed}
		if other := seen[name]; other != nil {
			return cmdutil.Usagef("rename one of them, or set seeds that differ by at least the number of all draws",
				"--on %s and --on %s result in the same workload: scenario %s with seed %d", other.Path, w.Path, w.Name, w.Seed)
		}
		seen[name] = w
	}
	return nil
}

// A player plays policies on workloads, several at a time, except for those that are stored.
type player struct {
	*command
	race, heldOut []*workload
	store         *runs.Store
	progress      *term.Progress

	mu       sync.Mutex
	inputs   map[string]*runs.Input // by policy, with the digest of the first workload
	finished int                    // plays, stored ones included
	fresh    int                    // that were played by this command
	round    tune.Round
	results  map[tune.Play]*runs.Run // of held-out workloads
}

// accept returns an error if a policy cannot be opened with its settings.
func (p *player) accept(policy string) error {
	if p.inputs[policy] != nil {
		return nil
	}
	p.players.DisplayNames[policy] = policyflags.DisplayNames([]string{policy})[policy]
	input, err := runs.InputOf(p.env, p.players, p.race[0].ScenarioFile, policy, p.race[0].digest, "--timing=false")
	p.inputs[policy] = input
	return err
}

func (p *player) workload(play tune.Play) *workload {
	if play.HeldOut {
		return p.heldOut[play.Workload]
	}
	return p.race[play.Workload]
}

// play returns the metrics of plays. It implements tune.Search.Play.
func (p *player) play(ctx context.Context, plays []tune.Play) ([]tune.Values, error) {
	results, errs := make([]*runs.Run, len(plays)), make([]error, len(plays))
	var todo []int
	var files []*scenario.File
	for i, play := range plays {
		if err := p.accept(play.Policy); err != nil {
			return nil, simrun.RunError(p.race[0].ScenarioFile, err, true)
		}
		var err error
		if results[i], err = p.store.Find(p.name(play), p.input(play)); err != nil {
			return nil, err
		}
		if results[i] == nil {
			todo, files = append(todo, i), append(files, p.workload(play).File)
		}
	}
	p.finished += len(plays) - len(todo)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	crew := runs.Workers(p.env, files, max(len(todo), 1))
	next := make(chan int)
	var wg sync.WaitGroup
	for range crew {
		wg.Go(func() {
			for i := range next {
				if results[i], errs[i] = p.playOne(ctx, plays[i], max(1, p.env.Cores/crew)); errs[i] != nil {
					cancel() // the results of the others are not used
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
		return nil, simrun.RunError(p.workload(plays[i]).ScenarioFile, err, true)
	}
	values := make([]tune.Values, len(plays))
	for i, run := range results {
		if plays[i].HeldOut {
			p.results[plays[i]] = run
		}
		values[i] = tune.Values{}
		for _, v := range run.Metrics.Flatten() {
			values[i][v.Name] = v.Value
		}
	}
	return values, nil
}

func (p *player) playOne(ctx context.Context, play tune.Play, workers int) (*runs.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := p.workload(play)
	played, err := sim.Play(ctx, w.File, sim.Options{
		Policy: play.Policy, Resolve: p.players.Resolver(w.File, w.Path, play.Policy), Ties: w.ties, Workers: workers,
		Progress: func(sim.Progress) { p.show() },
	})
	if err != nil {
		return nil, err
	}
	run := &runs.Run{Name: p.name(play), Input: *p.input(play), Metrics: played.Metrics, Shown: played.Result.PolicyVersion}
	if play.HeldOut {
		run.Series, run.Decisions = played.Series, runs.Decisions(played.Result)
	}
	for _, err := range played.Faults {
		run.Faults = append(run.Faults, err.Error())
	}
	p.mu.Lock()
	p.finished++
	p.fresh++
	p.mu.Unlock()
	return run, p.store.Add(*run)
}

// name returns the name of a play in the file of finished runs.
func (p *player) name(play tune.Play) runs.Name {
	f := p.workload(play).File
	return runs.Name{Scenario: f.Name, Workload: f.Seed, Policy: play.Policy, Seed: f.Seed}
}

// input returns the input of a play.
func (p *player) input(play tune.Play) *runs.Input {
	w := p.workload(play)
	input := *p.inputs[play.Policy]
	input.Scenario = w.digest
	input.Settings += fmt.Sprintf(", ties %d, held out %t", w.ties.Seed, play.HeldOut)
	return &input
}

// note records a round of the race.
func (p *player) note(r tune.Round) {
	p.mu.Lock()
	p.round = r
	p.mu.Unlock()
	p.show()
}

// show reports the progress of the search.
func (p *player) show() {
	p.progress.Show(func(elapsed time.Duration) string {
		p.mu.Lock()
		defer p.mu.Unlock()
		details := []string{fmt.Sprintf("%s of at most %s plays", cmdutil.Thousands(p.finished), cmdutil.Thousands(p.plays))}
		if p.round.Best != "" {
			details = append(details, cmdutil.Count(p.round.Candidates-p.round.Eliminated, "candidate", "candidates"), "best "+p.round.Best)
		}
		return term.ProgressLine(float64(p.finished)/float64(p.plays), elapsed, append(details, elapsed.Round(time.Second).String())...)
	})
}
