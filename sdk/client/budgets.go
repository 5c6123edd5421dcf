package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Budget is a disruption budget: how many allocations with certain labels
// evictions must leave, or how many they may take in a window. It has one of
// MinAvailable, MaxUnavailable and MaxEvictions.
type Budget struct {
	Namespace      string `json:",omitempty"` // default: that of the query
	Name           string
	Labels         map[string]string `json:",omitempty"` // select groups of the namespace; at least one, or with MaxEvictions none: all of the namespace
	MinAvailable   Bound             `json:",omitempty"` // allocations that stay: a number such as 2, or a share of those wanted such as 50%, rounded up
	MaxUnavailable Bound             `json:",omitempty"` // allocations that may be missing: the same
	MaxEvictions   *int              `json:",omitempty"` // allocations that may be evicted in Window
	Window         time.Duration     `json:",omitempty"` // ns; of MaxEvictions
	Enforcement    string            `json:",omitempty"` // bestEffort (default but with MaxEvictions: evictions beyond it are avoided, counted and told) or strict (there are none)
}

// The enforcements of budgets.
const (
	EnforceBestEffort = "bestEffort"
	EnforceStrict     = "strict"
)

// Bound is a number of allocations, or a share of those that are wanted: 2, or
// 50%. In JSON a number may stand without quotes.
type Bound string

// UnmarshalJSON takes a number or a text.
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
		return fmt.Errorf("a bound is %s: want a number such as 2, or a share such as \"50%%\"", text)
	}
	return nil
}

// BudgetStub is a budget, and how it stands.
type BudgetStub struct {
	Budget
	Healthy     int // allocations under it that work
	Needed      int // of them that must stay
	Allowed     int // that may be evicted: Healthy less Needed, or what is left of MaxEvictions; never below 0
	Evicted     int `json:",omitempty"` // in the window that ends now, with MaxEvictions
	CreateIndex uint64
	ModifyIndex uint64
}

// BudgetStatus is a budget with what is under it.
type BudgetStatus struct {
	BudgetStub
	Allocations []*AllocationStub // that are live: those that began count as healthy
}

// Budgets is what can be done with disruption budgets; Client.Budgets makes one.
type Budgets struct{ c *Client }

// List lists budgets with how they stand, ascending by namespace and name.
func (b Budgets) List(ctx context.Context, q *QueryOptions) (list []*BudgetStub, meta *QueryMeta, err error) {
	meta, err = b.c.get(ctx, q, &list, "budgets")
	return list, meta, err
}

// Get returns a budget with what is under it.
func (b Budgets) Get(ctx context.Context, name string, q *QueryOptions) (*BudgetStatus, *QueryMeta, error) {
	out := &BudgetStatus{}
	meta, err := b.c.get(ctx, q, out, "budget", name)
	return out, meta, err
}

// Put makes or changes a budget. The namespace is the budget's, else that of w.
func (b Budgets) Put(ctx context.Context, budget *Budget, w *WriteOptions) (*IndexResponse, error) {
	out := &IndexResponse{}
	return out, b.c.write(ctx, http.MethodPut, w.of(budget.Namespace), true, budget, out, "budget", budget.Name)
}

// Delete forgets a budget: nothing is held back by it any more.
func (b Budgets) Delete(ctx context.Context, name string, w *WriteOptions) (*IndexResponse, error) {
	out := &IndexResponse{}
	return out, b.c.write(ctx, http.MethodDelete, w, false, nil, out, "budget", name)
}
