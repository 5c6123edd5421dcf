package rebalance

import (
	"bufio"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func TestShowPlan_EndsWithCommandsThatRunThePlan(t *testing.T) {
	for limit, plan := range map[string]string{
		"":     "  cede rebalance --plan -t '{{.PlanToken}}' > plan.token\n",
		"2/1h": "  cede rebalance --plan --moves 2/1h -t '{{.PlanToken}}' > plan.token\n",
	} {
		var text strings.Builder
		p := cmdutil.Page{W: bufio.NewWriter(&text)}
		showPlan(p, &client.RebalancePlan{PlanToken: "cede_rebalance1.x"}, limit)
		if err := p.W.Flush(); err != nil {
			t.Fatal(err)
		}
		if want := plan + "  cede rebalance --run @plan.token\n"; !strings.HasSuffix(text.String(), want) {
			t.Errorf("--moves %q: the page does not end with\n%s\n%s", limit, want, text.String())
		}
	}
}

// Other errors retain their own hints.
func TestUnknownOutcome_PlanMayBeRepeated(t *testing.T) {
	for code, want := range map[string]string{client.CodeUnknownOutcome: "repeat the command: parts of the plan", client.CodeConflict: "plan again"} {
		e := cmdutil.AsError(unknownOutcome(&client.Error{Code: code, Message: "x", Hint: "plan again"}))
		if !strings.HasPrefix(e.Hint, want) {
			t.Errorf("%s: hint %q", code, e.Hint)
		}
	}
}
