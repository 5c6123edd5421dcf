package tune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/report"
	"github.com/cede-scheduler/cede/core/sim/statistics"
	"github.com/cede-scheduler/cede/core/tune"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/rules"
)

// view is the result of cede policy tune.
type view struct {
	Policy    string     `json:"policy"` // as it is written on a command line
	Folder    string     `json:"folder"`
	Report    string     `json:"report"`
	Objective string     `json:"objective"`
	Claim     string     `json:"claim"`
	Better    bool       `json:"better"` // than Against, shown on held-out workloads
	Against   string     `json:"against"`
	Level     float64    `json:"level"` // of the intervals
	Terms     []termView `json:"terms"`
	Front     []string   `json:"front"`
	Plays     int        `json:"plays"`
	HeldOut   int        `json:"heldOut"` // workloads
	Cases     int        `json:"cases"`   // golden cases
}

// termView is a term of the objective on held-out workloads. A positive gain is an improvement;
// that of a constraint is the slack.
type termView struct {
	Term       string              `json:"term"`
	Constraint bool                `json:"constraint,omitempty"`
	Gain       statistics.Interval `json:"gain"`
	Pairs      int                 `json:"pairs"`
	Result     string              `json:"result"`

	interval string // as it is printed
}

// write writes the folder and the report of the selected policy. On an error it removes what
// it wrote, so that the search can be resumed with the same folder.
func (p *player) write(ctx context.Context, result *tune.Result) (*view, error) {
	if err := p.checkEmpty(); err != nil {
		return nil, err // another command has written it meanwhile
	}
	v, err := p.writeFolder(ctx, result)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	return v, nil
}

func (p *player) writeFolder(ctx context.Context, result *tune.Result) (*view, error) {
	v := &view{
		Policy: result.Winner.Policy, Folder: p.dir, Report: p.html, Objective: p.goal.String(), Claim: result.Claim.String(), Better: result.Claim.Holds(),
		Against: result.Claim.Against, Level: result.Claim.Level, Plays: result.Plays, HeldOut: len(p.heldOut),
	}
	for i, list := range [][]tune.Measure{result.Claim.Goals, result.Claim.Constraints} {
		for _, m := range list {
			t := termView{Term: m.Term, Constraint: i == 1, Pairs: m.Pairs, Result: resultOf(&m, i == 1), interval: intervalOf(&m)}
			if m.Known {
				t.Gain = m.Gain
			}
			v.Terms = append(v.Terms, t)
		}
	}
	for _, c := range result.Front {
		v.Front = append(v.Front, c.Policy)
	}
	if err := p.env.Files.MakeDir(p.dir); err != nil {
		return nil, cmdutil.WriteError(p.dir, err)
	}
	if err := p.writeManifest(v); err != nil {
		return nil, err
	}
	if err := p.build(ctx, p.dir); err != nil {
		return nil, err
	}
	var err error
	if v.Cases, err = p.writeGolden(ctx, p.dir, v.Policy, result.Start); err != nil {
		return nil, err
	}
	return v, p.writeReport(result, v)
}

// manifest is the part of a manifest that is written; cede policy build completes it.
type manifest struct {
	Name        string         `yaml:"name"`
	Description string         `yaml:"description"`
	Use         *bundle.Use    `yaml:"use,omitempty"`
	Rules       map[string]any `yaml:"rules,omitempty"`
}

// writeManifest writes policy.yaml: a composition of the policy with its settings, or the
// rules that were found.
func (p *player) writeManifest(v *view) error {
	m := manifest{Name: p.policyName(), Description: "Selected by cede policy tune for " + v.Objective + "."}
	if p.space == ofRules && strings.HasPrefix(v.Policy, rules.Prefix) {
		source, err := rules.ParseInline(m.Name, v.Policy)
		if err != nil {
			return err
		}
		m.Rules = source.Entries()
	} else {
		m.Use = p.composed(v.Policy)
	}
	return p.env.Write(filepath.Join(p.dir, bundle.ManifestFile), func(w io.Writer) error {
		e := yaml.NewEncoder(w)
		e.SetIndent(2)
		if err := e.Encode(m); err != nil {
			return err
		}
		return e.Close()
	})
}

