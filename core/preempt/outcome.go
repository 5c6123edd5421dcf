package preempt

// An Outcome is the result of a search for one node.
type Outcome uint8

// The outcomes.
const (
	Unchecked    Outcome = iota
	Possible             // the group fits once the victims have left
	NoCandidates         // no allocation may be evicted for this preemptor
	Insufficient         // the group does not fit even with every candidate evicted
	Declined             // the policy's victims free too little
	Protected            // strict disruption budgets protect too many candidates
	// Outcomes is the number of outcomes.
	Outcomes = iota
)

// String returns the text that explanations show.
func (o Outcome) String() string {
	return [...]string{
		"not checked", "possible", "no allocation may be evicted at this priority",
		"insufficient capacity even with every candidate evicted", "the policy's victims free too little",
		"strict disruption budgets protect too many candidates",
	}[o]
}
