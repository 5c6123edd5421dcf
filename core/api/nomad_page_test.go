package api

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A nomadCommand is a command of Nomad's CLI.
type nomadCommand struct {
	calls  []string // in the order in which the command makes them
	note   string   // differences from Nomad; "": none
	partly bool     // some of the calls are not served, and the command shows their error
	// monitors means that the command waits for an evaluation, unless it is detached.
	monitors bool
}

// nomadCommands holds commands of Nomad 1.11.2 with the calls that its source makes for
// them. Nothing here executes the program; the calls are made by nomadCalls.
var nomadCommands = map[string]nomadCommand{
	"status":                         {calls: []string{"Jobs.ListOptions"}},
	"status ID":                      {calls: []string{"Search.PrefixSearch"}, note: "continues as `job status`, `alloc status`, `node status` or `eval status`"},
	"job run FILE":                   {calls: []string{"Jobs.RegisterOpts"}, monitors: true},
	"job run -check-index N FILE":    {calls: []string{"Jobs.RegisterOpts"}, monitors: true},
	"job plan FILE":                  {calls: []string{"Jobs.PlanOpts"}},
	"job status [ID]":                {calls: []string{"Jobs.ListOptions", "Jobs.PrefixList", "Jobs.Info", "Jobs.Allocations", "Jobs.Evaluations", "Jobs.LatestDeployment", "Jobs.Summary"}},
	"job history [-p] ID":            {calls: []string{"Jobs.PrefixList", "Jobs.VersionsOpts"}},
	"job revert ID VERSION":          {calls: []string{"Jobs.PrefixList", "Jobs.Revert"}, monitors: true},
	"job scale ID GROUP COUNT":       {calls: []string{"Jobs.PrefixList", "Jobs.ScaleStatus", "Jobs.ScaleWithRequest", "Jobs.Info"}, monitors: true},
	"job stop [-purge] ID":           {calls: []string{"Jobs.PrefixList", "Jobs.Info", "Jobs.DeregisterOpts"}, monitors: true},
	"alloc logs [-f] ID":             {calls: []string{"Allocations.PrefixList", "Allocations.Info", "Nodes.Info", "AllocFS.Logs"}},
	"alloc status ID":                {calls: []string{"Allocations.PrefixList", "Allocations.Info", "Allocations.Checks", "Allocations.Stats"}, partly: true, note: "without checks and resource usage"},
	"alloc stop ID":                  {calls: []string{"Allocations.PrefixList", "Allocations.Info", "Allocations.Stop"}, monitors: true},
	"eval status ID":                 {calls: []string{"Evaluations.PrefixList", "Evaluations.Info", "Evaluations.Allocations"}},
	"node status [ID]":               {calls: []string{"Nodes.List", "Nodes.PrefixList", "Nodes.Info", "Nodes.Allocations", "Nodes.Stats"}, partly: true, note: "without resource usage"},
	"node drain -enable ID":          {calls: []string{"Nodes.PrefixList", "Nodes.Info", "Nodes.UpdateDrainOpts", "Nodes.MonitorDrain"}},
	"node eligibility ID":            {calls: []string{"Nodes.PrefixList", "Nodes.Info", "Nodes.ToggleEligibility"}},
	"server members":                 {calls: []string{"Agent.Members", "Status.RegionLeader"}},
	"operator snapshot save FILE":    {calls: []string{"Operator.Snapshot"}},
	"operator snapshot restore FILE": {calls: []string{"Operator.SnapshotRestore"}, note: "only snapshots of cede"},
	"operator autopilot health":      {calls: []string{"Operator.AutopilotServerHealth"}},
	"operator raft list-peers":       {calls: []string{"Operator.RaftGetConfiguration"}},
	"namespace list":                 {calls: []string{"Namespaces.List"}},
	"system gc":                      {calls: []string{"System.GarbageCollect"}},
}

// monitorCalls are the calls of commands that wait for an evaluation.
var monitorCalls = []string{"Evaluations.Info", "Evaluations.Allocations"}

// allCalls returns the calls of a command in their order.
func (c *nomadCommand) allCalls() []string {
	if c.monitors {
		return slices.Concat(c.calls, monitorCalls)
	}
	return c.calls
}

// nomadClientVersion returns the version of Nomad's client in go.mod.
func nomadClientVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\tgithub.com/hashicorp/nomad/api (\S+)`).FindSubmatch(text)
	if found == nil {
		t.Fatal("go.mod does not list the client of Nomad")
	}
	return string(found[1])
}

// nomadPageText returns the page of commands and calls.
func nomadPageText(version string, unsupported map[string][]string) string {
	var b strings.Builder
	b.WriteString(`# Nomad's commands and client

The HTTP API accepts the requests of Nomad's clients. Set ` + "`NOMAD_ADDR`" + ` to the address of any server:

` + "```text" + `
export NOMAD_ADDR=http://127.0.0.1:4646
nomad job run shop.nomad.hcl
` + "```" + `

Differences that apply everywhere:

- CPU is measured in millicores, the unit of Kubernetes, instead of MHz. Numbers are not converted.
- If a job uses features that cede does not implement (services, templates, update strategies, volumes), registration, plan and
  validation return a warning for each. If a scheduling requirement cannot be met, the job is rejected with an error.
- Errors are JSON, ` + "`{Code, Message, Hint, Details}`" + `, instead of text. Nomad's client prints the body in both cases.
- An operation that Nomad has and cede does not returns status 501 and the code ` + "`unsupported`" + `.

This page is generated by a test that makes every call of the Go package ` + "`github.com/hashicorp/nomad/api`" + `, version
` + "`" + version + "`" + `, against a server.

## Commands

The program ` + "`nomad`" + ` makes its requests with that package. The table lists the calls that the source of Nomad 1.11.2 makes for
each command; the test makes the same calls, but does not execute the program. Commands that print hints read Agent.Self as
well: it switches off hints about Nomad's web pages, which do not exist here.

| command | calls | differences |
|--|--|--|
`)
	for _, name := range slices.Sorted(maps.Keys(nomadCommands)) {
		c := nomadCommands[name]
		fmt.Fprintf(&b, "| `nomad %s` | %s | %s |\n", name, strings.Join(c.allCalls(), ", "), c.note)
	}
	b.WriteString("\n## Calls\n\n| call | differences |\n|--|--|\n")
	for _, name := range slices.Sorted(maps.Keys(nomadCalls)) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, nomadCalls[name].effect)
	}
	b.WriteString("\n## Unsupported calls\n\nThese calls return status 501.\n\n| handle | calls |\n|--|--|\n")
	for _, handle := range slices.Sorted(maps.Keys(unsupported)) {
		fmt.Fprintf(&b, "| %s | %s |\n", handle, strings.Join(unsupported[handle], ", "))
	}
	return b.String()
}
