package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newPolicyStatusCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [N[@V]]",
		Short: "Show versions, checks and decisions of a policy",
		Long: `Show policy N (default: all) as the servers have it: its versions and how each server
checked them; the active version, with counters of the server that responds; the
shadow run, and how its decisions would differ; and the newest decisions. N@V shows
version V only.

Counters start at zero when a server starts.`,
		Example: `  cede policy status thrifty
  cede policy status thrifty@4f2a
  cede policy status thrifty -o json`,
		Args: cmdutil.PositionalArgs(0, 1, "one policy, N or N@V"),
	}
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		if len(args) == 0 {
			list, _, err := c.Client.Policies().List(ctx, nil)
			if err != nil {
				return cmdutil.Document{}, ofPolicy(err)
			}
			return listedPolicies(list), nil
		}
		name, version, versioned := strings.Cut(args[0], "@")
		if name == "" || versioned && version == "" {
			return cmdutil.Document{}, notPolicy(cmd, args[0])
		}
		st, _, err := c.Client.Policies().Status(ctx, name, nil)
		if err != nil {
			return cmdutil.Document{}, ofPolicy(err)
		}
		if versioned {
			if err := onlyVersion(st, version); err != nil {
				return cmdutil.Document{}, err
			}
		}
		return cmdutil.Document{Data: st, Names: versionNames(st), Page: func(p cmdutil.Page) {
			policyStatus{st, cmdutil.ReadServerNames(ctx, c.Client)}.page(p)
		}}, nil
	})
}

