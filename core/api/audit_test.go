package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

func TestAudit_ListsChangesNewestFirst(t *testing.T) {
	w := start(t, func(c *Config) { c.Security = true })
	ctx := t.Context()
	root, err := w.client.Operator().Bootstrap(ctx)
	w.check(err)
	admin := w.connect(root.SecretID)
	ci, err := admin.Operator().TokenCreate(ctx, &client.TokenCreateRequest{Name: "ci", Roles: []string{"operate"}})
	w.check(err)
	operator := w.connect(ci.SecretID)
	_, err = operator.Operator().BrokerPause(ctx)
	w.check(err)
	_, err = admin.Namespaces().Put(ctx, &client.Namespace{Name: "web"}, nil)
	w.check(err)

	list, _, err := operator.Operator().Audit(ctx, client.AuditFilter{}, nil)
	w.check(err)
	actions := make([]string, len(list))
	for i, r := range list {
		actions[i] = r.Action
		if r.Address != "127.0.0.1" || r.RequestID == "" || time.Since(time.Unix(0, r.Time)) > time.Hour || r.Via != "" {
			t.Errorf("%+v", r)
		}
	}
	if got := strings.Join(actions, " "); got != "namespace.put scheduler.config token.create token.create" {
		t.Fatalf("actions %s", got)
	}
	if r := list[1]; r.Actor != ci.AccessorID || r.ActorName != "ci" || r.Detail != "broker-paused: false -> true" {
		t.Errorf("%+v", r)
	}
	if r := list[3]; r.Actor != "" || r.Object != root.AccessorID {
		t.Errorf("the bootstrap token: %+v", r)
	}
	for _, c := range []struct {
		filter client.AuditFilter
		want   int
	}{
		{client.AuditFilter{Action: "token"}, 2},
		{client.AuditFilter{Action: "token.create", Object: ci.AccessorID}, 1},
		{client.AuditFilter{Actor: "ci"}, 1},
		{client.AuditFilter{Actor: ci.AccessorID[:8]}, 1},
		{client.AuditFilter{Since: "1h"}, 4},
		{client.AuditFilter{Until: "1h"}, 0},
		{client.AuditFilter{Since: time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}, 0},
	} {
		if got, _, err := operator.Operator().Audit(ctx, c.filter, nil); err != nil || len(got) != c.want {
			t.Errorf("%+v: %d records, %v", c.filter, len(got), err)
		}
	}
	var pages []uint64
	err = client.AllPages(ctx, &client.QueryOptions{PerPage: 3}, func(ctx context.Context, q *client.QueryOptions) (*client.QueryMeta, error) {
		page, meta, err := operator.Operator().Audit(ctx, client.AuditFilter{}, q)
		for _, r := range page {
			pages = append(pages, r.Index)
		}
		return meta, err
	})
	if err != nil || len(pages) != 4 || pages[0] != list[0].Index || pages[3] != list[3].Index {
		t.Errorf("pages %v: %v", pages, err)
	}
}

func TestAudit_ReportsAllProblemsOfAFilter(t *testing.T) {
	w := start(t)
	_, _, err := w.client.Operator().Audit(t.Context(), client.AuditFilter{Action: "policy.eat", Since: "yesterday", Until: "-5m"}, nil)
	for _, want := range []string{`"policy.eat"`, "policy.activate", `invalid since "yesterday"`, `invalid until "-5m"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %s", err, want)
		}
	}
	_, _, err = w.client.Operator().Audit(t.Context(), client.AuditFilter{Since: "1h", Until: "2h"}, nil)
	if err == nil || !strings.Contains(err.Error(), "since must be before until") {
		t.Error(err)
	}
}

// The address of a forwarded request is that of the client's connection to the follower. A
// client cannot choose it: neither with the headers that servers and proxies set, nor with a
// signature for another request.
func TestAudit_TrustsForwardedAddressesOfServersOnly(t *testing.T) {
	var seen http.Header
	leads := start(t)
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		r.RemoteAddr = "192.0.2.2:1234" // of the follower
		leads.api.ServeHTTP(rw, r)
	}))
	defer front.Close()
	w := start(t, func(c *Config) {
		// The follower shares the state of the leader, and thus its key.
		c.ID, c.Replication, c.Server = "s2", follower{c.Replication}, notLeaderServer{leads.api.cfg.Server}
		c.Process.LeaderURL = func() string { return front.URL }
	})
	newest := func() *client.AuditRecord {
		t.Helper()
		list, _, err := leads.client.Operator().Audit(t.Context(), client.AuditFilter{}, nil)
		if err != nil || len(list) == 0 {
			t.Fatal(len(list), err)
		}
		return list[0]
	}
	if resp, text := w.send("PUT", "/v1/operator/broker/pause", "", headerOrigin, "198.51.100.9 forged", "X-Forwarded-For", "198.51.100.9"); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.StatusCode, text)
	}
	if r := newest(); r.Address != "127.0.0.1" || r.Via != "s2" || r.RequestID == "" {
		t.Errorf("forwarded: %+v", r)
	}
	signed := seen.Get(headerOrigin)
	for _, tt := range []struct{ name, verb, origin string }{
		{"a signature of another request", "resume", signed},
		{"another address", "pause", "198.51.100.9" + strings.TrimPrefix(signed, "127.0.0.1")},
		{"no signature", "resume", "198.51.100.9"},
	} {
		if resp, text := leads.send("PUT", "/v1/operator/broker/"+tt.verb, "", headerForwarded, "s2", headerOrigin, tt.origin, headerRequestID, seen.Get(headerRequestID)); resp.StatusCode != http.StatusOK {
			t.Fatal(resp.StatusCode, text)
		}
		if r := newest(); r.Address != "127.0.0.1" || r.Via != "" {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
}

// A load writes the module and the version in several entries. Its record names the caller.
func TestAudit_NamesCallerOfPolicyLoad(t *testing.T) {
	w := start(t, func(c *Config) { c.Security = true })
	ctx := t.Context()
	root, err := w.client.Operator().Bootstrap(ctx)
	w.check(err)
	author, err := w.connect(root.SecretID).Operator().TokenCreate(ctx, &client.TokenCreateRequest{Name: "author", Roles: []string{"policy"}})
	w.check(err)
	_, err = w.connect(author.SecretID).Policies().Load(ctx, &client.PolicyLoad{Name: "p", Module: moduleBytes("good")})
	w.check(err)
	list, _, err := w.connect(root.SecretID).Operator().Audit(ctx, client.AuditFilter{Action: "policy.load"}, nil)
	w.check(err)
	if len(list) != 1 || list[0].ActorName != "author" || list[0].Actor != author.AccessorID || list[0].Address != "127.0.0.1" || list[0].RequestID == "" {
		t.Errorf("%+v", list)
	}
}
