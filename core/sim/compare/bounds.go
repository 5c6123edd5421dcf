package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/sim/bound"
	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// MaxRegrets limits the decisions shown per policy in text.
const MaxRegrets = 3

// Bounds compare the decisions of one policy, in all runs, with the best possible answers.
// Work is in hours of the whole cluster.
type Bounds struct {
	Policy    string `json:"policy"`
	Decisions int    `json:"decisions"`
	Optimal   int    `json:"provenOptimal"`
	Open      int    `json:"open"` // neither proven optimal nor beaten
	Missed    int    `json:"missedPlacements"`
	// Causes counts the open decisions by cause. One may have several.
	Causes map[string]int `json:"openBecause,omitempty"`
	// Evicting counts the decisions with victims, and EvictingOptimal those of them that
	// are proven optimal.
	Evicting        int `json:"evicting"`
	EvictingOptimal int `json:"evictingProvenOptimal"`

	LostWork   float64 `json:"lostWork"`
	LowerBound float64 `json:"lowerBound"`
	Regret     float64 `json:"regret"`
	// Within is LostWork divided by LowerBound, rounded up; nil if LowerBound is 0.
	Within *float64 `json:"within,omitempty"`
	// Decided are the decisions of the first run with the largest differences from their
	// bounds.
	Decided []Regretted `json:"largestRegrets,omitempty"`
}

// A Regretted is a decision with the best answer to it.
type Regretted struct {
	Scenario string        `json:"scenario"`
	Seed     uint64        `json:"seed"`
	At       string        `json:"at"`
	Job      string        `json:"job"`
	Verdict  bound.Verdict `json:"verdict"`
	Placed   int           `json:"placed"`
	Unplaced int           `json:"unplaced,omitempty"`
	Victims  []string      `json:"victims"`
	Moved    []string      `json:"moved,omitempty"`
	LostWork float64       `json:"lostWork"`
	Lower    float64       `json:"lowerBound"`
	Best     *bound.Answer `json:"best,omitempty"`
	Missed   bool          `json:"missed,omitempty"`
	Relaxed  []string      `json:"relaxed,omitempty"`
	Causes   []string      `json:"openBecause,omitempty"` // of an open decision
}

// clusterHours converts nanoseconds of the whole cluster.
func clusterHours(cost int64) float64 { return metrics.Round(float64(cost) / float64(time.Hour)) }

// newBounds summarises the bounds of all runs; nil if there are none.
func newBounds(runs []Run, policies []string) (list []Bounds) {
	for _, policy := range policies {
		b, total := Bounds{Policy: policy}, bound.Report{}
		found := false
		for i := range runs {
			r := runs[i].Bound
			if runs[i].Policy != policy || r == nil {
				continue
			}
			found = true
			b.Decisions, b.Optimal, b.Open, b.Missed = b.Decisions+r.Decisions, b.Optimal+r.Optimal, b.Open+r.Open, b.Missed+r.Missed
			b.Evicting, b.EvictingOptimal = b.Evicting+r.Evicting, b.EvictingOptimal+r.EvictingOptimal
			for cause, n := range r.Causes {
				if b.Causes == nil {
					b.Causes = map[string]int{}
				}
				b.Causes[cause] += n
			}
			total.Cost, total.Lower, total.Regret = total.Cost+r.Cost, total.Lower+r.Lower, total.Regret+r.Regret
			if len(b.Decided) == 0 {
				b.Decided = regretted(&runs[i])
			}
		}
		b.LostWork, b.LowerBound, b.Regret = clusterHours(total.Cost), clusterHours(total.Lower), clusterHours(total.Regret)
		if total.Lower > 0 {
			b.Within = new(math.Ceil(float64(total.Cost)/float64(total.Lower)*100) / 100)
		}
		if found {
			list = append(list, b)
		}
	}
	return list
}

func regretted(run *Run) (list []Regretted) {
	for i := range run.Bound.Regrets {
		r := &run.Bound.Regrets[i]
		list = append(list, Regretted{
			Scenario: run.Scenario, Seed: run.Seed, At: time.Duration(r.At).String(), Job: r.Job, Verdict: r.Verdict, Placed: r.Instances, Unplaced: r.Unplaced,
			Victims: r.Victims, Moved: r.Moved, LostWork: clusterHours(r.Cost), Lower: clusterHours(r.Lower), Best: r.Best, Missed: r.Missed, Relaxed: r.Dropped, Causes: r.Causes,
		})
	}
	return list
}

