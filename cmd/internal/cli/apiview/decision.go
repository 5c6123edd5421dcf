package apiview

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// ExplainDecision explains a decision to evict: first in words, then with the numbers that
// they summarize.
func ExplainDecision(p cmdutil.Page, env *cmdutil.Env, d *client.Decision) {
	verb := "was evicted"
	if d.Observed {
		verb = "would have been evicted"
	}
	for i := range d.Victims {
		v := &d.Victims[i]
		name := "An allocation of another namespace"
		if v.AllocID != "" {
			name = fmt.Sprintf("%s of job %s", victimID(p, v), v.JobID)
		}
		p.Printf("%s (priority %d) %s %s, losing %s.\n", name, v.Priority, verb, env.TimeAndAge(d.Time), model.LostWorkText(v.LostWork))
	}
	if d.Observed {
		p.Printf("It would have made room for group %s of job %s (priority %d) on %s: %s.\n", d.Group, d.JobID, d.Priority, p.ID(d.NodeID), d.Reason)
	} else {
		p.Printf("It made room for %s of job %s (priority %d) on %s: %s.\n", p.ID(d.AllocID), d.JobID, d.Priority, cmp.Or(p.ID(d.NodeID), d.ClusterID), d.Reason)
	}
	if d.Why == nil {
		p.Printf("The server that decided recorded no reasons.\n")
		return
	}
	for _, text := range d.Why.Text {
		p.Printf("%s\n", text)
	}
	candidates(p, d.Why)
	options(p, d.Why)
	p.Properties("victims selected by", call(p, &d.Why.Selector), "node chosen by", call(p, &d.Why.Chooser), "evaluation", p.ID(d.EvalID), "index", fmt.Sprint(d.Index))
}

func victimID(p cmdutil.Page, v *client.DecisionVictim) string {
	if v.ClusterID != "" {
		return cmdutil.Count(v.Replicas, "replica", "replicas") + " on " + v.ClusterID
	}
	return p.ID(v.AllocID)
}

// candidates lists the candidates of the chosen option with their verdicts.
func candidates(p cmdutil.Page, w *client.DecisionWhy) {
	if len(w.Candidates) == 0 {
		return
	}
	p.Title("Candidates")
	scored := slices.ContainsFunc(w.Candidates, func(c client.DecisionCandidate) bool { return c.Score != nil })
	titles := []string{"ALLOC ID", "NAME", "PRIORITY>", "NODE", "VERDICT"}
	if scored {
		titles = append(titles, "TIER>", "SCORE>")
	}
	t := cmdutil.NewTable(titles...)
	for i := range w.Candidates {
		c := &w.Candidates[i]
		row := []string{p.ID(c.AllocID), c.Name, fmt.Sprint(c.Priority), p.ID(c.NodeID), c.Verdict}
		if scored {
			tier, score := "-", "-"
			if c.Score != nil {
				tier, score = strconv.FormatInt(*c.Tier, 10), compact(*c.Score)
			}
			row = append(row, tier, score)
		}
		t.Row(row...)
	}
	p.Table(t)
	if w.Omitted > 0 {
		p.Printf("  %s not listed\n", cmdutil.Count(w.Omitted, "candidate", "candidates"))
	}
}

// compact returns a number in at most nine characters, if it is not small. The JSON has all
// digits.
func compact(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e9 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strconv.FormatFloat(n, 'g', 4, 64)
}

// options lists the chosen option and the best of other nodes.
func options(p cmdutil.Page, w *client.DecisionWhy) {
	if len(w.Ranked) == 0 {
		return
	}
	p.Title("Options")
	columns := []string{"RANK>", "NODE", "VICTIMS>", "HIGHEST PRIORITY>", "TIERS", "SCORE>"}
	played := w.Ranked[0].Outlook != nil
	if played {
		columns = append(columns, "EXPECTED LOST WORK>", "CASCADE DEPTH>", "EXPECTED DELAY>")
	}
	t := cmdutil.NewTable(columns...)
	for i := range w.Ranked {
		r := &w.Ranked[i]
		tiers := make([]string, len(r.Tiers))
		for k, tier := range r.Tiers {
			tiers[k] = strconv.FormatInt(tier, 10)
		}
		row := []string{fmt.Sprint(i + 1), p.ID(r.NodeID), fmt.Sprint(r.Victims), fmt.Sprint(r.HighestPriority), strings.Join(tiers, " "), compact(r.Score)}
		if o := r.Outlook; played && o != nil {
			row = append(row, time.Duration(o.LostWork).String(), fmt.Sprint(o.CascadeDepth), time.Duration(o.Delay).String())
		}
		t.Row(row...)
	}
	p.Table(t)
}

// call describes a hook, the version that implements it, and what it reads.
func call(p cmdutil.Page, c *client.DecisionCall) string {
	if c.Hook == "" {
		return ""
	}
	text := c.Hook + " of " + p.ID(c.Version)
	if c.Part != "" {
		text += " (part " + c.Part + ")"
	}
	if len(c.Columns) > 0 {
		text += ", which reads " + strings.Join(c.Columns, ", ")
	}
	return text
}
