package planner

import "github.com/cede-scheduler/cede/core/model"

// RejectionCause is the kind of a rejection, for counting; Rejection.Reason is the
// same in words.
type RejectionCause uint8

// The causes.
const (
	CauseNode     RejectionCause = iota // the node is gone, down, draining or ineligible
	CauseResource                       // the node lacks a resource
	CausePort                           // a host port is taken
	CauseDevice                         // the node lacks device instances
	CauseVictim                         // a victim may not be evicted
	CauseEviction                       // an eviction makes room for nobody in its group
	CauseJob                            // the job is gone, stopped, or another version
	CausePlaced                         // the instance is placed already, or what is to be updated has ended
	CauseRules                          // a topology rule no longer holds
	CauseDropped                        // the node went away between verification and commit
	CauseBudget                         // a strict disruption budget allows no more evictions
	causes        = iota
)

var causeNames = [causes]string{
	"node", "resource", "port", "device", "victim", "eviction", "job", "placed", "rules", "dropped", "budget",
}

func (c RejectionCause) String() string { return causeNames[c] }

// ofNode is whether the rejection says that the node has less than a scheduler
// thought.
func (c RejectionCause) ofNode() bool {
	return c == CauseResource || c == CausePort || c == CauseDevice
}

func causeOfLack(kind model.ShortageKind) RejectionCause {
	switch kind {
	case model.ShortagePort:
		return CausePort
	case model.ShortageDevice:
		return CauseDevice
	default:
		return CauseResource
	}
}