// String returns the distance of the policy from the best possible in one sentence.
func (b *Bounds) String() string {
	if b.Decisions == 0 {
		return b.Policy + ": no decision evicts or leaves work unplaced"
	}
	distance := "lost work although no decision had to, as far as is proven"
	switch {
	case b.LostWork == 0:
		distance = "no work lost"
	case b.Within != nil:
		distance = fmt.Sprintf("within %s × of anything possible", Number(*b.Within))
	}
	text := fmt.Sprintf("%s: %s; %d %% of %d decisions proven optimal", b.Policy, distance, 100*b.Optimal/b.Decisions, b.Decisions)
	if b.Evicting > 0 {
		text += fmt.Sprintf(" (%d %% of %d that evict)", 100*b.EvictingOptimal/b.Evicting, b.Evicting)
	}
	if b.Missed > 0 {
		text += fmt.Sprintf("; %d missed a placement", b.Missed)
	}
	return text
}

// Unproven states how many decisions are open, and why; "": none is.
func (b *Bounds) Unproven() string {
	if b.Open == 0 {
		return ""
	}
	var list []string
	for _, cause := range slices.SortedFunc(maps.Keys(b.Causes), func(x, y string) int {
		return cmp.Or(cmp.Compare(b.Causes[y], b.Causes[x]), strings.Compare(x, y))
	}) {
		list = append(list, fmt.Sprintf("%s (%d)", cause, b.Causes[cause]))
	}
	return fmt.Sprintf("%d open: %s", b.Open, strings.Join(list, ", "))
}

// Chosen describes the answer of the policy.
func (r *Regretted) Chosen() string {
	text := fmt.Sprintf("%d placed", r.Placed)
	if r.Unplaced > 0 {
		text += fmt.Sprintf(", %d not placed", r.Unplaced)
	}
	if len(r.Victims) > 0 {
		text += ", evicts " + some(r.Victims)
	}
	if len(r.Moved) > 0 {
		text += ", moves " + some(r.Moved)
	}
	if len(r.Victims)+len(r.Moved) == 0 {
		return text
	}
	return fmt.Sprintf("%s: %s cluster-hours", text, Number(r.LostWork))
}

// Better describes the best answer, or the bound if the search found none.
func (r *Regretted) Better() string {
	var parts []string
	switch {
	case r.Best != nil && r.Lower < r.LostWork:
		victims := "evicts nothing"
		if len(r.Best.Victims) > 0 {
			victims = "evicts " + some(r.Best.Victims)
		}
		parts = append(parts, fmt.Sprintf("%s for %s: %s cluster-hours", victims, some(slices.Sorted(maps.Keys(r.Best.Placed))), Number(r.Lower)))
	case r.Lower < r.LostWork:
		parts = append(parts, fmt.Sprintf("not known; at least %s cluster-hours", Number(r.Lower)))
	}
	if r.Missed {
		parts = append(parts, "one more could be placed")
	}
	if len(r.Relaxed) > 0 {
		parts = append(parts, "ignoring "+strings.Join(r.Relaxed, ", "))
	}
	return strings.Join(parts, "; ")
}

// some joins the first entries of a list.
func some(list []string) string {
	if len(list) > 6 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:6], ", "), len(list)-6)
	}
	return strings.Join(list, ", ")
}

// bounds writes the distance from the best possible.
func (t *text) bounds(d *Document, width int) {
	if len(d.Bounds) == 0 {
		return
	}
	t.line("")
	t.line("DISTANCE FROM THE BEST POSSIBLE")
	for i := range d.Bounds {
		b := &d.Bounds[i]
		t.line("  %s", b.String())
		if why := b.Unproven(); why != "" {
			t.line("    %s", why)
		}
		for k := range b.Decided[:min(len(b.Decided), MaxRegrets)] {
			r := &b.Decided[k]
			t.line("    %s", shorten(fmt.Sprintf("%s at %s: %s", r.Job, r.At, r.Chosen()), width-4))
			t.line("      %s", shorten("best: "+r.Better(), width-6))
		}
	}
}
