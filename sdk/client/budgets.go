package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Budget is a disruption budget. It limits how many allocations with certain labels
// may be unavailable, or how many may be evicted in a window. Exactly one of
// MinAvailable, MaxUnavailable and MaxEvictions is set.
type Budget struct {
	Namespace      string `json:",omitempty"` // default: the namespace of the query
	Name           string
	Labels         map[string]string `json:",omitempty"` // selects groups of the namespace; at least one label, or none with MaxEvictions for the whole namespace
	MinAvailable   Bound             `json:",omitempty"` // allocations that must remain: a number such as 2, or a share of the desired count such as 50%, rounded up
	MaxUnavailable Bound             `json:",omitempty"` // allocations that may be unavailable, in the same form
	MaxEvictions   *int              `json:",omitempty"` // allocations that may be evicted within Window
	Window         time.Duration     `json:",omitempty"` // ns; for MaxEvictions
	Enforcement    string            `json:",omitempty"` // bestEffort (evictions beyond it are avoided, counted and reported; the default unless MaxEvictions is set) or strict (they do not happen)
}

// The enforcements of budgets.
const (
	EnforceBestEffort = "bestEffort"
	EnforceStrict     = "strict"
)

// Bound is a number of allocations, or a share of the desired count: 2, or 50%. In
// JSON a number may be written without quotes.
type Bound string

// UnmarshalJSON accepts a number or a string.
func (b *Bound) UnmarshalJSON(text []byte) error {
	var written any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&written); err != nil {
		return err
	}
	switch v := written.(type) {
	case nil:
	case json.Number:
		*b = Bound(v)
	case string:
		*b = Bound(v)
	default:
		return fmt.Errorf("invalid bound %s: must be a number such as 2, or a share such as \"50%%\"", text)
	}
	return nil
}

// BudgetStub is a budget in a list, with its current counts.
type BudgetStub struct {
	Budget
	Healthy     int // healthy allocations that it selects
	Needed      int // healthy allocations that must remain
	Allowed     int // evictions that it allows now: Healthy less Needed, or the rest of MaxEvictions; never below 0
	Evicted     int `json:",omitempty"` // with MaxEvictions: evictions in the window that ends now
	CreateIndex uint64
	ModifyIndex uint64
}

// BudgetStatus is a budget with the allocations that it selects.
type BudgetStatus struct {
	BudgetStub
	Allocations []*AllocationStub // the live ones; those that have started count as healthy
}

// Budgets holds the calls for disruption budgets; see Client.Budgets.
type Budgets struct{ c *Client }

// List lists budgets with their counts, ascending by namespace and name.
func (b Budgets) List(ctx context.Context, q *QueryOptions) (list []*BudgetStub, meta *QueryMeta, err error) {
	meta, err = b.c.get(ctx, q, &list, "budgets")
	return list, meta, err
}

// Get returns a budget with the allocations that it selects.
func (b Budgets) Get(ctx context.Context, name string, q *QueryOptions) (*BudgetStatus, *QueryMeta, error) {
	out := &BudgetStatus{}
	meta, err := b.c.get(ctx, q, out, "budget", name)
	return out, meta, err
}

// Put creates or changes a budget. If the budget has no namespace, that of w is used.
func (b Budgets) Put(ctx context.Context, budget *Budget, w *WriteOptions) (*IndexResponse, error) {
	out := &IndexResponse{}
	return out, b.c.write(ctx, http.MethodPut, w.of(budget.Namespace), true, budget, out, "budget", budget.Name)
}

// Delete deletes a budget.
func (b Budgets) Delete(ctx context.Context, name string, w *WriteOptions) (*IndexResponse, error) {
	out := &IndexResponse{}
	return out, b.c.write(ctx, http.MethodDelete, w, true, nil, out, "budget", name)
}
