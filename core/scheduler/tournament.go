package scheduler

// tournament finds the highest score of many, the earliest of equals, and
// follows changes in logarithmic time.
type tournament struct {
	scores []float64
	tree   []int32 // tree[1] is the winner; leaves begin at size; -1: nobody
	size   int
}

// none is the score of what takes no part. Scores are above -2.
const none = -1e9

// reset builds the tree over scores, which the tournament keeps and reads.
func (t *tournament) reset(scores []float64) {
	t.scores, t.size = scores, 1
	for t.size < len(scores) {
		t.size *= 2
	}
	if cap(t.tree) < 2*t.size {
		t.tree = make([]int32, 2*t.size)
	}
	t.tree = t.tree[:2*t.size]
	for i := range t.size {
		t.tree[t.size+i] = -1
		if i < len(scores) && scores[i] > none {
			t.tree[t.size+i] = int32(i)
		}
	}
	for i := t.size - 1; i >= 1; i-- {
		t.tree[i] = t.better(t.tree[2*i], t.tree[2*i+1])
	}
}

// better of two, a being the earlier one.
func (t *tournament) better(a, b int32) int32 {
	if b < 0 || a >= 0 && t.scores[a] >= t.scores[b] {
		return a
	}
	return b
}

// update follows a change of scores[i].
func (t *tournament) update(i int) {
	at := t.size + i
	t.tree[at] = -1
	if t.scores[i] > none {
		t.tree[at] = int32(i)
	}
	for at /= 2; at >= 1; at /= 2 {
		t.tree[at] = t.better(t.tree[2*at], t.tree[2*at+1])
	}
}

// best is the winner, or -1.
func (t *tournament) best() int {
	if len(t.scores) == 0 {
		return -1
	}
	return int(t.tree[1])
}
