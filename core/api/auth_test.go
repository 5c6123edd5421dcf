package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/sdk/client"
)

// open lists the routes that require no token: health, the OpenAPI document, and
// bootstrap, which succeeds once.
var open = []string{"livez", "readyz", "healthz", "agent_health", "openapi", "acl_bootstrap"}

// startSecured starts a fixture with security enabled, and returns a token secret for
// each role.
func startSecured(t *testing.T) (*fixture, map[acl.Role]string) {
	w := start(t, func(c *Config) { c.Security, c.Limits.Rate = true, -1 }) // tests of all routes exceed the rate
	first, err := w.client.Operator().Bootstrap(t.Context())
	w.check(err)
	secrets := map[acl.Role]string{acl.Management: first.SecretID}
	manager := w.connect(first.SecretID)
	for _, role := range acl.Roles {
		if role == acl.Management {
			continue
		}
		made, err := manager.Operator().TokenCreate(t.Context(), &client.TokenCreateRequest{Name: string(role), Roles: []string{string(role)}})
		w.check(err)
		secrets[role] = made.SecretID
	}
	return w, secrets
}

// path returns a path of the route with a value for every wildcard.
func (r *route) path() string {
	p := r.pattern
	for _, name := range r.wildcards() {
		p = strings.ReplaceAll(p, "{"+name+"}", "x")
	}
	return p
}

// Every route under every method rejects callers without a token, and callers whose
// roles are not sufficient.
func TestRoutes_RequireTokenAndRole(t *testing.T) {
	w, secrets := startSecured(t)
	seen := 0
	for _, r := range table() {
		for _, method := range r.methods {
			resp, text := w.send(method, r.path(), "")
			if slices.Contains(open, r.name) {
				if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
					t.Errorf("%s %s requires no token, but returned %d: %s", method, r.pattern, resp.StatusCode, text)
				}
				continue
			}
			seen++
			if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s without a token: %d: %s", method, r.pattern, resp.StatusCode, text)
			}
			resp, _ = w.send(method, r.path(), "", "Authorization", "Bearer cede_"+strings.Repeat("A", 43))
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s with an unknown token: %d", method, r.pattern, resp.StatusCode)
			}
			for _, role := range acl.Roles {
				if acl.Allows([]string{string(role)}, r.roles...) {
					continue
				}
				resp, text = w.send(method, r.path(), "", "Authorization", "Bearer "+secrets[role])
				if resp.StatusCode != http.StatusForbidden || !strings.Contains(text, "lacks the role") {
					t.Errorf("%s %s with role %s: %d: %s", method, r.pattern, role, resp.StatusCode, text)
				}
			}
		}
	}
	if seen < 60 {
		t.Errorf("only %d routes and methods were tried", seen)
	}
	if strings.Contains(w.log.String(), secrets[acl.Management]) || strings.Contains(w.log.String(), secrets[acl.Read]) {
		t.Error("the log contains a secret")
	}
}

// Callers with a sufficient role are authorized. If the request fails later, it fails
// for another reason.
func TestRoutes_AllowCallersWithTheRole(t *testing.T) {
	w, secrets := startSecured(t)
	for i := range w.api.routes {
		r := &w.api.routes[i]
		for _, role := range acl.Roles {
			req := httptest.NewRequest(r.methods[0], r.path(), nil)
			req.Header.Set("Authorization", "Bearer "+secrets[role])
			err := w.api.authorize(&call{api: w.api, route: r, r: req, w: rest.NewRecorder(httptest.NewRecorder(), 0)})
			if want := r.roles == nil || acl.Allows([]string{string(role)}, r.roles...); (err == nil) != want {
				t.Errorf("%s with role %s: %v", r.name, role, err)
			}
		}
	}
}

// Only routes that change nothing accept the role read. The test detects routes
// without roles.
func TestRoutes_WritesRequireMoreThanReadRole(t *testing.T) {
	for _, r := range table() {
		if slices.Contains(open, r.name) {
			continue
		}
		if len(r.roles) == 0 {
			t.Errorf("%s requires no role", r.name)
		}
		if !r.changesNothing(r.methods[0]) && acl.Allows([]string{string(acl.Read)}, r.roles...) {
			t.Errorf("%s writes, but the role read is sufficient", r.name)
		}
		if !r.changesNothing(r.methods[0]) && r.scope == scopePublic {
			t.Errorf("%s writes, but has a public scope", r.name)
		}
	}
}

// The role policy does not include read, so that it suffices only for routes about policies
// and their comparisons, and for the one that describes the token.
func TestRoutes_PolicyRoleReadsOnlyPolicies(t *testing.T) {
	for _, r := range table() {
		if !slices.Contains(open, r.name) && r.name != "token_self" && acl.Allows([]string{string(acl.Policy)}, r.roles...) && r.tag != tagPolicies && r.tag != tagComparisons {
			t.Errorf("the role policy is sufficient for %s", r.name)
		}
	}
}

