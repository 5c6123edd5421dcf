package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// At an instant, virtual time does not advance until all evaluations have been
// processed. If two jobs evicted each other in turn without any time to stop, the run
// would never end. Evaluations at one instant are therefore counted, by job or
// binding.

// livelockGuard counts evaluations at one instant.
type livelockGuard struct {
	most int // limit per job or binding
	at   int64
	all  int
	of   map[model.JobKey]int
}

// newLivelockGuard allows far more evaluations than a run needs: a blocked job may be
// evaluated again whenever another job releases capacity.
func newLivelockGuard(work int) livelockGuard { return livelockGuard{most: 1000 + 10*work} }

// count counts an evaluation. It returns an EndlessError if the limit is exceeded.
func (r *livelockGuard) count(now int64, ev *model.Evaluation) error {
	if r.of == nil || now != r.at {
		r.at, r.all, r.of = now, 0, map[model.JobKey]int{}
	}
	r.all++
	if r.of[ev.JobKey()]++; r.of[ev.JobKey()] <= r.most {
		return nil
	}
	e := &EndlessError{At: At(now), Evaluations: r.all, Of: map[model.JobKey]int{}}
	for key, n := range r.of {
		if n > r.most/10 { // a job that is evaluated this often takes part in the livelock
			e.Of[key] = n
		}
	}
	return e
}

// EndlessError is returned if jobs or bindings are evaluated repeatedly at one
// instant, so that the run would not reach the next one.
type EndlessError struct {
	At          At
	Evaluations int                  // at that instant
	Of          map[model.JobKey]int // of the jobs and bindings that take part
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
	return fmt.Sprintf("at %s evaluations do not end: after %d evaluations at that instant there are still more, of %s", e.At, e.Evaluations, strings.Join(words, ", "))
}
