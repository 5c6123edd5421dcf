package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/suggest"
)

// An Explanation summarizes why instances of a group were not placed, by node and
// dimension.
type Explanation struct {
	Of         string         // plural noun for the candidates; "": nodes
	Nodes      int            // number of candidates
	NotReady   map[string]int // reason ("draining") to ineligible nodes
	Filtered   map[string]int // constraint or rule to excluded nodes
	Exhausted  map[string]int // shortage ("memory", "port 80") to nodes
	Preempted  map[string]int // why preemption did not help, to nodes
	NoEviction string         // why nothing may be preempted; "" if preemption is allowed
	// Gang is why the gang as a whole was not placed; "": the group explains it by itself. Reasons
	// by node beside it are those of the next instance after the ones that an attempt placed.
	Gang    string
	Waiting int          // further instances that were not tried after the first failure
	Samples []NodeReason // a few nodes by name, ascending
}

// A NodeReason is why one node was not chosen.
type NodeReason struct{ NodeID, Reason string }

// CountFiltered counts a node that a rule excludes.
func (e *Explanation) CountFiltered(reason string) { CountReason(&e.Filtered, reason, 1) }

// CountExhausted counts a node with a shortage.
func (e *Explanation) CountExhausted(what string) { CountReason(&e.Exhausted, what, 1) }

// CountReason adds n nodes to a reason in one of the explanation's maps.
func CountReason(m *map[string]int, reason string, n int) {
	if n == 0 {
		return
	}
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[reason] += n
}

// String is one line such as
//
//	0 of 4 nodes: 2 lack memory, 1 is down, 1 excluded by zone = a; eviction does
//	not help: on 2 nothing has a priority of 60 or less
func (e *Explanation) String() string {
	if e == nil {
		return "there are no nodes"
	}
	many := cmp.Or(e.Of, "nodes")
	if e.Nodes == 0 {
		return "there are no " + many
	}
	notReady := appendCounts(nil, e.NotReady, "%d is %s", "%d are %s")
	parts := append(appendCounts(nil, e.exhausted(), "%d lacks %s", "%d lack %s"), notReady...)
	excluded, lacking := e.filtered()
	parts = appendCounts(parts, excluded, "%d excluded by %s", "%d excluded by %s")
	parts = appendCounts(parts, lacking, "%d lacks %s", "%d lack %s")
	noun := many
	if e.Nodes == 1 {
		noun = strings.TrimSuffix(many, "s")
	}
	text := fmt.Sprintf("0 of %d %s", e.Nodes, noun)
	if len(parts) > 0 { // a cluster of the log's first version does not store the reason of a gang
		text += ": " + strings.Join(parts, ", ")
	}
	whole := e.Gang != "" && len(e.Exhausted)+len(e.Filtered)+len(e.Preempted) == 0
	switch {
	case !whole && e.Gang != "":
		text = "all at once: " + e.Gang + "; for the next one, " + text
	case whole && len(notReady) > 0:
		text = fmt.Sprintf("all at once: %s; of %d %s %s", e.Gang, e.Nodes, noun, strings.Join(notReady, ", "))
	case whole:
		text = "all at once: " + e.Gang
	}
	switch {
	case len(e.Preempted) > 0:
		text += "; eviction does not help: " + strings.Join(appendCounts(nil, e.Preempted, "on %d %s", "on %d %s"), ", ")
	case e.NoEviction != "" && (len(e.Exhausted) > 0 || whole):
		text += "; no preemption: " + e.NoEviction
	}
	return text
}

// exhausted returns the shortages. If every node lacks a resource with a name similar to a
// standard one, its name is probably misspelt: the shortage includes the standard name.
func (e *Explanation) exhausted() map[string]int {
	shown := e.Exhausted
	for name, n := range e.Exhausted {
		if near := SimilarResource(name); near != "" && n == e.Nodes {
			shown = maps.Clone(shown)
			delete(shown, name)
			shown[name+" ("+suggest.Question(near)+")"] = n
		}
	}
	return shown
}

// filtered returns the rules that exclude nodes, and what nodes lack that capacity does not
// provide, such as a driver.
func (e *Explanation) filtered() (excluded, lacking map[string]int) {
	for reason, n := range e.Filtered {
		if what, ok := strings.CutPrefix(reason, "lacks "); ok {
			CountReason(&lacking, what, n)
		} else {
			CountReason(&excluded, reason, n)
		}
	}
	return excluded, lacking
}

// SimilarResource returns the standard resource that a name is similar to, or "" if the
// name is a standard one or similar to none.
func SimilarResource(name string) string {
	standard := []string{"cpu", "memory", "disk", "network"}
	lower := strings.ToLower(name)
	switch {
	case slices.Contains(standard, name):
		return ""
	case lower == "mem" || lower == "ram":
		return "memory"
	case lower == "vcpu":
		return "cpu"
	case lower == "storage" || lower == "ephemeral-storage" || lower == "ssd":
		return "disk"
	}
	near := suggest.Nearest(name, standard)
	if near == "" || near[0] != lower[0] {
		return "" // gpu and npu are not misspelt
	}
	return near
}

