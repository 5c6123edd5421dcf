package gpushare

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/importer"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// unitsPerGPU is the number of units of a device group that is one GPU.
const unitsPerGPU = 1000

// A Trace holds the nodes with GPUs and the tasks of a cluster. Measure does not modify it.
type Trace struct {
	nodes []*model.Node
	tasks []*model.Job // equal requests share one job
	units int64        // of all GPUs
	// distribution is that of the requests, by which fragments are measured.
	distribution distribution
}

// Load reads the openb trace in a folder. list is the name of a pod list, or empty. Nodes
// without GPUs are left out, as in the published experiment.
func Load(folder, list string) (*Trace, error) {
	src, err := importer.Open(folder)
	if err != nil {
		return nil, err
	}
	file, _, err := importer.OpenB(importer.Options{List: list, GPUShares: true, NeverRan: importer.NeverRanKeep}, src)
	if err != nil {
		return nil, err
	}
	resolved, err := scenario.Resolve(file)
	if err != nil {
		return nil, err
	}
	return NewTrace(resolved.Nodes, resolved.Jobs)
}

// NewTrace returns a trace of nodes, and of jobs of one task. Each GPU is a device group of
// 1,000 units, and a task requests units of one GPU or several whole GPUs.
func NewTrace(nodes []*model.Node, tasks []*model.Job) (*Trace, error) {
	t := &Trace{}
	dims := model.NewDimensions()
	for _, n := range nodes {
		if len(n.Devices) == 0 {
			continue
		}
		var err error
		if dims, err = dims.With(n.Capacity, n.Reserved); err != nil {
			return nil, fmt.Errorf("node %s: %w", n.ID, err)
		}
		t.nodes = append(t.nodes, n)
		for _, d := range n.Devices {
			t.units += int64(d.Count)
		}
	}
	var requested int64
	for _, j := range tasks {
		var err error
		if dims, err = dims.With(j.Groups[0].Resources); err != nil {
			return nil, fmt.Errorf("task %s: %w", j.ID, err)
		}
		requested += units(j.Groups[0])
	}
	if t.units == 0 || requested == 0 {
		return nil, errors.New("the trace has no GPUs, or no tasks that request them")
	}
	for _, n := range t.nodes {
		n.Compile(dims)
	}
	alike := map[string]*model.Job{}
	for _, j := range tasks {
		g := j.Groups[0]
		key := fmt.Sprint(g.Resources, g.Devices, g.Constraints)
		if alike[key] == nil {
			j.Compile(dims)
			alike[key] = j
		}
		t.tasks = append(t.tasks, alike[key])
	}
	t.distribution = newDistribution(t.tasks)
	return t, nil
}

// Nodes returns the number of nodes with GPUs.
func (t *Trace) Nodes() int { return len(t.nodes) }

// GPUs returns the number of GPUs.
func (t *Trace) GPUs() int { return int(t.units / unitsPerGPU) }

// Tasks returns the number of tasks.
func (t *Trace) Tasks() int { return len(t.tasks) }

// units returns the number of GPU units that a task requests.
func units(g *model.Group) (sum int64) {
	for _, d := range g.Devices {
		sum += int64(d.Count)
	}
	return sum
}

// arrivals returns tasks in random order, which request until × the GPUs of the cluster:
// all tasks of the trace and further random ones, or random ones of the trace if they
// request more.
func (t *Trace) arrivals(r *rand.Rand, until float64) (list []*model.Job) {
	limit := until * float64(t.units)
	order := r.Perm(len(t.tasks))
	var sum int64
	for i := 0; float64(sum) < limit; i++ {
		at := r.IntN(len(t.tasks))
		if i < len(order) {
			at = order[i]
		}
		list = append(list, t.tasks[at])
		sum += units(t.tasks[at].Groups[0])
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
