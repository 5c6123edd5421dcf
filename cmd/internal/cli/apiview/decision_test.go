package apiview

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/sdk/client"
)

// shown returns the text of a page.
func shown(t *testing.T, show func(cmdutil.Page)) string {
	t.Helper()
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	show(cmdutil.Page{W: w})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Options that were played have their predictions; the others have empty cells.
func TestExplainDecision_ListsOutlooks(t *testing.T) {
	t.Parallel()
	played := func(node string, delay time.Duration) client.DecisionOption {
		return client.DecisionOption{
			NodeID: node, Tiers: []int64{20, int64(delay)}, Score: 0.5, Victims: 1, HighestPriority: 20,
			Outlook: &client.DecisionOutlook{LostWork: int64(90 * time.Second), CascadeDepth: 2, Delay: int64(delay)},
		}
	}
	d := &client.Decision{AllocID: "a1", JobID: "high", Priority: 80, NodeID: "n1", Reason: "it had the least delay", EvalID: "e1", Why: &client.DecisionWhy{
		Ranked: []client.DecisionOption{
			played("n1", 0), played("n2", 10*time.Minute),
			{NodeID: "n3", Tiers: []int64{20, 0}, Score: 0.25, Victims: 3, HighestPriority: 20},
		},
	}}
	page := func() []string {
		text := shown(t, func(p cmdutil.Page) { ExplainDecision(p, &cmdutil.Env{Clock: clock.NewVirtual(time.Unix(0, 0))}, d) })
		_, table, ok := strings.Cut(text, "\nOptions\n")
		if !ok {
			t.Fatalf("no options in\n%s", text)
		}
		var lines []string
		for line := range strings.SplitSeq(table, "\n") {
			if lines = append(lines, strings.Join(strings.Fields(line), " ")); len(lines) == 4 {
				break
			}
		}
		return lines
	}
	want := `RANK NODE VICTIMS HIGHEST PRIORITY TIERS SCORE EXPECTED LOST WORK CASCADE DEPTH EXPECTED DELAY
1 n1 1 20 20 0 0.5 1m30s 2 0s
2 n2 1 20 20 600000000000 0.5 1m30s 2 10m0s
3 n3 3 20 20 0 0.25`
	if got := strings.Join(page(), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	d.Why.Ranked[0].NodeID = "0198c2f4-6f7a-7bb0-8a7e-5f0c5f0c5f0c"
	if got := page()[1]; !strings.HasPrefix(got, "1 0198c2f4 1 ") {
		t.Errorf("the ID of a node is not shortened: %s", got)
	}
	for i := range d.Why.Ranked {
		d.Why.Ranked[i].Outlook = nil
	}
	if got := page()[0]; got != "RANK NODE VICTIMS HIGHEST PRIORITY TIERS SCORE" {
		t.Errorf("without look-ahead the columns are %s", got)
	}
}
