package broker

import "github.com/cede-scheduler/cede/core/model"

// classNumbers gives node classes small numbers. An evaluation may know of
// hundreds of classes that they cannot take it, and every change asks every one
// that waits: with numbers that is one bit, without them a search in a table of
// its own, which is never in the cache.
type classNumbers struct {
	of    map[uint64]int32
	limit int // beyond it numbers are given anew, or those of classes gone would add up
}

// leastNumbered is how many classes may have numbers at any rate.
const leastNumbered = 1 << 12

func newClassNumbers() classNumbers {
	return classNumbers{of: map[uint64]int32{}, limit: leastNumbered}
}

// find is the number of a class; -1: nobody who waits rules it out.
func (c *classNumbers) find(class uint64) int32 {
	if n, ok := c.of[class]; ok {
		return n
	}
	return -1
}

// ruledOut are the classes that cannot take an evaluation.
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

// renumber forgets classes that no record rules out any more.
func (t *Blocked) renumber() {
	t.classes = newClassNumbers()
	for _, r := range t.ids { // any order: numbers are told nobody
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