// composed returns a composition of one policy: each of its hooks is used.
func (p *player) composed(reference string) *bundle.Use {
	spec, err := builtin.Parse(reference)
	if err == nil && !slices.Contains(builtin.Names(), spec.Use) && !filepath.IsAbs(spec.Use) {
		from, err1 := filepath.Abs(p.dir)
		to, err2 := filepath.Abs(spec.Use)
		if err1 == nil && err2 == nil {
			if relative, err := filepath.Rel(from, to); err == nil {
				reference = filepath.ToSlash(relative) + strings.TrimPrefix(reference, spec.Use)
			}
		}
	}
	use := &bundle.Use{}
	for _, h := range []struct {
		hooks policy.Hooks
		part  *bundle.Parts
	}{
		{policy.HookDelta, &use.Eligible},
		{policy.HookScoreVictims | policy.HookSelectVictims, &use.Order},
		{policy.HookScoreOptions, &use.Option},
		{policy.HookPreemptBindings, &use.Bindings},
	} {
		if p.hooks&h.hooks != 0 {
			*h.part = bundle.Parts{reference}
		}
	}
	return use
}

// writeReport writes the page.
func (p *player) writeReport(result *tune.Result, v *view) error {
	shown := policyflags.DisplayNames(result.Compared)
	var list []compare.Run
	versions := map[string]string{}
	several := map[string]bool{}
	for _, w := range p.heldOut {
		several[w.Name] = several[w.Name] || w.draw > p.draws+1
	}
	first := map[string]bool{}
	for _, name := range result.Compared {
		for i, w := range p.heldOut {
			run := p.results[tune.Play{Policy: name, Workload: i, HeldOut: true}]
			r := compare.Run{Scenario: w.Name, Policy: shown[name], Seed: run.Seed, Metrics: run.Metrics, Series: run.Series}
			if several[w.Name] && w.ties.Seed == 0 {
				r.Draw = w.draw - p.draws
			}
			if key := name + "\x00" + w.Name; !first[key] {
				first[key], r.Decisions = true, run.Decisions
			}
			versions[shown[name]] = run.Shown
			list = append(list, r)
		}
	}
	d := compare.New(list)
	d.Provenance = compare.Provenance{Command: cmdutil.RepeatableCommand(p.env.Args), Program: p.env.Build.Version, Versions: versions}
	before := report.Preface{
		Title: "cede policy tune: " + p.policy + " " + v.Claim, SummaryTitle: "All metrics on the " + cmdutil.Count(len(p.heldOut), "held-out workload", "held-out workloads"),
		Lead: p.lead(result, v), Tables: []report.Table{claimTable(result.Claim), candidateTable(p.goal, result), roundTable(result)},
	}
	return p.env.Write(p.html, func(w io.Writer) error { return report.WriteAfter(w, before, "cede policy tune", d) })
}

// lead returns the paragraphs at the beginning of the page.
func (p *player) lead(result *tune.Result, v *view) []string {
	list := []string{
		fmt.Sprintf("The selected policy, %s, is %s.", v.Policy, v.Claim),
		fmt.Sprintf("Objective: %s. The search compared %s on %s in %s plays. The comparison below is with the best baseline of the race, "+
			"on %s that no candidate had played before.", v.Objective, cmdutil.Count(len(result.Candidates), "candidate", "candidates"),
			cmdutil.Count(len(p.race), "workload", "workloads"), cmdutil.Thousands(v.Plays), cmdutil.Count(len(p.heldOut), "workload", "workloads")),
	}
	if names := p.scenarios(); len(names) > 0 {
		list = append(list, "Workloads of "+strings.Join(names, ", ")+" differ in tie-breaks only: the intervals do not cover other workloads.")
	}
	return list
}

func number(x float64) string {
	if x > 0 {
		return "+" + compare.Number(x)
	}
	return compare.Number(x)
}

