package compare

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/bound"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// storedVersion is the version of the file of finished runs. Another version is refused.
const storedVersion = 2

// storeEvery is the minimum interval between two writes of the file.
const storeEvery = 5 * time.Second

// defaultRunsFile holds the finished runs of a comparison without --html.
const defaultRunsFile = "compare.runs"

// A runStore keeps finished runs in a file, so that an interrupted comparison continues
// where it stopped. It is safe for concurrent use.
type runStore struct {
	env  *cmdutil.Env
	file string // empty: runs are not stored
	// eager writes the file as runs finish. Otherwise it is written only after an
	// interrupt or an error, so that short comparisons leave no file behind.
	eager bool

	mu      sync.Mutex
	runs    []storedRun
	loaded  map[runName]*storedRun
	unsaved bool
	next    time.Time // of the next write
}

// runName identifies a run within one comparison.
type runName struct {
	Scenario string `json:"scenario"`
	Workload uint64 `json:"workload"` // seed of the scenario, by which draws differ
	Policy   string `json:"policy"`   // as written
	Seed     uint64 `json:"seed"`
}

// runInput holds the digests of everything on which a run depends. Runs of equal input have equal results.
type runInput struct {
	Scenario string `json:"scenarioDigest"` // of the scenario without its seed
	Policy   string `json:"policyVersion"`  // digest of the module and its configuration
	Settings string `json:"settings"`       // of the command line, and the tie-breaks
	Program  string `json:"program"`
}

// A storedRun is a line of the file: a finished run without the figures that the comparison computes.
type storedRun struct {
	Version int `json:"version"`
	runName
	runInput
	Metrics   *metrics.Metrics   `json:"metrics"`
	Series    *metrics.Series    `json:"series"`
	Decisions []compare.Decision `json:"decisions,omitempty"`
	Bound     *bound.Report      `json:"bound,omitempty"`
	Shown     string             `json:"shownVersion"` // version of the policy in reports
	Faults    []string           `json:"faults,omitempty"`
	Warnings  []string           `json:"warnings,omitempty"`
}

// newRunStore returns the store of a comparison. With resume it reads the file.
func newRunStore(c *comparison) (*runStore, error) {
	s := &runStore{env: c.env, file: defaultRunsFile, eager: c.html != "" || c.resume, loaded: map[runName]*storedRun{}}
	if c.live {
		s.file, s.eager = "", false
		return s, nil
	}
	if c.html != "" && c.html != cmdutil.Stdin {
		s.file = c.html + ".runs"
	}
	if !c.resume {
		return s, nil
	}
	r, err := c.env.Open(s.file)
	if err != nil {
		return nil, cmdutil.Usagef("remove --resume to start from the beginning", "cannot resume: %v", err)
	}
	defer func() { _ = r.Close() }() // read-only
	return s, s.read(r)
}

func (s *runStore) read(r io.Reader) error {
	dec := json.NewDecoder(bufio.NewReader(r))
	for {
		run := &storedRun{}
		err := dec.Decode(run)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return s.refuse("it is not a file of finished runs: " + err.Error())
		case run.Version != storedVersion:
			return s.refuse(fmt.Sprintf("it has version %d, expected %d", run.Version, storedVersion))
		}
		s.runs = append(s.runs, *run)
		s.loaded[run.runName] = run
	}
}

func (s *runStore) refuse(reason string) error {
	return cmdutil.Usagef("repeat the interrupted command with --resume, or remove --resume to start from the beginning", "cannot resume %s: %s", s.file, reason)
}

// check returns an error if a stored run is not one of specs, or has another input.
func (s *runStore) check(specs []runSpec) error {
	wanted := map[runName]*runSpec{}
	for i := range specs {
		wanted[specs[i].name()] = &specs[i]
	}
	for i := range s.runs {
		run := &s.runs[i]
		spec := wanted[run.runName]
		if spec == nil {
			return s.refuse(fmt.Sprintf("this command does not play its run of %s under %s with seed %d", run.runName.Scenario, run.runName.Policy, run.Seed))
		}
		if changed := run.changed(&spec.input); changed != "" {
			return s.refuse(changed)
		}
	}
	return nil
}

