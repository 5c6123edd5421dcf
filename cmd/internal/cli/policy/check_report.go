package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// checkReport is the result of cede policy test.
type checkReport struct {
	Policy     string           `json:"policy"`
	Version    string           `json:"version"`
	Digest     string           `json:"digest"`
	Runs       int              `json:"runs"`
	Seed       uint64           `json:"seed"`
	Cases      []caseReport     `json:"cases,omitempty"`
	Properties []propertyReport `json:"properties,omitempty"`
	Usage      usageReport      `json:"usage"`
}

type caseReport struct {
	Name        string   `json:"name"`
	File        string   `json:"file"`
	OK          bool     `json:"ok"`
	Updated     bool     `json:"updated,omitempty"`
	Differences []string `json:"differences,omitempty"`
	Fault       bool     `json:"fault,omitempty"`
}

type propertyReport struct {
	Name     string `json:"name"`
	Doc      string `json:"doc"`
	OK       bool   `json:"ok"`
	Skipped  bool   `json:"skipped,omitempty"`
	Fault    bool   `json:"fault,omitempty"`
	Problem  string `json:"problem,omitempty"`
	Case     string `json:"case,omitempty"`
	Scenario string `json:"scenario,omitempty"` // path of the written file

	found *policytest.Case
}

// usageReport is the maximum resource use of calls, with its limits.
type usageReport struct {
	Calls       int    `json:"calls"`
	Fuel        uint64 `json:"fuel,omitempty"`
	FuelLimit   uint64 `json:"fuelLimit,omitempty"`
	Memory      int64  `json:"memory,omitempty"`
	MemoryLimit int64  `json:"memoryLimit,omitempty"`
}

// nameOfCase returns the name of a golden case.
func nameOfCase(file string) string { return strings.TrimSuffix(filepath.Base(file), ".txt") }

// fail records that the policy failed on the case.
func (c *caseReport) fail(err error) {
	c.Fault, c.Differences = true, []string{err.Error()}
}

func (r *checkReport) properties(findings []policytest.Finding, skip []string) {
	for _, p := range policytest.Properties() {
		one := propertyReport{Name: p.Name, Doc: p.Doc, OK: true}
		if slices.Contains(skip, p.Name) {
			one.OK, one.Skipped = false, true
		}
		for i := range findings {
			if f := &findings[i]; f.Property.Name == p.Name {
				one.OK, one.Fault = false, isFault(f.Err)
				one.Problem, one.Case, one.found = f.Err.Error(), policytest.Format(f.Case), f.Case
			}
		}
		r.Properties = append(r.Properties, one)
	}
}

func (r *checkReport) measure(u policies.Usage, limits policy.Limits) {
	r.Usage = usageReport{Calls: u.Calls, Fuel: u.Fuel, FuelLimit: u.Allowed, Memory: u.Memory}
	if u.Memory > 0 {
		r.Usage.MemoryLimit = limits.Memory
	}
}

// verdict returns the error for the findings, or nil.
func (r *checkReport) verdict(name string) error {
	failed, fault := 0, false
	for _, c := range r.Cases {
		if !c.OK {
			failed, fault = failed+1, fault || c.Fault
		}
	}
	for _, p := range r.Properties {
		if !p.OK && !p.Skipped {
			failed, fault = failed+1, fault || p.Fault
		}
	}
	what := fmt.Sprintf("%d checks of %s failed", failed, name)
	if failed == 1 {
		what = fmt.Sprintf("a check of %s failed", name)
	}
	switch {
	case failed == 0:
		return nil
	case fault:
		return &cmdutil.Error{Exit: cmdutil.ExitPolicy, Code: cmdutil.CodePolicy, Message: what + ": the policy failed", Hint: "hosts reject such results and evict nothing"}
	}
	return &cmdutil.Error{Exit: cmdutil.ExitCheck, Code: cmdutil.CodeCheck, Message: what, Hint: "correct the policy; --update accepts changed golden cases, --skip omits properties"}
}

func (r *checkReport) document() cmdutil.Document {
	return cmdutil.Document{Data: r, Names: []string{r.Policy}, Page: r.page}
}

func (r *checkReport) page(p cmdutil.Page) {
	if !p.NoHeaders {
		p.Printf("%s, version %s\n", r.Policy, model.ShortVersion(r.Version))
	}
	if len(r.Cases) > 0 {
		p.Title("Cases")
		p.Table(r.caseTable())
	}
	if len(r.Properties) > 0 {
		p.Title(fmt.Sprintf("Properties, each on %s cases from seed %d", cmdutil.Thousands(r.Runs), r.Seed))
		p.Table(r.propertyTable())
		r.counterexamples(p)
	}
	if u := r.Usage; u.Fuel > 0 && !p.NoHeaders {
		p.Printf("\nMost used by one of %s calls: %s of %s fuel (%s), and %s of %s memory per instance.\n", cmdutil.Thousands(u.Calls),
			cmdutil.Thousands(int(u.Fuel)), cmdutil.Thousands(int(u.FuelLimit)), percent(u.Fuel, u.FuelLimit), cmdutil.FormatBytes(u.Memory), cmdutil.FormatBytes(u.MemoryLimit))
	}
}

func percent(part, whole uint64) string {
	share := 100 * float64(part) / float64(whole)
	if share < 1 {
		return "under 1 %"
	}
	return fmt.Sprintf("%.0f %%", share)
}

func (r *checkReport) caseTable() *term.Table {
	t := &term.Table{Columns: []term.Column{{Title: "CASE"}, {Title: "RESULT"}, {Title: "DIFFERENCE"}}}
	for _, c := range r.Cases {
		result := "ok"
		switch {
		case c.Updated:
			result = "updated"
		case c.Fault:
			result = "FAULT"
		case !c.OK:
			result = "FAILED"
		}
		if len(c.Differences) == 0 {
			t.Row(c.Name, result, "")
		}
		for i, d := range c.Differences {
			if i > 0 {
				t.Row("", "", d)
				continue
			}
			t.Row(c.Name, result, d)
		}
	}
	return t
}

func (r *checkReport) propertyTable() *term.Table {
	t := &term.Table{Columns: []term.Column{{Title: "PROPERTY"}, {Title: "RESULT"}, {Title: "WHAT"}}}
	for _, one := range r.Properties {
		switch {
		case one.Skipped:
			t.Row(one.Name, "skipped", one.Doc)
		case one.OK:
			t.Row(one.Name, "ok", one.Doc)
		case one.Fault:
			t.Row(one.Name, "FAULT", one.Problem)
		default:
			t.Row(one.Name, "FAILED", one.Problem)
		}
	}
	return t
}

// counterexamples prints the cases that violate properties.
func (r *checkReport) counterexamples(p cmdutil.Page) {
	for _, one := range r.Properties {
		if one.Case == "" {
			continue
		}
		p.Title(one.Name + " fails on")
		for line := range strings.Lines(one.Case) {
			p.Printf("  %s", line)
		}
		if one.Scenario != "" && !p.NoHeaders {
			p.Printf("  written to %s; cede sim run plays it\n", one.Scenario)
		}
	}
}
