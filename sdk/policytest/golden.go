package policytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Golden is a case with what a policy must decide about it.
type Golden struct {
	text string // of the case, comments and all
	Case *Case
	want []string // lines; nil: not written yet
}

// divider stands between a case and what must be decided.
const divider = "---"

// ParseGolden reads a golden case: a case as Parse reads it, a line ---, and
// below it a line for each node with whom the policy evicts there, in the order
// of picking, and the node that it chooses:
//
//	n1: small big
//	n2: nobody
//	n3: does not fit
//	choose n2
func ParseGolden(text string) (*Golden, error) {
	above, below, divided := strings.Cut(text, "\n"+divider+"\n")
	c, err := Parse(above)
	if err != nil {
		return nil, err
	}
	if len(c.Options) == 0 {
		return nil, errors.New("there is no node in it")
	}
	g := &Golden{text: strings.TrimRight(above, "\n"), Case: c}
	if divided {
		g.want = []string{}
		for line := range strings.Lines(below) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				g.want = append(g.want, line)
			}
		}
	}
	return g, nil
}

// Check returns how the policy decides otherwise than it must, one difference a
// line; nothing when it does not. An error is the policy's fault.
func (g *Golden) Check(s *Subject) (differences []string, err error) {
	got, err := g.decide(s)
	if err != nil {
		return nil, err
	}
	if g.want == nil {
		return []string{"it does not say what must be decided; --update writes what is"}, nil
	}
	for i := range max(len(got), len(g.want)) {
		a, b := lineAt(g.want, i), lineAt(got, i)
		if a != b {
			differences = append(differences, fmt.Sprintf("want %q, got %q", a, b))
		}
	}
	return differences, nil
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return strings.Join(strings.Fields(lines[i]), " ")
	}
	return "nothing"
}

// Update is the text of the case with what the policy decides now.
func (g *Golden) Update(s *Subject) (string, error) {
	got, err := g.decide(s)
	if err != nil {
		return "", err
	}
	return g.text + "\n" + divider + "\n" + strings.Join(got, "\n") + "\n", nil
}

func (g *Golden) decide(s *Subject) ([]string, error) {
	d, err := s.Decide(g.Case)
	if err != nil {
		return nil, err
	}
	return d.Lines(g.Case), nil
}

// Lines writes a decision as golden cases have it.
func (d *Decision) Lines(c *Case) []string {
	var lines []string
	for i := range c.Options {
		who := strings.Join(c.Names(i, d.Victims[i]), " ")
		switch {
		case d.Victims[i] == nil:
			who = "does not fit"
		case who == "":
			who = "nobody"
		}
		lines = append(lines, c.Options[i].Name+": "+who)
	}
	if d.Chosen >= 0 {
		lines = append(lines, "choose "+c.Options[d.Chosen].Name)
	}
	return slices.Clip(lines)
}
