package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// At an instant time stands still until nothing is left to evaluate. Were two to
// displace each other in turn, without taking any time to stop, it would do so for
// ever, and a run would end no more than it would say why. So evaluations at one
// instant are counted, by whom they are of.

// rounds counts evaluations at one instant.
type rounds struct {
	most int // of one job or binding
	at   int64
	all  int
	of   map[model.JobKey]int
}

// newRounds allows far more than a run needs: whoever waits may be asked again
// whenever one of the others has made room.
func newRounds(work int) rounds { return rounds{most: 1000 + 10*work} }

// count counts an evaluation; an error says who goes round.
func (r *rounds) count(now int64, ev *model.Evaluation) error {
	if r.of == nil || now != r.at {
		r.at, r.all, r.of = now, 0, map[model.JobKey]int{}
	}
	r.all++
	if r.of[ev.JobKey()]++; r.of[ev.JobKey()] <= r.most {
		return nil
	}
	e := &EndlessError{At: At(now), Evaluations: r.all, Of: map[model.JobKey]int{}}
	for key, n := range r.of {
		if n > r.most/10 { // who is asked as often as that is part of it
			e.Of[key] = n
		}
	}
	return e
}

// EndlessError means that jobs or bindings were evaluated again and again at one
// instant, so that a run would never come to the next.
type EndlessError struct {
	At          At
	Evaluations int                  // at that instant
	Of          map[model.JobKey]int // of those that go round
}

func (e *EndlessError) Error() string {
	keys := slices.SortedFunc(maps.Keys(e.Of), func(x, y model.JobKey) int {
		return cmp.Or(cmp.Compare(e.Of[y], e.Of[x]), cmp.Compare(x.String(), y.String()))
	})
	var words []string
	for _, key := range keys {
		if words = append(words, fmt.Sprintf("%s %d times", key, e.Of[key])); len(words) == 10 && len(keys) > 10 {
			words = append(words, fmt.Sprintf("%d others", len(keys)-10))
			break
		}
	}
	return fmt.Sprintf("at %s the work goes round: after %d evaluations at that one instant there are still more, of %s", e.At, e.Evaluations, strings.Join(words, ", "))
}
