package planner

import "github.com/cede-scheduler/cede/core/model"

// A RejectionCause classifies a rejection for counting. Rejection.Reason holds the
// text.
type RejectionCause uint8

// The causes.
const (
	CauseNode     RejectionCause = iota // the node is missing, down, draining or ineligible
	CauseResource                       // the node lacks a resource
	CausePort                           // a host port is taken
	CauseDevice                         // the node lacks device instances
	CauseVictim                         // a victim may not be evicted
	CauseEviction                       // an eviction serves no placement or claim of its group
	CauseJob                            // the job is missing, stopped, or at another version
	CausePlaced                         // the instance is placed already, or the allocation to update has ended
	CauseRules                          // a topology rule no longer holds
	CauseDropped                        // the node was lost between verification and commit
	CauseBudget                         // a strict disruption budget allows no more evictions
	causes        = iota
)

// The names are label values of a published metric: they must not change.
var causeNames = [causes]string{
	"node", "resource", "port", "device", "victim", "eviction", "job", "placed", "rules", "dropped", "budget",
}

func (c RejectionCause) String() string { return causeNames[c] }

// ofNode reports whether the node has less free capacity than the scheduler
// assumed.
func (c RejectionCause) ofNode() bool {
	return c == CauseResource || c == CausePort || c == CauseDevice
}

func causeOfShortage(kind model.ShortageKind) RejectionCause {
	switch kind {
	case model.ShortagePort:
		return CausePort
	case model.ShortageDevice:
		return CauseDevice
	default:
		return CauseResource
	}
}
