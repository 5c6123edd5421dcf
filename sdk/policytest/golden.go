package policytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Golden is a case with the expected decision of a policy.
type Golden struct {
	text string // of the case, including comments
	Case *Case
	want []string // lines; nil if none is recorded yet
}

// divider separates a case from the expected decision.
const divider = "---"

// ParseGolden parses a golden case: a case in the form of Parse, a line ---, and the
// expected decision. The decision has a line for each node with its victims in the
// order of picking, and a line with the chosen node:
//
//	n1: small big
//	n2: no victims
//	n3: does not fit
//	choose n2
func ParseGolden(text string) (*Golden, error) {
	above, below, divided := strings.Cut(text, "\n"+divider+"\n")
	c, err := Parse(above)
	if err != nil {
		return nil, err
	}
	if len(c.Options) == 0 {
		return nil, errors.New("the case has no node")
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

// Check returns the differences between the decision of the policy and the expected
// one, one per line. It returns an error if the policy fails.
func (g *Golden) Check(s *Subject) (differences []string, err error) {
	got, err := g.decide(s)
	if err != nil {
		return nil, err
	}
	if g.want == nil {
		return []string{"the case has no expected decision; --update records the current one"}, nil
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

// Update returns the text of the case with the current decision of the policy.
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

// Lines returns a decision in the form of golden cases.
func (d *Decision) Lines(c *Case) []string {
	var lines []string
	for i := range c.Options {
		victims := strings.Join(c.Names(i, d.Victims[i]), " ")
		switch {
		case d.Victims[i] == nil:
			victims = "does not fit"
		case victims == "":
			victims = "no victims"
		}
		lines = append(lines, c.Options[i].Name+": "+victims)
	}
	if d.Chosen >= 0 {
		lines = append(lines, "choose "+c.Options[d.Chosen].Name)
	}
	return slices.Clip(lines)
}
