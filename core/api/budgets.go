package api

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

const tagBudgets = "budgets"

func budgetRoutes() []route {
	reader, operator := []acl.Role{acl.Read}, []acl.Role{acl.Operate}
	return []route{
		{
			methods: get, pattern: "/v1/budgets", name: "budgets_list", tag: tagBudgets, roles: reader, scope: scopeNamespace,
			doc: "Lists disruption budgets with their status, ordered by namespace and name.", isQuery: true, isPaged: true, response: []*client.BudgetStub{}, handle: listBudgets,
		},
		{
			methods: get, pattern: "/v1/budget/{id}", name: "budget_get", tag: tagBudgets, roles: reader, scope: scopeNamespace,
			doc: "Returns a disruption budget with the allocations that it covers.", isQuery: true, response: client.BudgetStatus{}, handle: getBudget,
		},
		{
			methods: putMethods, pattern: "/v1/budget/{id}", name: "budget_put", tag: tagBudgets, roles: operator, scope: scopeNamespace, leaderOnly: true,
			doc:     "Creates or updates a disruption budget.",
			request: client.Budget{}, response: client.IndexResponse{}, handle: withBody(putBudget),
		},
		{
			methods: remove, pattern: "/v1/budget/{id}", name: "budget_delete", tag: tagBudgets, roles: operator, scope: scopeNamespace, leaderOnly: true,
			doc: "Deletes a disruption budget. It no longer limits evictions.", response: client.IndexResponse{}, handle: deleteBudget,
		},
	}
}

// budgetTables are the tables that the status of a budget depends on: budgets, the
// allocations that they cover, and the desired counts and nodes of those.
var budgetTables = []state.Table{state.TableBudgets, state.TableAllocs, state.TableJobs, state.TableNodes}

// budgetQuery returns a query for the status of budgets. Changes of allocations and
// nodes affect the status without changing the budget, so a blocking query returns
// when any of the tables has changed.
func (a *API) budgetQuery(render func(*state.Snapshot) (any, error)) query {
	v := query{table: state.TableBudgets, wholeTable: true}
	for _, t := range budgetTables {
		v.keys = append(v.keys, t.All())
	}
	v.render = func(s *state.Snapshot) (any, uint64, error) {
		changed := uint64(0)
		for _, t := range budgetTables {
			changed = max(changed, a.tables.changed(t))
		}
		result, err := render(s)
		return result, changed, err
	}
	return v
}

func listBudgets(a *API, c *call) (any, error) {
	part, err := c.page()
	if err != nil {
		return nil, err
	}
	return c.read(a.budgetQuery(func(s *state.Snapshot) (any, error) {
		p, now := pager[*client.BudgetStub]{page: part}, a.cfg.Clock.Now().UnixNano()
		for at, b := range s.Budgets() {
			if c.matches(b.Namespace, b.Name) && !p.add(pageKey(b.Namespace, b.Name), func() *client.BudgetStub { return budgetStub(s, int32(at), now) }) {
				break
			}
		}
		return p.result(c), nil
	}))
}

func getBudget(a *API, c *call) (any, error) {
	key, err := budgetKey(c, &client.Budget{})
	if err != nil {
		return nil, err
	}
	return c.read(a.budgetQuery(func(s *state.Snapshot) (any, error) {
		at, ok := s.BudgetPosition(key)
		if !ok {
			return nil, rest.NotFound("disruption budget %s not found in namespace %s", rest.Quote(key.Name), rest.Quote(key.Namespace)).WithHint("GET /v1/budgets lists them")
		}
		out := &client.BudgetStatus{BudgetStub: *budgetStub(s, at, a.cfg.Clock.Now().UnixNano()), Allocations: []*client.AllocationStub{}}
		if list, _ := view.AllocStubs(s, slices.Collect(s.BudgetAllocs(s.Budgets()[at]))); len(list) > 0 {
			out.Allocations = list
		}
		return out, nil
	}))
}

// budgetKey returns the key of the budget that the path names. It returns an error if
// the body names another one.
func budgetKey(c *call, body *client.Budget) (key model.BudgetKey, err error) {
	key.Name = c.r.PathValue("id")
	if err := checkPathID("budget", key.Name, body.Name); err != nil {
		return key, err
	}
	key.Namespace, err = c.singleNamespace("budget", body.Namespace)
	return key, err
}

