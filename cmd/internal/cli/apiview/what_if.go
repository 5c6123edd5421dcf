package apiview

import (
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// ExplainWhatIf explains what would have spared a victim: first in words, then each change
// with its effect.
func ExplainWhatIf(p cmdutil.Page, w *client.WhatIf) {
	for _, text := range w.Text {
		p.Printf("%s\n", text)
	}
	if len(w.Changes) > 0 {
		p.Title("Changes that spare it")
		t := cmdutil.NewTable("CHANGE", "EVICTED INSTEAD", "MORE WAIT>")
		for i := range w.Changes {
			c := &w.Changes[i]
			t.Row(c.Text, refs(c.Instead), fmt.Sprint(c.Waiting))
		}
		p.Table(t)
	}
	p.Properties("victim", p.ID(w.Victim.AllocID), "next in line", refs(w.Next), "decisions made again", fmt.Sprint(w.Evaluations), "index", fmt.Sprint(w.Index))
}

// refs lists allocations by name and priority.
func refs(list []client.WhatIfRef) string {
	if len(list) == 0 {
		return "-"
	}
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = fmt.Sprintf("%s (priority %d)", list[i].Name, list[i].Priority)
	}
	return strings.Join(texts, ", ")
}
