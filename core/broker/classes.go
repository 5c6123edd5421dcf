package broker

import "github.com/cede-scheduler/cede/core/model"

// classNumbers gives node classes small numbers. An evaluation may exclude hundreds
// of classes, and every change is compared with every blocked evaluation: with
// numbers that is a test of one bit, otherwise a lookup in a table of its own that
// is rarely in the cache.
type classNumbers struct {
	of    map[uint64]int32
	limit int // number of classes at which all are renumbered, or deleted classes would add up
}

// leastNumbered is the minimum of classNumbers.limit.
const leastNumbered = 1 << 12

func newClassNumbers() classNumbers {
	return classNumbers{of: map[uint64]int32{}, limit: leastNumbered}
}

// find returns the number of a class, or -1 if no blocked evaluation excludes it.
func (c *classNumbers) find(class uint64) int32 {
	if n, ok := c.of[class]; ok {
		return n
	}
	return -1
}

// ruledOut returns the classes that are infeasible for an evaluation.
func (c *classNumbers) ruledOut(ev *model.Evaluation) (out classSet) {
	for class, feasible := range ev.Classes { // any order: a set
		if feasible {
			continue
		}
		n, ok := c.of[class]
		if !ok {
			n = int32(len(c.of))
			c.of[class] = n
		}
		out = out.with(n)
	}
	return out
}

// renumber drops classes that no record excludes any more.
func (t *Blocked) renumber() {
	t.classes = newClassNumbers()
	for _, r := range t.ids { // any order: numbers reach no result
		r.ruledOut = t.classes.ruledOut(r.eval)
	}
	t.classes.limit = max(leastNumbered, 2*len(t.classes.of))
}

// classSet is a set of small numbers.
type classSet []uint64

func (b classSet) with(n int32) classSet {
	for int(n>>6) >= len(b) {
		b = append(b, 0)
	}
	b[n>>6] |= 1 << (n & 63)
	return b
}

func (b classSet) has(n int32) bool {
	return n >= 0 && int(n>>6) < len(b) && b[n>>6]>>(n&63)&1 == 1
}