// appendCounts adds a part for each reason, the most frequent first: one for a
// single node and many for several are its words.
func appendCounts(parts []string, counts map[string]int, one, many string) []string {
	keys := make([]string, 0, len(counts))
	for k, n := range counts {
		if n > 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	for _, k := range keys {
		words := many
		if counts[k] == 1 {
			words = one
		}
		parts = append(parts, fmt.Sprintf(words, counts[k], k))
	}
	return parts
}

// A Choice explains why a placement or a claim evicts others: which options the search
// compared, and how the victims were selected. It is part of the plan, so that every server
// has the same one. Its lists are bounded, and it refers to objects by ID.
type Choice struct {
	By      string // allocation ID of the placement, or claim ID
	Search  Search
	Options int // feasible options that were compared, the chosen one included
	// Ceiling is the highest priority that may be evicted, before the policy limits it
	// further.
	Ceiling int64

	Selector PolicyCall // selected the victims of each option
	Chooser  PolicyCall // scored the options; zero if nothing was compared

	// Ranked holds the chosen option, and then the best option of each of the best other
	// nodes: at most MaxRanked in all.
	Ranked []RankedOption
	// Candidates are those of the chosen option: first the victims in picking order, then
	// the others in the order of the policy. At most MaxCandidates are listed, and Omitted
	// counts the rest.
	Candidates []Candidate
	Omitted    int
}

// Reprieve changes the verdict about evicted candidates that stay after all.
func (c *Choice) Reprieve(stays func(allocID string) bool) {
	for i := range c.Candidates {
		if x := &c.Candidates[i]; x.Verdict == Evicted && stays(x.AllocID) {
			x.Verdict = Reprieved
		}
	}
}

// Limits on the lists of a Choice.
const (
	MaxRanked     = 4
	MaxCandidates = 16
)

// A Search is the kind of search that led to a choice.
type Search uint8

// The searches.
const (
	SearchBest     Search = iota // the best option of all nodes
	SearchEachNode               // the job runs on every node; options of one node were compared
	SearchGang                   // the node follows from the placement of all instances together
	SearchBudgets                // as SearchBest, with candidates excluded to respect strict budgets
	SearchClusters               // a member cluster for a binding
	Searches       = iota
)

// A PolicyCall identifies the hook that answered, and what it was shown.
type PolicyCall struct {
	Version string // ID of the policy version
	Hook    string
	Columns uint64 // optional columns that it reads, by bit of the policy ABI
	Part    string // of a composition: the part that answered; "" for other policies
}

// A RankedOption is an option with the policy's answer. A lower tier ranks first, then a
// higher score, then the order of nodes.
type RankedOption struct {
	NodeID  string
	Tiers   [4]int64
	Score   float64
	Victims int
	Highest int32    // priority of a victim
	Outlook *Outlook // as the policy read it; nil: the option was not played
}

// An Outlook predicts the consequences of an option, if no other work arrives.
type Outlook struct {
	LostWork int64 // nanoseconds, of all evictions, those of the option included
	Depth    int32 // length of the longest chain of evictions
	Delay    int64 // nanoseconds for which evicted instances do not run, summed over them
}

// A Candidate is an allocation that could have been evicted with the chosen option.
type Candidate struct {
	AllocID string
	Verdict Verdict
	// Scored is set if the policy scored candidates. A lower Tier is evicted first, then a
	// lower Score.
	Scored bool
	Tier   int64
	Score  float64
}

// A Verdict states what became of a candidate.
type Verdict uint8

// The verdicts.
const (
	Evicted   Verdict = iota
	Unneeded          // the policy listed it after the victims that sufficed
	Reprieved         // the policy selected it, and the host found that the group fits without it
	Spared            // the policy did not select it
	Shielded          // a strict disruption budget or its all-or-none job protects it
	Verdicts  = iota
)

// An Observation is a decision to evict that was made and not carried out, because
// preemption is only observed for the type of the job. It is part of the evaluation that
// waits instead.
type Observation struct {
	AllocID string // that the placement would have had
	Group   string
	NodeID  string
	Victims []string // allocation IDs, in the order of the plan
	Policy  string   // version of the policy that chose the victims
	Choice  *Choice  // nil: the scheduler explains nothing
	// PlannedOn is the index of the state on which the decision was made, and PlannedAt its
	// time, in Unix nanoseconds.
	PlannedOn uint64
	PlannedAt int64
}

// MaxObservations bounds the observations of an evaluation.
const MaxObservations = 64

// isSame reports whether two observations are of the same decision.
func (o *Observation) isSame(x *Observation) bool {
	return o.Group == x.Group && o.NodeID == x.NodeID && o.Policy == x.Policy && slices.Equal(o.Victims, x.Victims)
}

// MergeObservations returns the observations of an evaluation that was planned again: those
// that it had, if the same decisions were made again, or the new ones. So a decision is
// recorded once, however often the evaluation is planned.
func MergeObservations(had, made []*Observation) []*Observation {
	if slices.EqualFunc(had, made, (*Observation).isSame) {
		return had
	}
	return made
}

// NewObservations returns the observations of a blocked evaluation that were made on the
// state on which it blocked, and not by an earlier attempt.
func (e *Evaluation) NewObservations() []*Observation {
	if e.Status != EvalBlocked || len(e.Observed) == 0 || e.Observed[0].PlannedOn != e.SnapshotIndex {
		return nil
	}
	return e.Observed
}
