package gpushare

import (
	"math/rand/v2"

	"github.com/cede-scheduler/cede/core/model"
)

// A node is a node with its free capacity.
type node struct {
	*model.Node
	free    model.Vector
	devices []int32 // free units by position in Devices
	version int     // increases with each task
}

// A score rates the placement of a task on a node by a choice of its GPUs. Lower is better.
type score func(n *node, ask *model.Ask, choice []int16) float64

// A placer places tasks on the node and GPUs with the best score. Nodes of equal scores are
// used in random order.
type placer struct {
	nodes   []*node
	score   score
	ratings map[*model.Job][]rating
	choices map[choiceKey][][]int16
}

// A rating is the best way to place a task on one node.
type rating struct {
	version int
	fits    bool
	score   float64
	choice  []int16
}

// A choiceKey identifies nodes of one class for a task.
type choiceKey struct {
	task  *model.Job
	class uint64
}

func newPlacer(t *Trace, r *rand.Rand, s score) *placer {
	p := &placer{score: s, ratings: map[*model.Job][]rating{}, choices: map[choiceKey][][]int16{}}
	for _, at := range r.Perm(len(t.nodes)) {
		n := &node{Node: t.nodes[at], free: t.nodes[at].Avail, version: 1}
		for _, d := range n.Devices {
			n.devices = append(n.devices, d.Count)
		}
		p.nodes = append(p.nodes, n)
	}
	return p
}

// place implements placing.
func (p *placer) place(task *model.Job) (bool, error) {
	ratings := p.ratings[task]
	if ratings == nil {
		ratings = make([]rating, len(p.nodes))
		p.ratings[task] = ratings
	}
	best := -1
	for i, n := range p.nodes {
		if ratings[i].version != n.version {
			ratings[i] = p.rate(n, task)
		}
		if ratings[i].fits && (best < 0 || ratings[i].score < ratings[best].score) {
			best = i
		}
	}
	if best < 0 {
		return false, nil
	}
	p.nodes[best].add(&task.Groups[0].Ask, ratings[best].choice)
	return true, nil
}

// rate returns the best way to place a task on a node.
func (p *placer) rate(n *node, task *model.Job) rating {
	best := rating{version: n.version}
	ask := &task.Groups[0].Ask
	room := model.NewFreeCapacity(&n.free, nil, n.devices)
	for _, choice := range p.feasible(n, task) {
		if model.Fits(room, ask, choice).Kind != model.ShortageNone {
			continue
		}
		if s := p.score(n, ask, choice); !best.fits || s < best.score {
			best.fits, best.score, best.choice = true, s, choice
		}
	}
	return best
}

// feasible returns the ways in which the GPUs of a node can serve a task.
func (p *placer) feasible(n *node, task *model.Job) [][]int16 {
	key := choiceKey{task, n.ClassKey}
	choices, found := p.choices[key]
	if !found {
		if task.Groups[0].IsFeasible(n.Node) {
			choices = n.DeviceChoices(&task.Groups[0].Ask)
		}
		p.choices[key] = choices
	}
	return choices
}

// add deducts a task from the free capacity.
func (n *node) add(ask *model.Ask, choice []int16) {
	n.free.Sub(&ask.Vec)
	for r, at := range choice {
		n.devices[at] -= ask.Devices[r].Count
	}
	n.version++
}
