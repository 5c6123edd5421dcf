package generate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// planFailure checks one failure of the spec.
func (p *plan) planFailure(i int) {
	f := &p.spec.Failures[i]
	path := fmt.Sprintf("failures[%d]", i)
	if _, err := f.share(p.nodes); err != nil {
		p.bad(path+".nodes", err.Error(), "write a number of nodes, or a share such as 10%")
	}
	for _, a := range slices.Sorted(maps.Keys(f.Where)) {
		if !slices.Contains(p.values[a], f.Where[a]) {
			p.badf(path+".where."+a, "use a value of an existing node", "no node has %s = %.60s", a, f.Where[a])
		}
	}
}

// share returns the number of failing nodes among n nodes. It returns an error if the
// spec is not a number or percentage.
func (f *Failure) share(n int) (int, error) {
	text, percent := strings.CutSuffix(f.Nodes.text, "%")
	v, err := Scalar{text: text, number: true}.count()
	switch {
	case err != nil:
		return 0, err
	case percent && v > 100:
		return 0, fmt.Errorf("%d per cent; expected at most 100", v)
	case percent:
		return int(math.Round(float64(n) * float64(v) / 100)), nil
	}
	return int(min(v, int64(n))), nil
}

// failures adds events that fail randomly chosen nodes and restore them.
func (g *generator) failures() {
	for i := range g.spec.Failures {
		f := &g.spec.Failures[i]
		r := stream(g.spec.Seed, fmt.Sprintf("failure/%d", i))
		var from []string
		for _, n := range g.all {
			if f.matches(n.attributes) {
				from = append(from, n.id)
			}
		}
		count, _ := f.share(len(from)) // planFailure has validated it
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

// matches reports whether a node's attributes have all values of Where.
func (f *Failure) matches(attributes map[string]string) bool {
	for a, v := range f.Where {
		if attributes[a] != v {
			return false
		}
	}
	return true
}
