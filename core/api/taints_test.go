package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// Taints of operators survive a registration, taints of the node's configuration
// follow it, and only allocations with a toleration are placed.
func TestTaints_OperatorTaintsSurviveRegistration(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	agent, nodes := w.client.NodeAgent(), w.client.Nodes()
	n := nodeSpec("n1", 1000, 1000)
	n.Taints = []client.Taint{{Key: "gpu", Value: "true", Effect: "PreferNoSchedule"}}
	_, err := agent.Register(ctx, n, testNodeSecret)
	w.check(err)
	w.waitFor("the cluster version supports taints", func() bool {
		_, err = nodes.Taint(ctx, "n1", nil, []client.Taint{{Key: "spot", Effect: "NoSchedule"}})
		return !client.IsConflict(err)
	})
	w.check(err)

	shown := func() string {
		got, _, err := nodes.Get(ctx, "n1", nil)
		w.check(err)
		list, _, err := nodes.List(ctx, nil)
		w.check(err)
		if !slices.Equal(list[0].Taints, got.Taints) {
			t.Errorf("the list has %v, the node %v", list[0].Taints, got.Taints)
		}
		var words []string
		for _, t := range got.Taints {
			word := t.String()
			if t.Set {
				word += "!"
			}
			words = append(words, word)
		}
		return strings.Join(words, " ")
	}
	if got := shown(); got != "gpu=true:PreferNoSchedule spot:NoSchedule!" {
		t.Errorf("set: %s", got)
	}
	refused := w.register(job("web", 50, 1, 10, 10))
	if e := w.awaitEval(refused.EvalID); len(e.FailedTGAllocs) != 1 {
		t.Error("an allocation was placed without a toleration for the taint")
	}
	tolerant := job("tolerant", 50, 1, 10, 10)
	tolerant.TaskGroups[0].Tolerations = []*client.Toleration{{Key: "spot", Operator: "Exists"}}
	if e := w.awaitEval(w.register(tolerant).EvalID); len(e.FailedTGAllocs) != 0 {
		t.Errorf("not placed despite a toleration: %+v", e.FailedTGAllocs)
	}

	n.Taints = []client.Taint{{Key: "old", Effect: "PreferNoSchedule"}}
	_, err = agent.Register(ctx, n, testNodeSecret)
	w.check(err)
	if got := shown(); got != "old:PreferNoSchedule spot:NoSchedule!" {
		t.Errorf("after registration: %s", got)
	}
	if _, err := nodes.Taint(ctx, "n1", []client.Taint{{Key: "old"}}, nil); !client.HasCode(err, client.CodeInvalid) {
		t.Errorf("removing a taint of the node's configuration: %v", err)
	}
	_, err = nodes.Taint(ctx, "n1", []client.Taint{{Key: "spot"}}, nil)
	w.check(err)
	if got := shown(); got != "old:PreferNoSchedule" {
		t.Errorf("after removal: %s", got)
	}
	w.waitFor("the blocked job is placed", func() bool {
		list, _, err := w.client.Jobs().Allocations(ctx, "web", nil)
		w.check(err)
		return len(list) == 1
	})
}

func TestTaints_RejectInvalid(t *testing.T) {
	w := start(t)
	w.addNode("n1", 10, 10)
	for body, want := range map[string]string{
		`{}`: "Taint or Untaint is required",
		`{"Taint":[{"Key":"a b","Effect":"NoSchedule"}]}`:                                          "the key must be a word",
		`{"Taint":[{"Key":"a","Effect":"NoExecute"},{"Key":"","Effect":"NoSchedule"}]}`:            "Taints[1]",
		`{"Taint":[{"Key":"a","Effect":"NoSchedule"},{"Key":"a","Effect":"NoSchedule"}]}`:          "duplicate Taints[1]",
		`{"Untaint":[{"Key":"a","Effect":"never"}]}`:                                               "Untaint[0]",
		`{"NodeID":"other","Taint":[{"Key":"a","Effect":"NoSchedule"}]}`:                           "the path names node",
		`{"Taint":[` + strings.Repeat(`{"Key":"a","Effect":"NoSchedule"},`, 64) + `{}]}`:           "at most 64",
		`{"Taint":[{"Key":"a","Value":"` + strings.Repeat("x", 300) + `","Effect":"NoSchedule"}]}`: "at most 256 bytes",
	} {
		resp, text := w.send("POST", "/v1/node/n1/taints", body)
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", truncate(body), resp.StatusCode, text, want)
		}
	}
	bad := nodeSpec("n2", 10, 10)
	bad.Taints = []client.Taint{{Key: "a", Effect: "x"}}
	if _, err := w.client.NodeAgent().Register(t.Context(), bad, testNodeSecret); !client.HasCode(err, client.CodeInvalid) {
		t.Errorf("a node with an invalid taint: %v", err)
	}
}
