package model

import "strings"

// ParseAssignmentID returns the binding and the cluster of an assignment ID, for
// callers that lack the deleted assignment. It returns false if AssignmentID did
// not create the ID. IDs whose parts contain slashes are not supported.
func ParseAssignmentID(id string) (binding JobKey, cluster string, ok bool) {
	parts := strings.SplitN(id, "/", 4)
	if len(parts) < 4 {
		return JobKey{}, "", false
	}
	return JobKey{Namespace: parts[0], ID: parts[1]}, parts[2], true
}

// ParseClaimID is ParseAssignmentID for the claim of a binding.
func ParseClaimID(id string) (claimant JobKey, cluster string, ok bool) {
	rest, found := strings.CutPrefix(id, "claim/")
	if !found {
		return JobKey{}, "", false
	}
	return ParseAssignmentID(rest)
}

// ParsePartID returns the assignment from which the replicas of a part were
// removed; it returns false if PartID did not create the ID.
func ParsePartID(id string) (assignmentID string, ok bool) {
	if assignmentID, _, ok = strings.Cut(id, "/less/"); !ok {
		return "", false
	}
	return assignmentID, true
}
