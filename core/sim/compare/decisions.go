package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Decision is one placement of a run, or one assignment of a binding to clusters. Those
// without victims are included: they show that a policy found free capacity where another
// one evicted.
type Decision struct {
	At         int64 // nanoseconds since the scenario's start
	Preemptor  string
	Job, Group string   // of a binding: its ID, and empty
	IsBinding  bool     `json:",omitempty"`
	Observed   bool     `json:",omitempty"` // it was recorded and not carried out
	Node       string   // of a binding: the clusters with the numbers of replicas
	Victims    []string // ascending
	Score      float64
	Cost       Cost
	Chosen     string // why this node was chosen; "" if nothing was compared
}

// A Cost holds the common values of the victims of a decision, in the units of policies.
type Cost struct {
	HighestPriority  int32 `json:"highestPriority"`
	LostWork         int64 `json:"lostWorkSeconds"`
	BudgetViolations int   `json:"budgetViolations"`
}

// MaxDivergences limits the differences reported per scenario. Later differences are
// mostly consequences of the first ones.
const MaxDivergences = 20

// A Divergence is a placement that the policies decided differently.
type Divergence struct {
	Scenario  string   `json:"scenario"`
	Seed      uint64   `json:"seed"`
	Preemptor string   `json:"preemptor"`
	Job       string   `json:"job"`
	Group     string   `json:"group"`
	Choices   []Choice `json:"choices"` // in the order of the policies
	Reason    string   `json:"reason"`
}

// A Choice is the decision of one policy. If the policy never placed the preemptor,
// Placed is false.
type Choice struct {
	Policy    string
	Placed    bool
	At        int64
	IsBinding bool
	Observed  bool // it was recorded and not carried out
	Node      string
	Victims   []string
	Score     float64
	Cost      Cost
	Chosen    string // why this node was chosen; "" if nothing was compared
}

// MarshalJSON formats times as in results.
func (c Choice) MarshalJSON() ([]byte, error) {
	if !c.Placed {
		return json.Marshal(struct {
			Policy string `json:"policy"`
			Placed bool   `json:"placed"`
		}{c.Policy, false})
	}
	return json.Marshal(struct {
		Policy   string   `json:"policy"`
		Placed   bool     `json:"placed"`
		At       string   `json:"at"`
		Node     string   `json:"node"`
		Victims  []string `json:"victims"`
		Score    float64  `json:"score"`
		Cost     *Cost    `json:"cost,omitempty"`
		Chosen   string   `json:"chosen,omitempty"`
		Observed bool     `json:"observed,omitempty"`
	}{c.Policy, !c.Observed, time.Duration(c.At).String(), c.Node, append([]string{}, c.Victims...), c.Score, c.cost(), c.Chosen, c.Observed})
}

