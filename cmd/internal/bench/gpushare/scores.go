package gpushare

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// bestFit returns the score of best fit: the mean of the processors and of the GPU units
// that are left on the node, as shares of the largest node of the cluster. The units that
// are left on the GPU break ties, so that a share of a GPU uses the fullest one.
func bestFit(nodes []*model.Node) score {
	var mostCPU, mostUnits int64
	for _, n := range nodes {
		var units int64
		for _, d := range n.Devices {
			units += int64(d.Count)
		}
		mostCPU, mostUnits = max(mostCPU, n.Avail[model.CPU]), max(mostUnits, units)
	}
	return func(n *node, ask *model.Ask, choice []int16) float64 {
		var left, onGPU int64
		for _, units := range n.devices {
			left += int64(units)
		}
		for r, at := range choice {
			left -= int64(ask.Devices[r].Count)
			onGPU += int64(n.devices[at] - ask.Devices[r].Count)
		}
		const tie = 1e-9 // less than a unit of a GPU
		return float64(n.free[model.CPU]-ask.Vec[model.CPU])/float64(mostCPU)/2 + float64(left)/float64(mostUnits)/2 + tie*float64(onGPU)/unitsPerGPU
	}
}

// gradient returns the score of fragmentation gradient descent: by how much a task
// increases the fragments of the node.
func gradient(d *distribution) score {
	known := map[fragmentKey]int64{}
	fragments := func(cpu int64, gpus []int32) int64 {
		key := fragmentKey{cpu: cpu}
		if len(gpus) > len(key.gpus) {
			return d.fragments(cpu, gpus)
		}
		slices.Sort(key.gpus[:copy(key.gpus[:], gpus)])
		f, found := known[key]
		if !found {
			f = d.fragments(cpu, gpus)
			known[key] = f
		}
		return f
	}
	return func(n *node, ask *model.Ask, choice []int16) float64 {
		after := slices.Clone(n.devices)
		for r, at := range choice {
			after[at] -= ask.Devices[r].Count
		}
		return float64(fragments(n.free[model.CPU]-ask.Vec[model.CPU], after) - fragments(n.free[model.CPU], n.devices))
	}
}

// A fragmentKey identifies nodes with equal fragments. The free units of GPUs are ascending.
type fragmentKey struct {
	cpu  int64
	gpus [8]int32
}

// rounded returns the score of gradient as a scheduler of Kubernetes compares it, which the
// published experiment is: a whole percentage of the sigmoid of the decrease in GPUs. Nodes
// whose fragments increase by about 0.04 GPUs more have equal scores.
func rounded(gradient score, d *distribution) score {
	return func(n *node, ask *model.Ask, choice []int16) float64 {
		increase := gradient(n, ask, choice) / float64(d.tasks) / unitsPerGPU
		return -math.Floor(100 / (1 + math.Exp(increase)))
	}
}
