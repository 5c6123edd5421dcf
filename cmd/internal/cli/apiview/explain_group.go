package apiview

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// ExplainGroup prints why instances of a group are unplaced, by node.
func ExplainGroup(p cmdutil.Page, name string, n int, m *client.AllocationMetric) {
	indent := "  "
	if p.NoHeaders {
		indent = ""
	}
	missing := ""
	if n > 0 {
		missing = " (" + cmdutil.Count(n, "instance", "instances") + ")"
	}
	p.Printf("%s%s%s: %s\n", indent, name, missing, cmp.Or(m.Explanation, "no feasible node"))
	reasons := cmdutil.NewTable("NODES>", "WHY")
	for _, part := range []struct {
		words  string
		counts map[string]int
	}{
		{"lack %s", m.DimensionExhausted}, {"%s", m.NotReady}, {"excluded by %s", m.ConstraintFiltered}, {"preemption does not help: %s", m.Preemption},
	} {
		keys := slices.SortedFunc(maps.Keys(part.counts), func(a, b string) int {
			return cmp.Or(cmp.Compare(part.counts[b], part.counts[a]), strings.Compare(a, b))
		})
		for _, k := range keys {
			words := part.words
			if strings.HasPrefix(k, "lacks ") {
				words = "%s"
			}
			reasons.Row(fmt.Sprint(part.counts[k]), fmt.Sprintf(words, k))
		}
	}
	if m.NoEviction != "" {
		reasons.Row("all", "no eviction: "+WithRemedy(m.NoEviction))
	}
	if reasons.Len() > 0 {
		p.Table(reasons)
	}
	if len(m.Samples) == 0 {
		return
	}
	samples := cmdutil.NewTable("NODE", "WHY NOT")
	for i, s := range m.Samples {
		if i == cmdutil.MaxRows && !p.Wide {
			break
		}
		samples.Row(p.ID(s.NodeID), s.Reason)
	}
	p.Table(samples)
}

// preemptionOff matches the reason of a server for which a setting enables preemption.
var preemptionOff = regexp.MustCompile(`^preemption is off for (?:([a-z]+) jobs|(binding)s)$`)

// preemptionHold is the reason of a server for instances that a confirmed plan did not
// place.
const preemptionHold = "the plan that the user confirmed did not list these evictions"

// WithRemedy returns the reason why nothing is evicted, with a command that changes it if
// there is one.
func WithRemedy(why string) string {
	if why == preemptionHold {
		return why + "; cede job plan shows it now"
	}
	m := preemptionOff.FindStringSubmatch(why)
	if m == nil {
		return why
	}
	return why + "; switch it on: cede operator scheduler set --preempt-" + m[1] + m[2]
}
