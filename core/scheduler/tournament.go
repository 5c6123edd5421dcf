package scheduler

// tournament finds the highest score of many that stand ready, the earliest of
// equals, and follows changes in logarithmic time.
type tournament struct {
	standing []standing
	scores   []float64
	tree     []int32 // tree[1] is the winner; leaves begin at size; -1: nobody
	size     int
}

// reset builds the tree. The tournament keeps and reads both slices.
func (t *tournament) reset(standing []standing, scores []float64) {
	t.standing, t.scores, t.size = standing, scores, 1
	for t.size < len(scores) {
		t.size *= 2
	}
	t.tree = resized(t.tree, 2*t.size)
	for i := range t.size {
		t.tree[t.size+i] = -1
		if i < len(scores) && standing[i] == standsReady {
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

// update follows a change at i.
func (t *tournament) update(i int) {
	at := t.size + i
	t.tree[at] = -1
	if t.standing[i] == standsReady {
		t.tree[at] = int32(i)
	}
	for at /= 2; at >= 1; at /= 2 {
		t.tree[at] = t.better(t.tree[2*at], t.tree[2*at+1])
	}
}

// best is the winner, or -1.
func (t *tournament) best() int { return int(t.tree[1]) }
