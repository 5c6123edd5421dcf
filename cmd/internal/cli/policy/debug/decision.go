package debug

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/certificate"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// neverEligible is the gap of a candidate that may not be evicted.
const neverEligible = sdk.NeverEligible

// A decision holds the data that the command shows.
type decision struct {
	Source string `json:"source"`
	Kind   string `json:"kind"` // golden case, recording or certificate
	Number int    `json:"number,omitempty"`
	At     string `json:"at,omitempty"`
	Job    string `json:"job,omitempty"`
	Calls  []call `json:"calls"`
	// Result is the decision in words, or in the form of golden cases.
	Result []string `json:"result,omitempty"`
	// RunnerUp is the second node in the order of the policy.
	RunnerUp string `json:"runnerUp,omitempty"`
	// Differences are those from a recorded decision.
	Differences []string `json:"differences,omitempty"`
	Output      []string `json:"output,omitempty"` // of the policy
	Fault       string   `json:"fault,omitempty"`

	fault error
}

// A call is one call of a hook.
type call struct {
	Policy     string      `json:"policy"`
	Hook       string      `json:"hook"`
	Preemptor  string      `json:"preemptor"`
	Candidates []candidate `json:"candidates,omitempty"`
	Nodes      []node      `json:"nodes,omitempty"` // best first, if the policy scored them
	Recheck    string      `json:"recheck,omitempty"`
	Failed     bool        `json:"failed,omitempty"` // it has no answer
}

// A candidate is a row of the input with its answer.
type candidate struct {
	Node      string            `json:"node"`
	Name      string            `json:"name"`
	Priority  int32             `json:"priority"`
	Input     map[string]string `json:"input"` // other columns
	Gap       *int32            `json:"gap,omitempty"`
	Eligible  *bool             `json:"eligible,omitempty"`
	Tier      *int64            `json:"tier,omitempty"`
	Score     string            `json:"score,omitempty"`
	Picked    int               `json:"picked,omitempty"` // position among the picks of the node, from 1
	inputKeys []string
}

// A node is an option with its answer.
type node struct {
	Name  string            `json:"name"`
	Input map[string]string `json:"input"`
	Tiers *[4]int64         `json:"tiers,omitempty"`
	Score string            `json:"score,omitempty"`
	keys  []string
}

// add decodes a call. Nodes without a name in the input have that of known. A call that
// failed has no answer.
func (d *decision) add(c *certificate.Call, policy string, known *policytest.Case, failed bool) error {
	in, err := c.Decode()
	if err != nil && (!failed || in == nil) {
		return err
	}
	out := call{Policy: policy, Hook: c.Hook, Failed: failed}
	if in.Recheck != 0 {
		out.Recheck = time.Unix(0, in.Recheck).UTC().Format(time.RFC3339Nano)
	}
	if in.Op == abi.OpScoreOptions {
		out.Preemptor = preemptor(in.Options.Preemptor, in.Options.Dims)
		out.options(in, known)
		d.RunnerUp = ""
		if len(out.Nodes) > 1 && !out.Failed {
			d.RunnerUp = out.Nodes[1].Name
		}
	} else {
		out.Preemptor = preemptor(in.Candidates.Preemptor, in.Candidates.Dims)
		out.candidates(in)
	}
	d.Calls = append(d.Calls, out)
	return nil
}

func preemptor(p *sdk.Preemptor, dims []string) string {
	words := []string{fmt.Sprintf("priority %d", p.Priority)}
	for i, name := range dims {
		words = append(words, fmt.Sprintf("%s %s", name, plain(p.Ask[i])))
	}
	for _, device := range p.Devices {
		words = append(words, fmt.Sprintf("%d × %s", device.Count, device.ID))
	}
	if p.Job != "" {
		words = append([]string{p.Namespace + "/" + p.Job}, words...)
	}
	return strings.Join(append(words, fmt.Sprintf("gap %d", p.Delta)), ", ")
}

func plain(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.6f", x), "0"), ".")
}

// candidates sets the candidates of a call, by node, in the order of the input.
func (c *call) candidates(in *certificate.DecodedCall) {
	shown := policytest.CaseOf(in.Candidates)
	row := 0
	for i := range shown.Options {
		o := &shown.Options[i]
		n := node{Name: o.Name, Input: map[string]string{}}
		for k, dim := range in.Candidates.Dims {
			n.set(dim+" missing", plain(max(0, in.Candidates.Need[k][i])))
		}
		for k := range o.Rows {
			c.Candidates = append(c.Candidates, newCandidate(in, o, &o.Rows[k], i, row, c.Failed))
			row++
		}
		n.set("candidates", fmt.Sprint(len(o.Rows)))
		if in.Scores != nil && !c.Failed {
			n.Tiers = tiersOf(in.Scores, i)
		}
		c.Nodes = append(c.Nodes, n)
	}
}

func tiersOf(s *sdk.OptionScores, i int) *[4]int64 {
	var tiers [4]int64
	for k := range tiers {
		tiers[k] = s.Tiers[k][i]
	}
	return &tiers
}

