package counterfactual

import (
	"maps"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// A Kind is the property that a change concerns.
type Kind uint8

// The kinds, in the order in which they are tried.
const (
	HigherPriority Kind = iota // of the victim's job or binding
	LaterDecision
	SmallerRequest // of each new instance of a group, or of each replica of a binding
)

// String returns the name in results.
func (k Kind) String() string { return [...]string{"higher-priority", "later", "smaller-request"}[k] }

// A Change is a point of a lattice.
type Change struct {
	Kind     Kind
	Priority int32         // by which the victim's is higher
	Later    time.Duration // by which the decision is later
	Group    string        // that requests less; "" for a binding
	Resource string        // of which less is requested
	Amount   int64         // that is requested instead of Of
	Of       int64
}

// steps are the points of the lattice of priorities below its last one.
var steps = [...]int64{1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 75, 100, 1000}

// Priorities returns the lattice of a victim's priority: amounts to add, up to the
// priority of the job that was placed.
func Priorities(victim, preemptor int32) []Change {
	var list []Change
	limit := int64(preemptor) - int64(victim)
	for _, by := range steps {
		if by < limit {
			list = append(list, Change{Kind: HigherPriority, Priority: int32(by)})
		}
	}
	// An amount above the largest int32 cannot be written, and a priority cannot rise by it.
	if limit > 0 && limit == int64(int32(limit)) {
		list = append(list, Change{Kind: HigherPriority, Priority: int32(limit)})
	}
	return list
}

// delays are the points of the lattice of times, in minutes.
var delays = [...]int{1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60, 120, 240}

// Delays returns the lattice of times.
func Delays() []Change {
	list := make([]Change, len(delays))
	for i, minutes := range delays {
		list[i] = Change{Kind: LaterDecision, Later: time.Duration(minutes) * time.Minute}
	}
	return list
}

const (
	maxRequestPoints = 30 // of the lattices of all requests together
	maxPoints        = 15 // of one lattice of requests
)

// A Request holds the amounts of a group for each instance, or of a binding for each replica.
type Request struct {
	Group     string // "" for a binding
	Resources model.Resources
}

// Requests returns the lattices of requests, one for each resource: equal steps down from
// the requested amount, the smallest reduction first.
func Requests(requests []Request) [][]Change {
	var whole []Change
	for _, r := range requests {
		for _, name := range slices.Sorted(maps.Keys(r.Resources)) {
			if r.Resources[name] > 1 {
				whole = append(whole, Change{Kind: SmallerRequest, Group: r.Group, Resource: name, Of: r.Resources[name]})
			}
		}
	}
	whole = whole[:min(len(whole), maxRequestPoints)]
	if len(whole) == 0 {
		return nil
	}
	points := int64(min(maxPoints, maxRequestPoints/len(whole)))
	lattices := make([][]Change, 0, len(whole))
	for _, c := range whole {
		var list []Change
		last := c.Of
		for k := int64(1); k <= points; k++ {
			c.Amount = c.Of - reduction(c.Of, k, points+1)
			if c.Amount >= 1 && c.Amount < last {
				list = append(list, c)
				last = c.Amount
			}
		}
		lattices = append(lattices, list)
	}
	return lattices
}

// reduction returns amount × k / n, rounded up. It does not overflow if k < n.
func reduction(amount, k, n int64) int64 {
	return amount/n*k + (amount%n*k+n-1)/n
}
