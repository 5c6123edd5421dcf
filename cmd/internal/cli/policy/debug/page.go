package debug

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
)

// page prints a decision.
func (d *decision) page(p cmdutil.Page) {
	if !p.NoHeaders {
		p.Printf("%s\n", d.title())
	}
	for i := range d.Calls {
		c := &d.Calls[i]
		p.Title(fmt.Sprintf("Call %d of %d: %s of %s", i+1, len(d.Calls), c.Hook, c.Policy))
		if !p.NoHeaders {
			p.Printf("preemptor: %s\n", c.Preemptor)
		}
		if c.Failed {
			p.Printf("the call failed without an answer\n")
		}
		if len(c.Nodes) > 0 {
			p.Table(c.nodeTable())
		}
		if len(c.Candidates) > 0 {
			if len(c.Nodes) > 0 {
				p.Printf("\n")
			}
			p.Table(candidateTable(c.Candidates))
		}
		if c.Recheck != "" {
			p.Printf("the policy requests another evaluation at %s\n", c.Recheck)
		}
	}
	d.ending(p)
}

// ending prints what follows the calls.
func (d *decision) ending(p cmdutil.Page) {
	for _, part := range []struct {
		title string
		lines []string
	}{{"Decision", d.Result}, {"Differences", d.Differences}, {"Output of the policy", d.Output}} {
		if len(part.lines) == 0 {
			continue
		}
		p.Title(part.title)
		for _, line := range part.lines {
			p.Printf("%s\n", line)
		}
		if part.title == "Decision" && d.RunnerUp != "" {
			p.Printf("runner-up: %s\n", d.RunnerUp)
		}
	}
	if d.Fault != "" {
		p.Title("Fault")
		p.Printf("%s\n", d.Fault)
	}
}

func (d *decision) title() string {
	text := d.Source + ", " + d.Kind
	if d.Number > 0 {
		text += fmt.Sprintf(", decision %d at %s for %s", d.Number, d.At, d.Job)
	}
	return text
}