// budgetStub returns the budget at a position with its status at now, in Unix
// nanoseconds.
func budgetStub(s *state.Snapshot, at int32, now int64) *client.BudgetStub {
	b := s.Budgets()[at]
	out := &client.BudgetStub{
		Budget: client.Budget{
			Namespace: b.Namespace, Name: b.Name, Labels: b.Labels, Enforcement: client.EnforceBestEffort,
			MinAvailable: boundOf(b.MinAvailable), MaxUnavailable: boundOf(b.MaxUnavailable),
		},
		CreateIndex: b.CreateIndex, ModifyIndex: b.ModifyIndex,
	}
	if b.Strict {
		out.Enforcement = client.EnforceStrict
	}
	out.Healthy, out.Needed = s.BudgetAvailability(at)
	left := s.DisruptionsAllowed(at, now)
	if b.MaxEvictions != nil {
		out.MaxEvictions, out.Window = new(int(b.MaxEvictions.Number)), b.MaxEvictions.Window
		out.Evicted = int(b.MaxEvictions.Number) - left
	}
	out.Allowed = max(0, left)
	return out
}

func boundOf(b *model.Bound) client.Bound {
	if b == nil {
		return ""
	}
	return client.Bound(b.String())
}

func putBudget(a *API, c *call, req *client.Budget) (any, error) {
	key, err := budgetKey(c, req)
	if err != nil {
		return nil, err
	}
	b, err := budgetFrom(key, req)
	if err != nil {
		return nil, err
	}
	return c.indexResponse(a.cfg.Server.PutBudget(c.writeContext(), b))
}

// budgetFrom converts a budget of the API. It validates single fields; the server
// validates the budget as a whole.
func budgetFrom(key model.BudgetKey, req *client.Budget) (*model.Budget, error) {
	b := &model.Budget{Namespace: key.Namespace, Name: key.Name, Labels: req.Labels, Strict: req.Enforcement == client.EnforceStrict}
	if req.Enforcement != "" && req.Enforcement != client.EnforceBestEffort && !b.Strict {
		return nil, rest.Invalid("invalid Enforcement %s: it must be %s or %s", rest.Quote(req.Enforcement), client.EnforceBestEffort, client.EnforceStrict).With("Field", "Enforcement")
	}
	for _, bound := range []struct {
		name string
		text client.Bound
		to   **model.Bound
	}{{"MinAvailable", req.MinAvailable, &b.MinAvailable}, {"MaxUnavailable", req.MaxUnavailable, &b.MaxUnavailable}} {
		if bound.text == "" {
			continue
		}
		digits, percent := strings.CutSuffix(string(bound.text), "%")
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 || n > math.MaxInt32 || percent && n > 100 {
			return nil, rest.Invalid("invalid %s %s: it must be a number such as 2, or a percentage from 0%% to 100%%", bound.name, rest.Quote(string(bound.text))).With("Field", bound.name)
		}
		*bound.to = &model.Bound{Number: int32(n), Percent: percent}
	}
	if req.MaxEvictions == nil && req.Window != 0 {
		return nil, rest.Invalid("Window requires MaxEvictions, the number of evictions allowed in it").With("Field", "Window")
	}
	if req.MaxEvictions != nil {
		if *req.MaxEvictions < 0 || *req.MaxEvictions > math.MaxInt32 {
			return nil, rest.Invalid("invalid MaxEvictions %d: it must not be negative", *req.MaxEvictions).With("Field", "MaxEvictions")
		}
		b.MaxEvictions = &model.Rate{Number: int32(*req.MaxEvictions), Window: req.Window}
		b.Strict = req.Enforcement != client.EnforceBestEffort
	}
	return b, nil
}

func deleteBudget(a *API, c *call) (any, error) {
	key, err := budgetKey(c, &client.Budget{})
	if err != nil {
		return nil, err
	}
	return c.indexResponse(a.cfg.Server.DeleteBudget(c.writeContext(), key))
}
