package model

import "strings"

// ParseAssignmentID is the binding and the cluster of an assignment by its id, for who
// hears of one that is gone; false for an id that AssignmentID did not make. Ids
// with slashes are not read.
func ParseAssignmentID(id string) (binding JobKey, cluster string, ok bool) {
	parts := strings.SplitN(id, "/", 4)
	if len(parts) < 4 {
		return JobKey{}, "", false
	}
	return JobKey{Namespace: parts[0], ID: parts[1]}, parts[2], true
}

// ParseClaimID is OfAssignment for the claim of a binding: who claims, and where.
func ParseClaimID(id string) (claimant JobKey, cluster string, ok bool) {
	rest, found := strings.CutPrefix(id, "claim/")
	if !found {
		return JobKey{}, "", false
	}
	return ParseAssignmentID(rest)
}

// ParsePartID is the assignment that replicas were taken off which go as a part
// of their own (PartID); false for one that is no part.
func ParsePartID(id string) (assignmentID string, ok bool) {
	if assignmentID, _, ok = strings.Cut(id, "/less/"); !ok {
		return "", false
	}
	return assignmentID, true
}