// onlyVersion removes every version, and every list entry of a version, except the
// one whose ID has the given prefix.
func onlyVersion(st *client.PolicyStatus, begins string) error {
	var found []*client.PolicyVersion
	for _, v := range st.Loaded {
		if v.ID == begins || strings.HasPrefix(strings.TrimPrefix(v.ID, "sha256:"), strings.TrimPrefix(begins, "sha256:")) {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		e := &cmdutil.Error{
			Exit: cmdutil.ExitNotFound, Code: client.CodeNotFound, Message: fmt.Sprintf("policy %q has no version %s", st.Name, begins),
			Hint: "`cede policy status " + st.Name + "` lists its versions",
		}
		if len(found) > 1 {
			e.Exit, e.Code, e.Message = cmdutil.ExitUsage, cmdutil.CodeInvalid, fmt.Sprintf("%d versions of policy %q begin with %s", len(found), st.Name, begins)
		}
		return e
	}
	id := found[0].ID
	other := func(other, _ string) bool { return other != id }
	st.Loaded = found
	maps.DeleteFunc(st.Tripped, other)
	maps.DeleteFunc(st.Refused, other)
	st.Decisions = slices.DeleteFunc(st.Decisions, func(d *client.PolicyDecision) bool { return d.Version != id })
	if st.ShadowRun != nil && st.ShadowRun.Version != id {
		st.ShadowRun = nil
	}
	if st.Here != nil && st.Here.Version != id && st.Active != id {
		st.Here = nil
	}
	return nil
}

// versionNames returns N@V for every loaded version.
func versionNames(st *client.PolicyStatus) []string {
	var names []string
	for _, v := range st.Loaded {
		names = append(names, policyflags.VersionName(st.Name, v.ID))
	}
	return names
}

// policyStatus prints the status of a policy as text.
type policyStatus struct {
	*client.PolicyStatus
	servers cmdutil.ServerNames
}

// isolation describes the sandbox of the active version, or those of the parts of a
// composition. Built-in policies are part of the server and have none.
func isolation(h *client.PolicyHere) string {
	if slices.Contains(strings.Split(h.Isolation, ", "), policy.NoIsolation) {
		return h.Isolation + " (none: a process can read all files of the server's user, because the kernel has no Landlock)"
	}
	return h.Isolation
}

func (s policyStatus) page(p cmdutil.Page) {
	t := &term.Table{NoHeaders: true, Columns: make([]term.Column, 2)}
	row := func(name, value string) {
		if value != "" {
			t.Row(name, value)
		}
	}
	row("policy", s.Name)
	row("active", s.active())
	if s.Until != 0 {
		row("on trial until", when(s.Until))
	}
	row("last trial", s.lastTrial())
	row("previous", model.ShortVersion(s.Previous))
	row("shadow", model.ShortVersion(s.Shadow))
	if h := s.Here; h != nil {
		row("calls here", fmt.Sprintf("%s, faults %s, fallbacks %s", cmdutil.Thousands(int(h.Calls)), cmdutil.Thousands(int(h.Faults)), cmdutil.Thousands(int(h.Fallbacks))))
		row("not called", h.Open)
		row("isolation", isolation(h))
	}
	for _, id := range slices.Sorted(maps.Keys(s.Tripped)) {
		row("out of service", model.ShortVersion(id)+": "+s.Tripped[id])
	}
	for _, id := range slices.Sorted(maps.Keys(s.Refused)) {
		row("refused here", model.ShortVersion(id)+": "+s.Refused[id])
	}
	_ = t.Write(p.W, p.Style) // p.W stores the error
	s.versions(p)
	s.checks(p)
	s.trial(p)
	s.shadowRun(p)
	s.shadowSums(p)
	s.decisions(p)
}

// active returns the version that is active under the policy's name.
func (s policyStatus) active() string {
	switch {
	case s.Active != "" && s.Here != nil && s.Here.Version != s.Active:
		return model.ShortVersion(s.Active) + " (not on the server that answers)"
	case s.Active != "":
		return model.ShortVersion(s.Active)
	case s.Builtin:
		return "built in"
	}
	return "none"
}

// trialEnds describes how trials end, by outcome.
var trialEnds = map[string]string{
	"expired":        "ended %s without confirmation and was rolled back",
	"confirmed":      "was confirmed %s",
	"rolled back":    "was rolled back %s, before its end",
	"replaced":       "ended %s: another version was activated",
	"out of service": "ended %s: the version was taken out of service",
	"unloaded":       "ended %s: the version was unloaded",
	"promoted":       "was promoted %s by its condition",
	"stopped":        "was stopped %s by its condition",
}

// lastTrial describes the end of the last trial. It returns "" if another one is in
// progress.
func (s policyStatus) lastTrial() string {
	if s.LastTrial == nil || s.Until != 0 {
		return ""
	}
	words, known := trialEnds[s.LastTrial.Ended]
	if !known {
		words = s.LastTrial.Ended + " %s" // outcome of another release
	}
	return fmt.Sprintf("%s: "+words, model.ShortVersion(s.LastTrial.Version), when(s.LastTrial.Time))
}

// roleActive is the role of the active version.
const roleActive = "active"

// role returns the role of a version: active, previous, shadow, out of service or none.
func (s policyStatus) role(id string) string {
	switch id {
	case s.Active:
		return roleActive
	case s.Previous:
		return "previous"
	case s.Shadow:
		return "shadow"
	}
	if s.Tripped[id] != "" {
		return "out of service"
	}
	return ""
}

func (s policyStatus) versions(p cmdutil.Page) {
	if len(s.Loaded) == 0 {
		return
	}
	p.Title("Versions")
	t := &term.Table{Columns: []term.Column{
		{Title: "VERSION"}, {Title: "ROLE"}, {Title: "KIND"}, {Title: "SIZE", Right: true}, {Title: "SIGNER"}, {Title: "LOADED"}, {Title: "CHECKED"},
	}}
	if p.Wide {
		t.Columns = append(t.Columns, term.Column{Title: "DIGEST"}, term.Column{Title: "CONFIGURATION"})
	}
	for _, v := range s.Loaded {
		bytes := ""
		if v.Size > 0 {
			bytes = cmdutil.FormatBytes(v.Size)
		}
		cells := []string{model.ShortVersion(v.ID), s.role(v.ID), v.Kind, bytes, v.Signer, when(v.Time), checks(v, s.servers)}
		if p.Wide {
			cells = append(cells, v.Digest, string(v.Config))
		}
		t.Row(cells...)
	}
	p.Table(t)
}

// checks summarizes the results of the servers for a version.
func checks(v *client.PolicyVersion, names cmdutil.ServerNames) string {
	ok, bad := 0, []string{}
	for _, id := range slices.Sorted(maps.Keys(v.Checks)) {
		if v.Checks[id].OK {
			ok++
		} else {
			bad = append(bad, names.Of(id))
		}
	}
	all := len(v.Checks) + len(uncheckedBy(v))
	switch {
	case len(bad) > 0:
		return "refused by " + strings.Join(bad, ", ")
	case ok == 0:
		return "not yet"
	case ok < all:
		return fmt.Sprintf("by %d of %d servers", ok, all)
	}
	return "by " + cmdutil.Count(ok, "server", "servers")
}

// checks lists each server's check of each version, or why it has not run yet.
func (s policyStatus) checks(p cmdutil.Page) {
	t := cmdutil.NewTable("VERSION", "SERVER", "CHECK", "TIME", "WHY")
	for _, v := range s.Loaded {
		servers := slices.AppendSeq(uncheckedBy(v), maps.Keys(v.Checks))
		slices.Sort(servers)
		for _, id := range servers {
			check, checked := v.Checks[id]
			name := s.servers.Of(id)
			if p.Wide {
				name = s.servers.Full(id)
			}
			switch {
			case v.Awaited[id] != "":
				t.Row(model.ShortVersion(v.ID), name, "none yet", "", v.Awaited[id])
			case checked && check.OK:
				t.Row(model.ShortVersion(v.ID), name, "ok", when(check.Time), "")
			case checked:
				t.Row(model.ShortVersion(v.ID), name, "refused", when(check.Time), check.Error)
			}
		}
	}
	if t.Len() > 0 {
		p.Title("Checks")
		p.Table(t)
	}
}

func (s policyStatus) shadowRun(p cmdutil.Page) {
	r := s.ShadowRun
	if r == nil {
		return
	}
	p.Title("Shadow run of " + model.ShortVersion(r.Version))
	if !p.NoHeaders {
		p.Printf("  since %s: %s decisions compared, %s agreed, %s differed, %s faults; %s not compared\n",
			when(r.Since), cmdutil.Thousands(int(r.Decisions)), cmdutil.Thousands(int(r.Agreed)), cmdutil.Thousands(int(r.Differed)),
			cmdutil.Thousands(int(r.Failed)), cmdutil.Thousands(int(r.Skipped)))
	}
	if len(r.Differences) == 0 {
		return
	}
	t := &term.Table{Columns: []term.Column{{Title: "TIME"}, {Title: "JOB"}, {Title: "ACTIVE EVICTS"}, {Title: "SHADOW EVICTS"}}}
	if p.Wide {
		t.Columns = append(t.Columns, term.Column{Title: "EVALUATION"}, term.Column{Title: "INDEX", Right: true})
	}
	for _, d := range shownOf(p, r.Differences) {
		cells := []string{when(d.Time), d.Namespace + "/" + d.JobID, evicts(p, &d.Active), evicts(p, &d.Shadow)}
		if p.Wide {
			cells = append(cells, d.EvalID, fmt.Sprint(d.Index))
		}
		t.Row(cells...)
	}
	p.Table(t)
	more(p, len(r.Differences))
}

// shadowSums prints the sums of the shadow run over all servers.
func (s policyStatus) shadowSums(p cmdutil.Page) {
	if s.Sums == nil {
		return
	}
	p.Title(fmt.Sprintf("Sums of %s over all servers", cmdutil.Count(int(s.Sums.Compared), "decision", "decisions")))
	t := &term.Table{Columns: []term.Column{{Title: "SUM"}, {Title: "ACTIVE", Right: true}, {Title: "SHADOW", Right: true}}}
	row := func(name string, value func(*client.PolicySums) string) {
		t.Row(name, value(&s.Sums.Active), value(&s.Sums.Shadow))
	}
	row("victims", func(s *client.PolicySums) string { return cmdutil.Thousands(int(s.Victims)) })
	row("lost work", func(s *client.PolicySums) string { return s.LostWork.Round(time.Second).String() })
	row("highest priority evicted", func(s *client.PolicySums) string { return fmt.Sprint(s.HighestPriority) })
	row("budgets violated", func(s *client.PolicySums) string { return cmdutil.Thousands(int(s.BudgetViolations)) })
	p.Table(t)
}

// rowsShown limits the rows of a table unless the page is wide.
const rowsShown = 10

func shownOf[T any](p cmdutil.Page, list []T) []T {
	if p.Wide {
		return list
	}
	return list[:min(len(list), rowsShown)]
}

// more prints the number of rows that were left out.
func more(p cmdutil.Page, n int) {
	if !p.Wide && !p.NoHeaders && n > rowsShown {
		p.Printf("  and %d more: -o wide shows them\n", n-rowsShown)
	}
}

// evicts returns the allocations that one side of a comparison evicts; on a wide page
// with the allocation that is placed.
func evicts(p cmdutil.Page, c *client.PolicyChoice) string {
	text := c.Why
	switch {
	case c.Fault:
		return "fault: " + text
	case len(c.Victims) == 0:
		text = strings.TrimSuffix("no eviction: "+text, ": ")
	}
	if p.Wide && len(c.Places) > 0 {
		text += " for " + strings.Join(c.Places, ", ")
	}
	return text
}

// evicted formats the IDs of allocations, shortened unless the page is wide.
func evicted(p cmdutil.Page, ids []string) string {
	if len(ids) == 0 {
		return "no eviction"
	}
	var words []string
	for _, id := range shownOf(p, ids) {
		if !p.Wide {
			id = id[:min(len(id), 8)]
		}
		words = append(words, id)
	}
	if left := len(ids) - len(words); left > 0 {
		words = append(words, fmt.Sprintf("%d more", left))
	}
	return strings.Join(words, ", ")
}

func (s policyStatus) decisions(p cmdutil.Page) {
	if len(s.Decisions) == 0 {
		return
	}
	p.Title("Newest decisions of this server")
	t := &term.Table{Columns: []term.Column{
		{Title: "TIME"},
		{Title: "JOB"},
		{Title: "VERSION"},
		{Title: "EVICTS"},
		{Title: "CALLS", Right: true},
		{Title: "FUEL", Right: true},
		{Title: "TOOK", Right: true},
		{Title: "FAULT"},
	}}
	for _, d := range shownOf(p, s.Decisions) {
		calls, fuel, took := 0, uint64(0), time.Duration(0)
		for _, u := range d.Uses {
			calls += u.Calls
			fuel += u.Fuel
			took += u.Duration
		}
		burnt := ""
		if fuel > 0 {
			burnt = cmdutil.Thousands(int(fuel))
		}
		t.Row(when(d.Time), d.Namespace+"/"+d.JobID, model.ShortVersion(d.Version), evicted(p, d.Victims), fmt.Sprint(calls), burnt,
			took.Round(time.Microsecond).String(), d.Fault)
	}
	p.Table(t)
	more(p, len(s.Decisions))
}