// divergences returns the differing decisions of the first run of each scenario.
// Only preemptors that evict under at least one policy are compared.
func divergences(runs []Run, policies []string) []Divergence {
	var out []Divergence
	var scenarios []string
	for i := range runs {
		scenarios = appendNew(scenarios, runs[i].Scenario)
	}
	for _, scenario := range scenarios {
		var group []*Run // of the scenario's first run, in the order of policies
		for _, policy := range policies {
			for i := range runs {
				r := &runs[i]
				if r.Scenario == scenario && r.Policy == policy && (len(group) == 0 || r.Draw == group[0].Draw && r.Seed == group[0].Seed) {
					group = append(group, r)
					break
				}
			}
		}
		out = append(out, compareRuns(group)...)
	}
	return out
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// compareRuns returns the divergences between runs of one scenario and seed.
func compareRuns(runs []*Run) []Divergence {
	if len(runs) < 2 {
		return nil
	}
	// The earliest decision of every preemptor under any policy.
	var order []*Decision
	position := map[string]int{}
	made := make([]map[string]*Decision, len(runs))
	for i, r := range runs {
		made[i] = make(map[string]*Decision, len(r.Decisions))
		for k := range r.Decisions {
			d := &r.Decisions[k]
			if made[i][d.Preemptor] != nil {
				continue
			}
			made[i][d.Preemptor] = d
			if at, seen := position[d.Preemptor]; !seen {
				position[d.Preemptor] = len(order)
				order = append(order, d)
			} else if d.At < order[at].At {
				order[at] = d
			}
		}
	}
	order = slices.DeleteFunc(order, func(d *Decision) bool { return agreed(made, d.Preemptor) })
	slices.SortStableFunc(order, func(a, b *Decision) int { return cmp.Compare(a.At, b.At) })
	var out []Divergence
	for _, d := range order[:min(len(order), MaxDivergences)] {
		v := Divergence{
			Scenario: runs[0].Scenario, Seed: runs[0].Seed, Preemptor: d.Preemptor, Job: d.Job, Group: d.Group,
		}
		for i, r := range runs {
			v.Choices = append(v.Choices, newChoice(r.Policy, made[i][d.Preemptor]))
		}
		v.Reason = v.reason()
		out = append(out, v)
	}
	return out
}

// agreed reports whether every policy evicted the same victims on the same node, or
// no policy evicted any. Times are ignored: after the first difference all of them
// differ.
func agreed(made []map[string]*Decision, preemptor string) bool {
	base, evicts := made[0][preemptor], false
	same := true
	for _, m := range made {
		d := m[preemptor]
		evicts = evicts || d != nil && len(d.Victims) > 0
		same = same && base != nil && d != nil && d.Node == base.Node && slices.Equal(d.Victims, base.Victims)
	}
	return same || !evicts
}

func newChoice(policy string, d *Decision) Choice {
	if d == nil {
		return Choice{Policy: policy}
	}
	return Choice{policy, true, d.At, d.IsBinding, d.Observed, d.Node, d.Victims, d.Score, d.Cost, d.Chosen}
}

// reason describes how the choices differ from that of the first policy.
func (v *Divergence) reason() string {
	base := &v.Choices[0]
	var parts []string
	for i := range v.Choices[1:] {
		if c := &v.Choices[i+1]; c.Placed != base.Placed || c.Node != base.Node || !slices.Equal(c.Victims, base.Victims) {
			parts = append(parts, c.describeAgainst(base))
		}
	}
	return strings.Join(parts, "; ")
}

// describeAgainst describes how a choice differs from that of the first policy.
func (c *Choice) describeAgainst(base *Choice) string {
	switch {
	case !c.Placed:
		return c.Policy + base.never()
	case !base.Placed:
		return fmt.Sprintf("%s%s, %s %s", base.Policy, c.never(), c.Policy, c.action())
	case c.Node == base.Node && len(c.Victims) > 0 && len(base.Victims) > 0:
		return c.sameLocation() + c.victimChange(base) + c.timeDifference(base) + c.costDifference(base)
	}
	return fmt.Sprintf("%s %s, %s %s%s%s", base.Policy, base.action(), c.Policy, c.action(), c.timeDifference(base), c.costDifference(base))
}

// never states that another policy has no decision like this one.
func (c *Choice) never() string {
	if c.Observed {
		return " finds no victims for it"
	}
	return " never places it"
}

func (c *Choice) sameLocation() string {
	if c.IsBinding {
		return "on the same clusters "
	}
	return "on the same node "
}

// victimChange describes how the victims differ on the same node.
func (c *Choice) victimChange(base *Choice) string {
	added, removed := difference(c.Victims, base.Victims), difference(base.Victims, c.Victims)
	switch {
	case added == "" && c.Observed:
		return c.Policy + " would not evict " + removed
	case added == "":
		return c.Policy + " does not evict " + removed
	case removed == "" && c.Observed:
		return c.Policy + " would also evict " + added
	case removed == "":
		return c.Policy + " also evicts " + added
	}
	return fmt.Sprintf("%s %s %s instead of %s", c.Policy, c.evicts(), added, removed)
}

func (c *Choice) action() string {
	if len(c.Victims) == 0 {
		return "places it on " + c.Node + " without evictions"
	}
	return fmt.Sprintf("%s %d on %s", c.evicts(), len(c.Victims), c.Node)
}

// evicts returns the verb of the decision.
func (c *Choice) evicts() string {
	if c.Observed {
		return "would evict"
	}
	return "evicts"
}

func (c *Choice) timeDifference(base *Choice) string {
	switch {
	case c.At > base.At:
		return ", " + time.Duration(c.At-base.At).String() + " later"
	case c.At < base.At:
		return ", " + time.Duration(base.At-c.At).String() + " earlier"
	}
	return ""
}

// difference joins the victims that only the first list contains.
func difference(a, b []string) string {
	var only []string
	for _, v := range a {
		if !slices.Contains(b, v) {
			only = append(only, v)
		}
	}
	if len(only) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(only[:3], ", "), len(only)-3)
	}
	return strings.Join(only, ", ")
}
