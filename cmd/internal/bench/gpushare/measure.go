package gpushare

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/cede-scheduler/cede/core/model"
)

// Schedulers returns the names of the schedulers that can be measured.
func Schedulers() []string { return []string{"best-fit", "fgd", "fgd-exact", "cede"} }

// Config configures a measurement.
type Config struct {
	Scheduler string // one of Schedulers
	Seed      uint64 // of the arrivals and of the order of equal nodes
	// Until is how many times the GPUs of the cluster the tasks request in the end.
	Until float64
}

// Result is the result of Measure.
type Result struct {
	// Allocated holds, by whole percent of the GPUs of the cluster that tasks have
	// requested so far, the share of the GPUs that is allocated.
	Allocated []float64 `json:"allocated"`
	Arrived   int       `json:"arrived"` // tasks
	Placed    int       `json:"placed"`  // of these
}

// placing places one task. It returns false if the task fits on no node.
type placing interface {
	place(task *model.Job) (bool, error)
}

func newRandom(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // a workload needs no secure randomness
}

// Measure lets the tasks of a trace arrive and places them.
func Measure(ctx context.Context, t *Trace, c Config) (*Result, error) {
	ties := newRandom(c.Seed, 2)
	var p placing
	switch c.Scheduler {
	case "best-fit":
		p = newPlacer(t, ties, bestFit(t.nodes))
	case "fgd":
		p = newPlacer(t, ties, rounded(gradient(&t.distribution), &t.distribution))
	case "fgd-exact":
		p = newPlacer(t, ties, gradient(&t.distribution))
	case "cede":
		cede, err := newCede(t)
		if err != nil {
			return nil, err
		}
		defer cede.policies.Unpin()
		p = cede
	default:
		return nil, fmt.Errorf("unknown scheduler %q", c.Scheduler)
	}
	r := &Result{}
	var requested, allocated int64
	for _, task := range t.arrivals(newRandom(c.Seed, 1), c.Until) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		placed, err := p.place(task)
		if err != nil {
			return nil, err
		}
		n := units(task.Groups[0])
		requested += n
		r.Arrived++
		if placed {
			allocated += n
			r.Placed++
		}
		for requested*100 >= int64(len(r.Allocated))*t.units {
			r.Allocated = append(r.Allocated, float64(allocated)/float64(t.units))
		}
	}
	return r, nil
}
