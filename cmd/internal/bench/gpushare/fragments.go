package gpushare

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// A request is the processors and GPUs that a task requests. As in the published
// definition, memory does not count.
type request struct {
	cpu   int64
	gpus  int   // 0: none
	units int32 // of each GPU
}

func requestOf(g *model.Group) request {
	r := request{cpu: g.Ask.Vec[model.CPU], gpus: len(g.Ask.Devices)}
	if r.gpus > 0 {
		r.units = g.Ask.Devices[0].Count
	}
	return r
}

// A frequency is the number of tasks that make one request.
type frequency struct {
	request
	tasks int64
}

// typicalTasks is the share of tasks whose requests are in the distribution: the most
// frequent ones, as in the published experiment.
const typicalTasks = 0.95

// A distribution holds the most frequent requests of tasks.
type distribution struct {
	list  []frequency
	tasks int64 // in list
}

func newDistribution(tasks []*model.Job) (d distribution) {
	counts := map[request]int64{}
	for _, j := range tasks {
		counts[requestOf(j.Groups[0])]++
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b request) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.units, a.units), cmp.Compare(b.gpus, a.gpus))
	})
	for _, r := range frequent {
		if float64(d.tasks) >= typicalTasks*float64(len(tasks)) {
			break
		}
		d.tasks += counts[r]
		d.list = append(d.list, frequency{r, counts[r]})
	}
	return d
}

// fragments returns the free GPU units of a node that a task of the distribution cannot
// use, summed over its tasks: the published measure, which is their mean, times their
// number. It is an integer, so that equal nodes have equal fragments. A task that fits can
// use the GPUs that have enough free units; a task that does not fit, or requests no GPU,
// can use none.
func (d *distribution) fragments(cpu int64, gpus []int32) (sum int64) {
	var free int64
	for _, units := range gpus {
		free += int64(units)
	}
	for i := range d.list {
		task := &d.list[i]
		unusable := free
		if task.gpus > 0 && cpu >= task.cpu {
			var usable int64
			enough := 0
			for _, units := range gpus {
				if units >= task.units {
					usable += int64(units)
					enough++
				}
			}
			if enough >= task.gpus {
				unusable -= usable
			}
		}
		sum += task.tasks * unusable
	}
	return sum
}