func TestTokens_ValidFromBootstrapUntilDeletion(t *testing.T) {
	w, secrets := startSecured(t)
	ctx := t.Context()
	if _, err := w.client.Operator().Bootstrap(ctx); !client.IsConflict(err) {
		t.Errorf("a second bootstrap: %v", err)
	}
	manager := w.connect(secrets[acl.Management])
	list, _, err := manager.Operator().Tokens(ctx, nil)
	w.check(err)
	if len(list) != len(acl.Roles) {
		t.Errorf("%d tokens", len(list))
	}
	for _, token := range list {
		if token.SecretID != "" {
			t.Errorf("the list contains the secret of %s", token.Name)
		}
	}
	reader := w.connect(secrets[acl.Read])
	mine, err := reader.Operator().TokenSelf(ctx)
	w.check(err)
	if mine.Name != "read" || !slices.Equal(mine.Roles, []string{"read"}) {
		t.Errorf("self %+v", mine)
	}
	// Each of the headers for the token works.
	for _, header := range [][]string{{"Authorization", "Bearer " + secrets[acl.Read]}, {headerToken, secrets[acl.Read]}, {headerNomadToken, secrets[acl.Read]}} {
		if resp, text := w.send("GET", "/v1/jobs", "", header...); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", header[0], resp.StatusCode, text)
		}
	}
	w.check(manager.Operator().TokenDelete(ctx, mine.AccessorID))
	if _, err := reader.Operator().TokenSelf(ctx); !client.HasCode(err, client.CodeUnauthenticated) {
		t.Errorf("a deleted token: %v", err)
	}
	if _, err := manager.Operator().TokenCreate(ctx, &client.TokenCreateRequest{Name: "x", Roles: []string{"root"}}); !client.HasCode(err, client.CodeInvalid) {
		t.Errorf("an unknown role: %v", err)
	}
}

// A token that is restricted to a namespace reads and changes only that namespace.
func TestTokens_RestrictedToTheirNamespace(t *testing.T) {
	w, secrets := startSecured(t)
	secret, hash := acl.NewSecret()
	_, err := w.node.Apply(t.Context(), &replication.Entry{Time: 1, Command: &replication.PutToken{Token: &model.Token{
		Accessor: "bound", Name: "bound", Hash: hash, Roles: []string{"operate"}, Namespace: "team",
	}}})
	w.check(err)
	ctx := t.Context()
	manager, bound := w.connect(secrets[acl.Management]), w.connect(secret)
	theirs, ours := job("theirs", 50, 1, 10, 10), job("ours", 50, 1, 10, 10)
	ours.Namespace = "team"
	_, err = manager.Jobs().Register(ctx, theirs, nil)
	w.check(err)
	done, err := bound.Jobs().Register(ctx, ours, nil)
	w.check(err)

	list, _, err := bound.Jobs().List(ctx, nil) // default: the namespace of the token
	w.check(err)
	if len(list) != 1 || list[0].ID != "ours" {
		t.Errorf("%d jobs", len(list))
	}
	for caller, want := range map[*client.Client]string{bound: "team:1", manager: "default:1 team:1"} {
		spaces, _, err := caller.Namespaces().List(ctx, nil)
		w.check(err)
		var got []string
		for _, ns := range spaces {
			got = append(got, fmt.Sprint(ns.Name, ":", ns.Jobs))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("namespaces %q, want %q", got, want)
		}
	}
	stolen := job("stolen", 50, 1, 10, 10)
	stolen.Namespace = "default"
	theirEvals, _, err := manager.Jobs().Evaluations(ctx, "theirs", nil)
	w.check(err)
	for what, err := range map[string]error{
		"all namespaces": second(bound.Jobs().List(ctx, &client.QueryOptions{Namespace: "*"})),
		"another":        second(bound.Jobs().List(ctx, &client.QueryOptions{Namespace: "default"})),
		"nodes":          second(bound.Nodes().List(ctx, nil)),
		"a job in it":    first(bound.Jobs().Register(ctx, stolen, nil)),
		"pausing":        first(bound.Operator().BrokerPause(ctx)),
	} {
		if !client.HasCode(err, client.CodeForbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := bound.Evaluations().Get(ctx, theirEvals[0].ID, nil); !client.IsNotFound(err) {
		t.Errorf("an evaluation of another namespace: %v", err)
	}
	if _, err := bound.Evaluations().Cancel(ctx, []string{theirEvals[0].ID}, nil); !client.IsNotFound(err) {
		t.Errorf("cancelling an evaluation of another namespace: %v", err)
	}
	if _, _, err := bound.Evaluations().Get(ctx, done.EvalID, nil); err != nil {
		t.Error(err)
	}
}

func first[T any](_ T, err error) error { return err }

func second[T, U any](_ T, _ U, err error) error { return err }

// An agent's token accesses its own node with the secret of the node, and no other
// node.
func TestAgentToken_AccessesOnlyItsOwnNode(t *testing.T) {
	w, secrets := startSecured(t)
	ctx := t.Context()
	agent := w.connect(secrets[acl.Node]).NodeAgent()
	_, err := agent.Register(ctx, nodeSpec("n1", 100, 100), testNodeSecret)
	w.check(err)
	_, err = agent.Heartbeat(ctx, "n1", testNodeSecret)
	w.check(err)
	if _, _, err := agent.Allocations(ctx, "n1", testNodeSecret, nil); err != nil {
		t.Error(err)
	}
	const wrong = "another secret of some length"
	for what, err := range map[string]error{
		"allocations": second(agent.Allocations(ctx, "n1", wrong, nil)),
		"heartbeat":   first(agent.Heartbeat(ctx, "n1", wrong)),
		"update":      first(agent.Update(ctx, "n1", wrong, []client.AllocUpdate{{AllocID: "a", ClientStatus: "running"}})),
		"register":    first(agent.Register(ctx, nodeSpec("n1", 1, 1), wrong)),
	} {
		if !client.HasCode(err, client.CodeForbidden) {
			t.Errorf("%s with a wrong secret: %v", what, err)
		}
	}
}
