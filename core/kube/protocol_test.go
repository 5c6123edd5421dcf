package kube

import (
	"encoding/json"
	"testing"
)

// A node that is proposed with nothing said of its victims is not one to answer with,
// in either form.
func TestProposal_LeavesOutNodesWithoutVictims(t *testing.T) {
	for _, text := range []string{
		`{"NodeNameToMetaVictims": {"n1": null, "n2": {"Pods": [{"UID": "u"}]}}}`,
		`{"NodeNameToVictims": {"n1": null, "n2": {"Pods": [{"metadata": {"uid": "u"}}, null]}}}`,
	} {
		var args ExtenderPreemptionArgs
		if err := json.Unmarshal([]byte(text), &args); err != nil {
			t.Fatal(err)
		}
		got := args.Proposal()
		if len(got) != 1 || len(got["n2"].Pods) != 1 || got["n2"].Pods[0].UID != "u" {
			t.Errorf("%s: %v", text, got)
		}
	}
}
