package runs

import (
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Approximate cost of playing a scenario, measured with the complete google-2011
// trace.
const (
	bytesPerRun      = 32 << 20
	bytesPerInstance = 8 << 10
)

// Workers returns the number of concurrent runs of scenarios: one per core, fewer if memory
// is short, and at most the number of runs.
func Workers(env *cmdutil.Env, list []*scenario.File, runs int) int {
	instances := 0
	for _, f := range list {
		instances = max(instances, instancesOf(f))
	}
	n := min(env.Cores, runs)
	if memory := env.Memory(); memory > 0 {
		n = min(n, int(memory/(bytesPerRun+bytesPerInstance*int64(instances))))
	}
	return max(n, 1)
}

// instancesOf returns the number of instances and nodes of a scenario.
func instancesOf(f *scenario.File) int {
	n := len(f.Running)
	count := func(c *int) {
		if c == nil {
			n++
		} else {
			n += *c
		}
	}
	for i := range f.Jobs {
		for _, g := range f.Jobs[i].Groups {
			count(g.Count)
		}
	}
	for i := range f.Nodes {
		count(f.Nodes[i].Count)
	}
	return n
}

// FirstCause returns the first error that is not caused by another one's cancellation,
// with its position.
func FirstCause(errs []error) (at int, cause error) {
	for i, err := range errs {
		switch {
		case err == nil:
		case cmdutil.ExitOf(err) == cmdutil.ExitInterrupted:
			at, cause = i, err
		default:
			return i, err
		}
	}
	return at, cause
}
