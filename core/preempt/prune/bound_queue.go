package prune

// A Cost holds the values that a policy with Info.LeastFirst compares, in the order of the
// fields. It is the cost of an option, or a lower bound of the cost of any option on a
// node.
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

// Less reports whether c costs less than o.
func (c *Cost) Less(o *Cost) bool {
	switch {
	case c.Violations != o.Violations:
		return c.Violations < o.Violations
	case c.Highest != o.Highest:
		return c.Highest < o.Highest
	case c.Sum != o.Sum:
		return c.Sum < o.Sum
	case c.Victims != o.Victims:
		return c.Victims < o.Victims
	}
	return c.Start > o.Start
}

// A Bound is a lower bound of the cost of evictions on a node.
type Bound struct {
	Slot  int32 // of the node; -1: unknown, so that the policy must be called
	Exact bool  // they cost exactly that
	Cost
}

// Less orders bounds by cost, and equal ones by slot.
func (b *Bound) Less(o *Bound) bool {
	return b.Cost.Less(&o.Cost) || b.Slot < o.Slot && !o.Cost.Less(&b.Cost)
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
