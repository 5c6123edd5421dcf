package prune

import "math"

// A Key orders options as the policy does, the least first. It is that of an option, or a lower
// bound of the key of any option on a node. A policy with Info.LeastFirst orders by cost; with
// Info.Monotone by its tiers. Options with equal keys may still differ.
type Key [5]int64

// HighestKey is a key that no option exceeds.
var HighestKey = Key{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}

// Less reports whether k is before o.
func (k *Key) Less(o *Key) bool {
	for i, value := range k {
		if value != o[i] {
			return value < o[i]
		}
	}
	return false
}

// A Cost holds the values that a policy with Info.LeastFirst compares, in the order of the
// fields.
type Cost struct {
	Violations, Highest int32
	Sum                 int64 // of priorities, each raised above zero
	Victims             int32
	// Start is when the first of the victims of the highest priority started; of a bound
	// the latest that can be.
	Start int64
}

// raise makes any priority a number above zero, so that more victims cost more.
const raise = 1 << 31

// CostOf returns the cost of victims with a sum of priorities.
func CostOf(violations, highest int32, prioritySum int64, victims int32, start int64) Cost {
	return Cost{violations, highest, prioritySum + int64(victims)*raise, victims, start}
}

// Key returns the key of a policy with Info.LeastFirst.
func (c *Cost) Key() Key {
	return Key{int64(c.Violations), int64(c.Highest), c.Sum, int64(c.Victims), ^c.Start} // ^ reverses the order
}

// A Bound is a lower bound of the options on a node.
type Bound struct {
	Slot  int32 // of the node; -1: unknown, so that the policy must be called
	Exact bool  // the best option there has exactly this key
	Key   Key
}

// Less orders bounds by key, and equal ones by slot.
func (b *Bound) Less(o *Bound) bool {
	return b.Key.Less(&o.Key) || b.Slot < o.Slot && !o.Key.Less(&b.Key)
}

// A BoundQueue holds the nodes about which the policy has not been called: a heap with
// the least bound first.
type BoundQueue []Bound

// Init establishes the heap order in linear time.
func (q BoundQueue) Init() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}

// sink moves the bound at i down to where it belongs.
func (q BoundQueue) sink(i int) {
	b := q[i]
	for {
		child := 2*i + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && q[child+1].Less(&q[child]) {
			child++
		}
		if !q[child].Less(&b) {
			break
		}
		q[i], i = q[child], child
	}
	q[i] = b
}

// Pop removes and returns the least bound. The queue must not be empty.
func (q *BoundQueue) Pop() Bound {
	list := *q
	least, last := list[0], len(list)-1
	list[0] = list[last]
	if *q = list[:last]; last > 0 {
		q.sink(0)
	}
	return least
}