// changed describes how the input of a stored run differs, or returns "".
func (r *storedRun) changed(now *runInput) string {
	switch {
	case r.runInput.Scenario != now.Scenario:
		return fmt.Sprintf("scenario %s is not the one that was played", r.runName.Scenario)
	case r.runInput.Policy != now.Policy:
		return fmt.Sprintf("policy %s is not the one that was played: %s instead of %s", r.runName.Policy, now.Policy, r.runInput.Policy)
	case r.Program != now.Program:
		return fmt.Sprintf("its runs are of cede %s, not of %s", r.Program, now.Program)
	case r.Settings != now.Settings:
		return fmt.Sprintf("%s was played with %s, not with %s", r.runName.Scenario, r.Settings, now.Settings)
	}
	return ""
}

// stored returns the result of a run if the file holds it.
func (s *runStore) stored(g *runSpec) (result, bool) {
	run := s.loaded[g.name()]
	if run == nil || g.first && run.Decisions == nil {
		return result{}, false
	}
	r := result{
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
	return r, true
}

// add stores a finished run.
func (s *runStore) add(g *runSpec, r *result) error {
	run := storedRun{
		Version: storedVersion, runName: g.name(), runInput: g.input, Metrics: r.Metrics, Series: r.Series, Decisions: r.Decisions, Bound: r.Bound,
		Shown: r.version, Warnings: r.warnings,
	}
	for _, err := range r.faults {
		run.Faults = append(run.Faults, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, run)
	s.unsaved = true
	if now := s.env.Clock.Now(); s.eager && !now.Before(s.next) {
		s.next = now.Add(storeEvery)
		return s.save()
	}
	return nil
}

// save writes all finished runs. The caller must hold mu.
func (s *runStore) save() error {
	s.unsaved = false
	return s.env.Write(s.file, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		enc := json.NewEncoder(b)
		for i := range s.runs {
			if err := enc.Encode(&s.runs[i]); err != nil {
				return err
			}
		}
		return b.Flush()
	})
}

// interrupted saves the finished runs and reports where they are.
func (s *runStore) interrupted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == "" {
		return
	}
	if s.unsaved {
		s.env.Report(s.save())
	}
	if len(s.runs) > 0 {
		s.env.Warn(fmt.Sprintf("%s kept in %s; to continue, repeat the command with --resume", cmdutil.Count(len(s.runs), "finished run is", "finished runs are"), s.file))
	}
}

// remove removes the file after the comparison is complete. A file of other runs, which
// this comparison did not read or write, remains.
func (s *runStore) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next.IsZero() && len(s.loaded) == 0 {
		return nil
	}
	return s.env.Files.Remove(s.file)
}

// name returns the name of a run in the file.
func (g *runSpec) name() runName { return runName{g.f.Name, g.Seed, g.policy, g.f.Seed} }

// inputOf returns the input of all runs of a workload under a policy. digest is that of the
// scenario.
func (s *runSet) inputOf(w *workload, policy, digest string) (runInput, error) {
	v, err := s.players.Resolver(w.File, w.Path, policy)(sim.SpecOf(w.Policies, policy))
	if err != nil {
		return runInput{}, &sim.PolicyError{Policy: policy, Err: err}
	}
	v.AddRef()
	defer v.ReleaseRef() // ends the process of a policy that has one
	settings := fmt.Sprintf("grants %v, --on-fault %s, --timing=%t", v.Grants, v.OnFault, s.timing)
	if s.bound {
		settings += fmt.Sprintf(", --bound --bound-steps %d", s.boundSteps)
	}
	return runInput{
		Scenario: digest, Policy: v.ID, Program: s.env.Build.Version,
		Settings: settings,
	}, nil
}

// digestOf returns the digest of a scenario without its seed, which is a part of a run's
// name.
func digestOf(f *scenario.File) (string, error) {
	h := sha256.New()
	if err := scenario.Encode(h, seeded(f, 0), scenario.JSON); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
