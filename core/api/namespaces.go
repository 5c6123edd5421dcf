package api

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/sdk/client"
)

// namespaceRoutes tell of namespaces. Nobody makes one: it is there with the first
// thing in it, and gone with the last.
func namespaceRoutes() []route {
	return []route{{
		methods: get, pattern: "/v1/namespaces", name: "namespaces_list", tag: tagJobs, roles: []acl.Role{acl.Read}, scope: public,
		doc:      "Lists the namespaces that have something in them, ascending by name: to a token that is bound to one, that one.",
		response: []*client.Namespace{}, handle: listNamespaces,
	}}
}

func listNamespaces(a *API, c *call) (any, error) {
	snap := a.cfg.Server.Snapshot()
	c.meta(snap)
	found := map[string]*client.Namespace{}
	in := func(name string) *client.Namespace {
		if found[name] == nil {
			found[name] = &client.Namespace{Name: name}
		}
		return found[name]
	}
	for j := range snap.Jobs() {
		in(j.Namespace).Jobs++
	}
	for b := range snap.Bindings() {
		in(b.Namespace).Bindings++
	}
	for _, b := range snap.Budgets() {
		in(b.Namespace).Budgets++
	}
	list := []*client.Namespace{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if c.sees(name) {
			list = append(list, found[name])
		}
	}
	return list, nil
}
