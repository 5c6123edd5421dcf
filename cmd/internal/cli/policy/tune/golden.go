package tune

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// Bounds of golden cases: a person reads them.
const (
	maxGolden  = 6
	maxOptions = 4
	maxRows    = 24
)

// maxLogged bounds the decisions from which golden cases are selected.
const maxLogged = 2000

// shortened returns a copy of a case with its first options, or nil if nothing is to be
// decided.
func shortened(c *policytest.Case) *policytest.Case {
	own := *c
	own.Options = nil
	rows := 0
	for i := range c.Options {
		if o := &c.Options[i]; len(o.Rows) > 0 && rows+len(o.Rows) <= maxRows && len(own.Options) < maxOptions {
			rows += len(o.Rows)
			own.Options = append(own.Options, *o)
		}
	}
	if len(own.Options) == 0 || rows < 2 {
		return nil
	}
	// Decisions are about the text, because only the text is stored.
	parsed, err := policytest.Parse(policytest.Format(&own))
	if err != nil {
		return nil
	}
	return parsed
}

// decisions returns the decisions of a policy on the first workload of the race.
func (p *player) decisions(ctx context.Context, name string) (cases []*policytest.Case, err error) {
	w := p.race[0]
	err = simrun.PlayRecorded(ctx, w.ScenarioFile, name, w.ties, p.players.Resolver(w.File, w.Path, name), func(sim.Progress) {}, func(r *simrun.Recorded) bool {
		for i := range r.Calls {
			d, err := r.Calls[i].Decode()
			if err != nil || d.Candidates == nil || d.Op == abi.OpPreemptBindings {
				continue
			}
			if c := shortened(policytest.CaseOf(d.Candidates)); c != nil {
				cases = append(cases, c)
			}
			break // the first hook receives all candidates
		}
		return len(cases) < maxLogged
	})
	return cases, err
}

// writeGolden writes golden cases from the decisions of the written policy: first those that
// the policy before the search decides differently.
func (p *player) writeGolden(ctx context.Context, dir, from, before string) (int, error) {
	cases, err := p.decisions(ctx, from)
	if err != nil {
		return 0, err
	}
	var subjects [2]*policytest.Subject
	for i, use := range []string{dir, before} {
		opened, err := p.env.Policies.Open(ctx, policies.Request{PolicySpec: sim.PolicySpec{Name: use, Use: use}})
		if err != nil {
			return 0, err
		}
		trial := policies.NewTrial(opened)
		defer trial.Close()
		if subjects[i], err = trial.Subject(); err != nil {
			return 0, err
		}
	}
	var differ, same []string
	for _, c := range cases {
		if len(differ) == maxGolden {
			break
		}
		text, other, err := goldenText(c, subjects)
		switch {
		case err != nil:
			return 0, err
		case text == "" || slices.Contains(differ, text) || slices.Contains(same, text):
		case other:
			differ = append(differ, text)
		case len(same) < maxGolden/2:
			same = append(same, text)
		}
	}
	list := slices.Concat(differ, same)
	list = list[:min(len(list), maxGolden)]
	folder := filepath.Join(dir, "cases")
	if err := p.env.Files.MakeDir(folder); err != nil {
		return 0, err
	}
	for i, text := range list {
		err := p.env.Write(filepath.Join(folder, fmt.Sprintf("decision-%d.txt", i+1)), func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return len(list), nil
}

// goldenText returns a golden case, and whether the second subject decides differently. The
// text is empty if neither evicts.
func goldenText(c *policytest.Case, subjects [2]*policytest.Subject) (text string, differs bool, err error) {
	var lines [2]string
	evicts := false
	for i, s := range subjects {
		d, err := s.Decide(c)
		if err != nil {
			return "", false, err
		}
		evicts = evicts || d.Chosen >= 0 && len(d.Victims[d.Chosen]) > 0
		lines[i] = strings.Join(d.Lines(c), "\n")
	}
	if !evicts {
		return "", false, nil
	}
	head := "# A decision of the policy that cede policy tune selected."
	if differs = lines[0] != lines[1]; differs {
		head += " The policy before the search decides:\n#   " + strings.ReplaceAll(lines[1], "\n", "\n#   ")
	}
	return head + "\n" + policytest.Format(c) + "---\n" + lines[0] + "\n", differs, nil
}
