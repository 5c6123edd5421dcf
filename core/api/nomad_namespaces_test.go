package api

import (
	"fmt"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/cede-scheduler/cede/sdk/client"
)

// deleteNomadNamespace creates and deletes a namespace.
func deleteNomadNamespace(n *nomadTour) error {
	_, err := n.c.Namespaces().Register(&nomad.Namespace{Name: "doomed"}, nil)
	n.must(err)
	if _, err := n.c.Namespaces().Delete("doomed", nil); err != nil {
		return err
	}
	_, _, err = n.c.Namespaces().Info("doomed", nil)
	n.must(expectError(err, "404"))
	_, err = n.c.Namespaces().Delete("default", nil)
	return expectError(err, "cannot be deleted")
}

// changeNomadNamespace waits for the change of a namespace.
func changeNomadNamespace(n *nomadTour) error {
	meta, err := n.c.Namespaces().Register(&nomad.Namespace{Name: "team", Description: "a team"}, nil)
	n.must(err)
	team, q, err := n.c.Namespaces().Info("team", nil)
	n.must(err)
	if team.Description != "a team" || team.ModifyIndex != meta.LastIndex || team.CreateIndex == 0 {
		return fmt.Errorf("namespace %+v at index %d", team, meta.LastIndex)
	}
	// A blocking query returns once the namespace changes.
	changed := make(chan error, 1)
	go func() {
		after, _, err := n.c.Namespaces().Info("team", &nomad.QueryOptions{WaitIndex: q.LastIndex, WaitTime: time.Minute})
		changed <- expect(err, err == nil && after.Description == "changed", "namespace %+v", after)
	}()
	_, err = n.c.Namespaces().Register(&nomad.Namespace{Name: "team", Description: "changed"}, nil)
	n.must(err)
	return <-changed
}

// registerNomadNamespace changes a namespace that has a weight, which the client does not know.
func registerNomadNamespace(n *nomadTour) error {
	_, err := n.client.Namespaces().Put(n.t.Context(), &client.Namespace{Name: "team", Weight: new(3.0)}, nil)
	n.must(err)
	team, _, err := n.c.Namespaces().Info("team", nil)
	n.must(err)
	team.Description = "of three"
	_, err = n.c.Namespaces().Register(team, nil)
	n.must(err)
	own, _, err := n.client.Namespaces().Get(n.t.Context(), "team", nil)
	if err != nil || *own.Weight != 3 || own.Description != "of three" {
		return fmt.Errorf("namespace %+v, %w", own, err)
	}
	_, err = n.c.Namespaces().Register(&nomad.Namespace{Name: "team", Quota: "small"}, nil)
	return expectError(err, "Quota")
}
