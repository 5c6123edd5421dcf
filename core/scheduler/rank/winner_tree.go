package rank

import "github.com/cede-scheduler/cede/core/scheduler/feasible"

// A winnerTree finds the highest score among the ready ranks, the first of equals, and
// follows a change in O(log n). Earlier ranks are to the left, so a comparison of
// scores alone breaks ties by rank.
type winnerTree struct {
	status []FitStatus
	scores []float64
	tree   []int32 // tree[1] is the winner, leaves start at size; -1: none
	size   int     // a power of two
}

// reset builds the tree in O(n). It retains both slices and reads them again in update.
func (t *winnerTree) reset(status []FitStatus, scores []float64) {
	t.status, t.scores, t.size = status, scores, 1
	for t.size < len(scores) {
		t.size *= 2
	}
	t.tree = feasible.Resize(t.tree, 2*t.size)
	for i := range t.size {
		t.tree[t.size+i] = -1
		if i < len(scores) && status[i] == Fits {
			t.tree[t.size+i] = int32(i)
		}
	}
	for i := t.size - 1; i >= 1; i-- {
		t.tree[i] = t.better(t.tree[2*i], t.tree[2*i+1])
	}
}

// better returns the better of two ranks, of which a is the earlier one.
func (t *winnerTree) better(a, b int32) int32 {
	if b < 0 || a >= 0 && t.scores[a] >= t.scores[b] {
		return a
	}
	return b
}

// update follows a change at rank i.
func (t *winnerTree) update(i int) {
	at := t.size + i
	t.tree[at] = -1
	if t.status[i] == Fits {
		t.tree[at] = int32(i)
	}
	for at /= 2; at >= 1; at /= 2 {
		t.tree[at] = t.better(t.tree[2*at], t.tree[2*at+1])
	}
}

// best returns the winner, or -1 if no rank is ready.
func (t *winnerTree) best() int { return int(t.tree[1]) }