// union returns all keys of some lists, in order of first appearance.
func union(lists ...[]string) (keys []string) {
	for _, list := range lists {
		for _, key := range list {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

func (c *call) nodeTable() *term.Table {
	var lists [][]string
	tiers, scores := false, false
	for i := range c.Nodes {
		lists = append(lists, c.Nodes[i].keys)
		tiers, scores = tiers || c.Nodes[i].Tiers != nil, scores || c.Nodes[i].Score != ""
	}
	keys := union(lists...)
	t := &term.Table{Columns: []term.Column{{Title: "NODE"}}}
	for _, key := range keys {
		t.Columns = append(t.Columns, term.Column{Title: strings.ToUpper(key), Right: true})
	}
	if tiers {
		t.Columns = append(t.Columns, term.Column{Title: "TIERS"})
	}
	if scores {
		t.Columns = append(t.Columns, term.Column{Title: "SCORE", Right: true})
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		row := []string{n.Name}
		for _, key := range keys {
			row = append(row, n.Input[key])
		}
		if tiers {
			row = append(row, strings.Trim(fmt.Sprint(*n.Tiers), "[]"))
		}
		if scores {
			row = append(row, n.Score)
		}
		t.Row(row...)
	}
	return t
}

func candidateTable(list []candidate) *term.Table {
	var lists [][]string
	var answers [4]bool // gap, tier, score, picked
	for i := range list {
		x := &list[i]
		lists = append(lists, x.inputKeys)
		for k, shown := range []bool{x.Gap != nil, x.Tier != nil, x.Score != "", x.Picked > 0} {
			answers[k] = answers[k] || shown
		}
	}
	keys := union(lists...)
	t := &term.Table{Columns: []term.Column{{Title: "NODE"}, {Title: "CANDIDATE"}, {Title: "PRIORITY", Right: true}}}
	for _, key := range keys {
		t.Columns = append(t.Columns, term.Column{Title: strings.ToUpper(key), Right: true})
	}
	for k, title := range []string{"GAP", "TIER", "SCORE", "PICKED"} {
		if answers[k] {
			t.Columns = append(t.Columns, term.Column{Title: title, Right: true})
		}
	}
	for i := range list {
		x := &list[i]
		row := []string{x.Node, x.Name, fmt.Sprint(x.Priority)}
		for _, key := range keys {
			row = append(row, x.Input[key])
		}
		for k, cell := range x.answers() {
			if answers[k] {
				row = append(row, cell)
			}
		}
		t.Row(row...)
	}
	return t
}

// answers returns the cells of the answer: gap, tier, score and position among the picks.
func (x *candidate) answers() [4]string {
	var cells [4]string
	if x.Gap != nil {
		switch {
		case !*x.Eligible && *x.Gap == neverEligible:
			cells[0] = "never"
		case !*x.Eligible:
			cells[0] = fmt.Sprintf("%d (too close)", *x.Gap)
		default:
			cells[0] = fmt.Sprint(*x.Gap)
		}
	}
	if x.Tier != nil {
		cells[1] = fmt.Sprint(*x.Tier)
	}
	cells[2] = x.Score
	if x.Picked > 0 {
		cells[3] = fmt.Sprint(x.Picked)
	}
	return cells
}

// A position is a candidate of a call.
type position struct{ call, candidate int }

// walk shows one candidate after the other, as lines of the standard input request.
func (d *decision) walk(env *cmdutil.Env) error {
	var list []position
	for i := range d.Calls {
		for k := range d.Calls[i].Candidates {
			list = append(list, position{i, k})
		}
	}
	if len(list) == 0 {
		return cmdutil.Usagef("remove --step", "no call has candidates")
	}
	w := bufio.NewWriter(env.Stdout)
	_, _ = fmt.Fprintf(w, "%s\n", d.title())
	lines := bufio.NewScanner(env.Stdin)
	for at := 0; ; {
		d.show(w, list, at)
		_, _ = fmt.Fprintf(w, "Enter next, p previous, n next node, c next call, q end: ")
		if w.Flush() != nil || !lines.Scan() {
			break
		}
		_, _ = fmt.Fprintf(w, "\n")
		next := at
		switch key := strings.TrimSpace(lines.Text()); key {
		case "":
			next++
		case "p":
			next = max(0, at-1)
		case "n":
			for next < len(list) && list[next].call == list[at].call && d.at(list[next]).Node == d.at(list[at]).Node {
				next++
			}
		case "c":
			for next < len(list) && list[next].call == list[at].call {
				next++
			}
		case "q":
			next = len(list)
		default:
			_, _ = fmt.Fprintf(w, "unknown key %q\n", key)
		}
		if at = next; at >= len(list) {
			break
		}
	}
	d.ending(cmdutil.Page{W: w})
	if err := w.Flush(); err != nil || d.fault == nil {
		return err
	}
	return policyFault(d.fault)
}

func (d *decision) at(p position) *candidate { return &d.Calls[p.call].Candidates[p.candidate] }

// show prints one candidate.
func (d *decision) show(w *bufio.Writer, list []position, at int) {
	c, x := &d.Calls[list[at].call], d.at(list[at])
	_, _ = fmt.Fprintf(w, "\ncall %d of %d, %s of %s; candidate %d of %d\n", list[at].call+1, len(d.Calls), c.Hook, c.Policy, list[at].candidate+1, len(c.Candidates))
	_, _ = fmt.Fprintf(w, "  %-12s %s on %s, priority %d\n", "candidate", x.Name, x.Node, x.Priority)
	for _, key := range x.inputKeys {
		_, _ = fmt.Fprintf(w, "  %-12s %s\n", key, x.Input[key])
	}
	cells := x.answers()
	for k, name := range []string{"gap", "tier", "score", "picked"} {
		if cells[k] != "" {
			_, _ = fmt.Fprintf(w, "  %-12s %s\n", name, cells[k])
		}
	}
	if x.Picked == 0 && slices.ContainsFunc(c.Candidates, func(o candidate) bool { return o.Picked > 0 }) {
		_, _ = fmt.Fprintf(w, "  %-12s no\n", "picked")
	}
}
