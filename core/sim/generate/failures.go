package generate

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// failures takes nodes away at random and gives them back.
func (g *generator) failures() {
	for i := range g.spec.Failures {
		f := &g.spec.Failures[i]
		r := stream(g.spec.Seed, fmt.Sprintf("failure/%d", i))
		var from []string
		for _, n := range g.all {
			if f.concerns(n.attributes) {
				from = append(from, n.id)
			}
		}
		count, _ := f.share(len(from)) // the plan has checked it
		for _, at := range r.pick(len(from), count) {
			e := scenario.Event{At: scenario.Duration(f.At), NodeDown: from[at]}
			if f.Drain {
				e = scenario.Event{At: scenario.Duration(f.At), Drain: from[at]}
			}
			g.file.Events = append(g.file.Events, e)
			if f.Back > 0 {
				g.file.Events = append(g.file.Events, scenario.Event{At: scenario.Duration(f.At + f.Back), NodeUp: from[at]})
			}
		}
	}
}

func (f *Failure) concerns(attributes map[string]string) bool {
	for a, v := range f.Where {
		if attributes[a] != v {
			return false
		}
	}
	return true
}
