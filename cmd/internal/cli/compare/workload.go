package compare

import (
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/sim/generate"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// maxDraws bounds --draws. All draws are in memory at once, and more of them would hardly
// narrow an interval.
const maxDraws = 2000

// A workload is a scenario to play. Scenarios of one name are draws of one
// description.
type workload struct {
	*simrun.ScenarioFile
	draw int // from 1, among the workloads of the same name
}

func (w *workload) String() string {
	if w.draw > 1 {
		return fmt.Sprintf("%s, draw %d", w.Path, w.draw)
	}
	return w.Path
}

// A source is an argument that was read: a scenario, or with --draws a description.
type source struct {
	name string
	file *simrun.ScenarioFile // nil for a description
	spec *generate.Spec
}

// readAll reads all files. Its error lists the problems of all of them.
func (c *comparison) readAll(names []string) (list []*source, err error) {
	var problems []error
	for _, name := range names {
		s := &source{name: name}
		if c.draws > 0 {
			s.spec, err = simrun.ReadDescription(c.env, name)
		} else {
			s.file, err = simrun.ReadScenario(c.env, name)
		}
		if err == nil && s.file != nil {
			err = c.players.Check(s.file.File, c.policies)
		}
		problems = append(problems, err)
		if s.file != nil || s.spec != nil {
			list = append(list, s)
		}
	}
	return list, cmdutil.JoinProblems("the command line", problems...)
}

// scenarios returns the scenarios of sources. That of a description is not generated yet; it is
// empty, because it names no policies.
func scenarios(list []*source) (files []*simrun.ScenarioFile) {
	for _, s := range list {
		f := s.file
		if f == nil {
			f = &simrun.ScenarioFile{File: &scenario.File{}, Path: s.name}
		}
		files = append(files, f)
	}
	return files
}

// generate returns the workloads of all sources: the scenarios, or all draws of the
// descriptions.
func (c *comparison) generate(sources []*source) (list []*workload, err error) {
	var names workloads
	for _, s := range sources {
		more := []*workload{{ScenarioFile: s.file}}
		if s.file == nil {
			more, err = c.drawAll(s)
		}
		if err == nil {
			err = names.add(more)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// drawAll generates the draws of a description.
func (c *comparison) drawAll(s *source) (list []*workload, err error) {
	progress := c.env.Progress()
	defer progress.Done()
	for i := range c.draws {
		f, _, err := simrun.Generate(s.name, s.spec, func(p generate.Progress) {
			progress.Show(func(elapsed time.Duration) string { return drawLine(s.name, i, c.draws, p, elapsed) })
		})
		if err != nil {
			return nil, err
		}
		list = append(list, &workload{ScenarioFile: &simrun.ScenarioFile{File: f, Path: s.name}})
		s.spec.Seed++
	}
	return list, c.players.Check(list[0].File, c.policies)
}

// drawLine returns the progress of generating draw i of a description as one line.
func drawLine(name string, i, draws int, p generate.Progress, elapsed time.Duration) string {
	return term.ProgressLine((float64(i)+p.Share)/float64(draws), elapsed, name,
		fmt.Sprintf("generating draw %d of %d", i+1, draws), elapsed.Round(time.Second).String())
}

// workloads are all workloads of a comparison by the name of their scenario.
type workloads map[string][]*workload

// add numbers the draws. It returns an error if two workloads have the same name and
// seed: their results could not be distinguished.
func (all *workloads) add(list []*workload) error {
	if *all == nil {
		*all = workloads{}
	}
	for _, w := range list {
		for _, other := range (*all)[w.Name] {
			if other.Seed == w.Seed {
				return cmdutil.Usagef("rename one of the scenarios, or generate it with another seed",
					"%s and %s have the same scenario name %s and the same seed %d", other, w, w.Name, w.Seed)
			}
		}
		(*all)[w.Name] = append((*all)[w.Name], w)
		w.draw = len((*all)[w.Name])
	}
	return nil
}
