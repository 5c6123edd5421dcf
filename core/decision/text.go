package decision

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
)

// Exact formats a number with all of its digits.
func Exact(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// NodeReason describes the criterion that ranked the chosen node first, or returns "" if
// there was no other option. number formats tiers and scores.
func NodeReason(c *model.Choice, number func(float64) string) string {
	switch {
	case c == nil || c.Options <= 1 || len(c.Ranked) == 0:
		return ""
	case len(c.Ranked) == 1:
		return "every option is on this node"
	}
	first, second := &c.Ranked[0], &c.Ranked[1]
	for n := range first.Tiers {
		if x, y := first.Tiers[n], second.Tiers[n]; x != y {
			return fmt.Sprintf("tier %d of the policy is %s against %s of %s", n+1, number(float64(x)), number(float64(y)), second.NodeID)
		}
	}
	if first.Score != second.Score {
		return fmt.Sprintf("score %s against %s of %s", number(first.Score), number(second.Score), second.NodeID)
	}
	return "equal to " + second.NodeID + ": the order of nodes decided"
}

// choiceOfNode returns a sentence about the choice of the node.
func choiceOfNode(c *model.Choice, number func(float64) string) string {
	node, reason := "The node", NodeReason(c, number)
	if len(c.Ranked) > 0 {
		node = c.Ranked[0].NodeID
	}
	switch {
	case c.Search == model.SearchEachNode:
		return node + " was not chosen: the job runs on every node."
	case c.Search == model.SearchGang:
		return node + " was chosen because all instances of the job fit with it; they are placed together."
	case reason == "":
		return node + " was the only option."
	case c.Search == model.SearchBudgets:
		return fmt.Sprintf("%s was chosen of %d options that respect the strict disruption budgets: %s.", node, c.Options, reason)
	}
	return fmt.Sprintf("%s was chosen of %d options: %s.", node, c.Options, reason)
}

// choiceOfVictims returns a sentence about the verdicts.
func choiceOfVictims(w *events.Why) string {
	counts := map[string]int{}
	next := ""
	for i := range w.Candidates {
		c := &w.Candidates[i]
		counts[c.Verdict]++
		if c.Verdict == verdictNames[model.Unneeded] && next == "" {
			next = c.Name
		}
	}
	noun := "candidates"
	if len(w.Candidates)+w.Omitted == 1 {
		noun = "candidate"
	}
	text := fmt.Sprintf("Of the %d %s of the chosen option, with a priority of %d or less, the policy selected %d",
		len(w.Candidates)+w.Omitted, noun, w.Ceiling, counts[verdictNames[model.Evicted]]+counts[verdictNames[model.Reprieved]])
	if w.Selector.Part != "" {
		text += " by its part " + w.Selector.Part
	}
	var parts []string
	if n := counts[verdictNames[model.Reprieved]]; n > 0 {
		parts = append(parts, fmt.Sprintf("cede reprieved %d that the job did not need", n))
	}
	if n := counts[verdictNames[model.Shielded]]; n > 0 {
		parts = append(parts, fmt.Sprintf("a strict disruption budget or an all-or-none job protected %d", n))
	}
	if n := counts[verdictNames[model.Spared]]; n > 0 {
		parts = append(parts, fmt.Sprintf("it did not select %d", n))
	}
	if next != "" {
		parts = append(parts, next+" was next in line")
	}
	if len(parts) > 0 {
		text += "; " + strings.Join(parts, "; ")
	}
	return text + "."
}