func intervalOf(m *tune.Measure) string {
	if !m.Known {
		return "too few pairs"
	}
	return number(m.Gain.Low) + " to " + number(m.Gain.High)
}

func resultOf(m *tune.Measure, constraint bool) string {
	switch {
	case m.Better() && constraint:
		return "holds"
	case m.Better():
		return "better"
	case m.Worse() && constraint:
		return "violated by " + compare.Number(-m.Gain.Median)
	case m.Worse():
		return "worse"
	case !m.Known && constraint:
		return "not judged"
	case constraint:
		return "no violation is shown"
	}
	return "no difference is shown"
}

func claimTable(c *tune.Claim) report.Table {
	t := report.Table{
		Title: "The selected policy against " + c.Against,
		Note: fmt.Sprintf("Medians of paired differences on held-out workloads, with exact intervals of %g %% confidence. A positive gain is an improvement; "+
			"a negative slack of a constraint is a violation.", 100*c.Level),
		Header: []string{"Term", "Gain or slack", "Interval", "Workloads", "Result"},
	}
	for i, list := range [][]tune.Measure{c.Goals, c.Constraints} {
		for k := range list {
			m := &list[k]
			t.Rows = append(t.Rows, []string{m.Term, number(m.Gain.Median), intervalOf(m), fmt.Sprint(m.Pairs), resultOf(m, i == 1)})
		}
	}
	return t
}

// maxListed is the maximum number of candidates on the page.
const maxListed = 40

func candidateTable(o *tune.Objective, result *tune.Result) report.Table {
	t := report.Table{
		Title: "Candidates", Header: []string{"Policy", "Workloads", "", "Front"},
		Note: "Best first. Gains are medians of paired differences from the policy before the search. They selected the policy, so that they are partly luck. " +
			"A member of the front is beaten by no other candidate in all metrics of the objective.",
	}
	metrics := o.Metrics()
	for _, g := range metrics {
		t.Header = append(t.Header, "gain of "+g.Metric)
	}
	for _, c := range result.Candidates[:min(len(result.Candidates), maxListed)] {
		row := []string{c.Policy, fmt.Sprint(c.Workloads), "", ""}
		if c.Lost {
			row[2] = "eliminated"
		}
		if c.Front {
			row[3] = "yes"
		}
		for _, g := range metrics {
			row = append(row, number(c.Gains[g.Metric]))
		}
		t.Rows = append(t.Rows, row)
	}
	if n := len(result.Candidates) - maxListed; n > 0 {
		t.Note += fmt.Sprintf(" %d more are not listed.", n)
	}
	return t
}

func roundTable(result *tune.Result) report.Table {
	t := report.Table{Title: "Rounds", Header: []string{"Iteration", "Workloads", "Candidates", "Eliminated", "Best"}}
	for _, r := range result.Rounds {
		iteration := fmt.Sprint(r.Iteration)
		if r.Iteration == 0 {
			iteration = "last"
		}
		t.Rows = append(t.Rows, []string{iteration, fmt.Sprint(r.Workloads), fmt.Sprint(r.Candidates), fmt.Sprint(r.Eliminated), r.Best})
	}
	return t
}

// page prints the result as text.
func (v *view) page(p cmdutil.Page) {
	if !p.NoHeaders {
		p.Printf("%s is %s\n", v.Policy, v.Claim)
		p.Printf("%s, %g %% intervals of %s\n\n", v.Objective, 100*v.Level, cmdutil.Count(v.HeldOut, "held-out workload", "held-out workloads"))
	}
	t := cmdutil.NewTable("TERM", "GAIN OR SLACK", "INTERVAL", "RESULT")
	for _, x := range v.Terms {
		t.Row(x.Term, number(x.Gain.Median), x.interval, x.Result)
	}
	p.Table(t)
	if !p.NoHeaders {
		p.Printf("\n%s: policy with %s; report: %s; %s plays\n", v.Folder, cmdutil.Count(v.Cases, "golden case", "golden cases"), v.Report, cmdutil.Thousands(v.Plays))
	}
}
