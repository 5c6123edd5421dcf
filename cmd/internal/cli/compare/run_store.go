package compare

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun/runs"
	"github.com/cede-scheduler/cede/core/sim/compare"
)

// newRunStore opens the store of a comparison.
func newRunStore(c *comparison, list []*workload) (*runs.Store, error) {
	if c.live {
		return runs.NewStore(c.env, "", false), nil
	}
	file, hasReport := c.runsFile(list), c.html != "" && c.html != cmdutil.Stdin
	if hasReport {
		file = c.html + ".runs"
	}
	// Short comparisons without a report leave no file behind, even if they are killed.
	s := runs.NewStore(c.env, file, hasReport || c.resume)
	return s, s.Open(c.resume)
}

// runsFile returns the name of the file with the finished runs of a comparison without --html.
// Its digest is that of the arguments that select the runs, so that each comparison of a folder
// has its own file. It does not include the contents of files: the same command finds the file
// of runs after a scenario has changed, and reports the change.
func (c *comparison) runsFile(list []*workload) string {
	words := []string{fmt.Sprintf("--seeds=%d --draws=%d --timing=%t --bound=%t --bound-steps=%d", c.seeds, c.draws, c.timing, c.bound, c.boundSteps)}
	for _, w := range list {
		words = append(words, filepath.Clean(w.Path))
	}
	words = append(words, "")
	words = append(words, c.policies...)
	words = append(words, "")
	words = append(words, c.players.Settings()...)
	digest := sha256.Sum256(fmt.Appendf(nil, "%q", words))
	return fmt.Sprintf("compare-%x.runs", digest[:6])
}

// checkStored returns an error if a stored run is not one of specs, or has another input.
func checkStored(s *runs.Store, specs []runSpec) error {
	wanted := map[runs.Name]*runs.Input{}
	for i := range specs {
		wanted[specs[i].name()] = specs[i].input
	}
	return s.Check(func(n runs.Name) *runs.Input { return wanted[n] })
}

// stored returns the result of a run if the file holds it.
func stored(s *runs.Store, g *runSpec) (r result, found bool, err error) {
	run, err := s.Find(g.name(), g.input)
	if run == nil || g.first && run.Decisions == nil {
		return result{}, false, err
	}
	r = result{
		Run: compare.Run{
			Scenario: g.Name, Draw: g.draw, Policy: g.policy, Seed: g.f.Seed, Metrics: run.Metrics, Series: run.Series, Bound: run.Bound,
		},
		version: run.Shown, warnings: run.Warnings,
	}
	if g.first {
		r.Decisions = run.Decisions
	}
	for _, text := range run.Faults {
		r.faults = append(r.faults, errors.New(text))
	}
	return r, true, nil
}

// storedRun returns the line of a finished run.
func storedRun(g *runSpec, r *result) runs.Run {
	run := runs.Run{
		Name: g.name(), Input: *g.input, Metrics: r.Metrics, Series: r.Series, Decisions: r.Decisions, Bound: r.Bound,
		Shown: r.version, Warnings: r.warnings,
	}
	for _, err := range r.faults {
		run.Faults = append(run.Faults, err.Error())
	}
	return run
}

// name returns the name of a run in the file.
func (g *runSpec) name() runs.Name {
	return runs.Name{Scenario: g.Name, Workload: g.Seed, Policy: g.policy, Seed: g.f.Seed}
}

// inputOf returns the input of all runs of a workload under a policy. digest is that of the
// scenario.
func (s *runSet) inputOf(w *workload, policy, digest string) (*runs.Input, error) {
	settings := fmt.Sprintf("--timing=%t", s.timing)
	if s.bound {
		settings += fmt.Sprintf(", --bound --bound-steps %d", s.boundSteps)
	}
	return runs.InputOf(s.env, s.players, w.ScenarioFile, policy, digest, settings)
}