func newCandidate(in *certificate.DecodedCall, o *policytest.Option, r *policytest.Row, option, row int, failed bool) candidate {
	c := candidate{Node: o.Name, Name: r.Name, Priority: r.Priority, Input: map[string]string{}}
	rows := &in.Candidates.Rows
	set := func(key, value string) { c.Input[key], c.inputKeys = value, append(c.inputKeys, key) }
	if len(rows.Use) > 0 {
		for d, name := range in.Candidates.Dims {
			set(name, plain(r.Use[d]))
		}
	}
	if len(rows.Start) > 0 {
		set("age", time.Duration(r.Age).String())
	}
	if len(rows.LostWork) > 0 {
		set("lost work", time.Duration(r.LostWork).String())
	}
	if r.Namespace != "" {
		set("namespace", r.Namespace)
	}
	if r.MustLeave != 0 {
		set("must leave", "yes")
	}
	if r.Evictions > 0 || r.EvictionLimit > 0 {
		set("evictions", fmt.Sprintf("%d of %d", r.Evictions, r.EvictionLimit))
	}
	if len(r.Budgets) > 0 {
		set("budgets", strings.Join(r.Budgets, ", "))
	}
	if failed {
		return c
	}
	if in.Gaps != nil {
		gap := in.Gaps[row]
		difference := int64(in.Candidates.Preemptor.Priority) - int64(r.Priority)
		eligible := gap != neverEligible && difference > 0 && difference >= int64(gap)
		c.Gap, c.Eligible = &gap, &eligible
	}
	if in.Victims != nil {
		tier := in.Victims.Tier[row]
		c.Tier, c.Score = &tier, score(in.Victims.Score[row])
	}
	if option < len(in.Picks) {
		c.Picked = 1 + slices.Index(in.Picks[option], int32(row))
	}
	return c
}

func score(x float64) string {
	if math.IsInf(x, 1) {
		return "never"
	}
	return plain(x)
}

func (n *node) set(key, value string) { n.Input[key], n.keys = value, append(n.keys, key) }

// options sets the nodes of a call of ScoreOptions, best first.
func (c *call) options(in *certificate.DecodedCall, known *policytest.Case) {
	o := in.Options
	order := make([]int, o.Len())
	for i := range order {
		order[i] = i
	}
	if !c.Failed {
		slices.SortStableFunc(order, func(a, b int) int { return policytest.CompareOptions(in.Scores, a, b) })
	}
	for _, i := range order {
		n := node{Name: fmt.Sprintf("option %d", i+1), Input: map[string]string{}}
		switch {
		case len(o.Place) > i:
			n.Name = o.Strings[o.Place[i]]
		case known != nil && len(known.Options) == o.Len():
			n.Name = known.Options[i].Name
		}
		if len(o.VictimCount) > i {
			n.set("victims", fmt.Sprint(o.VictimCount[i]))
		}
		if len(o.HighestPriority) > i {
			n.set("highest priority", fmt.Sprint(o.HighestPriority[i]))
			n.set("priority sum", fmt.Sprint(o.PrioritySum[i]))
		}
		if len(o.LostWork) > i {
			n.set("lost work", time.Duration(o.LostWork[i]).String())
		}
		if len(o.BudgetViolations) > i && o.BudgetViolations[i] > 0 {
			n.set("budget violations", fmt.Sprint(o.BudgetViolations[i]))
		}
		if len(o.FitAfter) > i {
			n.set("fit", plain(o.FitAfter[i]))
		}
		if !c.Failed {
			n.Tiers, n.Score = tiersOf(in.Scores, i), score(in.Scores.Score[i])
		}
		c.Nodes = append(c.Nodes, n)
	}
}

// restrict removes other nodes and candidates from all calls.
func (d *decision) restrict(nodeName, candidateName string) error {
	if d.fault != nil {
		d.Fault = d.fault.Error()
	}
	if nodeName == "" && candidateName == "" {
		return nil
	}
	var nodes, candidates []string
	found := false
	for i := range d.Calls {
		c := &d.Calls[i]
		for _, n := range c.Nodes {
			nodes = append(nodes, n.Name)
		}
		for _, x := range c.Candidates {
			candidates = append(candidates, x.Name)
		}
		c.Nodes = slices.DeleteFunc(c.Nodes, func(n node) bool { return nodeName != "" && n.Name != nodeName })
		c.Candidates = slices.DeleteFunc(c.Candidates, func(x candidate) bool {
			return nodeName != "" && x.Node != nodeName || candidateName != "" && x.Name != candidateName
		})
		found = found || len(c.Candidates) > 0 || candidateName == "" && len(c.Nodes) > 0
	}
	if found {
		return nil
	}
	unique := func(list []string) string {
		slices.Sort(list)
		list = slices.Compact(list)
		if len(list) > 12 {
			list = append(list[:12], "…")
		}
		return cmdutil.JoinOrNone(list)
	}
	if nodeName != "" && !slices.Contains(nodes, nodeName) {
		return cmdutil.Usagef("nodes: "+unique(nodes), "unknown node %q in --node", nodeName)
	}
	return cmdutil.Usagef("candidates: "+unique(candidates), "unknown candidate %q in --candidate", cmp.Or(candidateName, nodeName))
}
