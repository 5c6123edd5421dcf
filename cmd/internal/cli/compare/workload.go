package compare

import (
	"fmt"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/core/sim/generate"
)

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

// read returns the scenario of a file, or all draws of a description.
func (c *comparison) read(name string) ([]*workload, error) {
	if c.draws == 0 {
		f, err := simrun.ReadScenario(c.env, name)
		if err != nil {
			return nil, err
		}
		return []*workload{{ScenarioFile: f}}, c.players.Check(f.File, c.policies)
	}
	spec, err := simrun.ReadDescription(c.env, name)
	if err != nil {
		return nil, err
	}
	var list []*workload
	for range c.draws {
		f, _, err := simrun.Generate(name, spec, func(generate.Progress) {})
		if err != nil {
			return nil, err
		}
		list = append(list, &workload{ScenarioFile: &simrun.ScenarioFile{File: f, Path: name}})
		spec.Seed++
	}
	return list, c.players.Check(list[0].File, c.policies)
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
