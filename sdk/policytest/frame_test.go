package policytest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/decay"
)

// The input of a hook, as a case, has the same input again: apart from the order of strings,
// and from names, which it does not contain.
func TestCaseOf_DecidesAsTheInput(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	subjects := []*policytest.Subject{policytest.Of(policytest.Configured(t, decay.New(), `{"grace":"1m"}`)), {}}
	for i := range policytest.Count(t) / 20 {
		c := policytest.Random(r, policytest.Shape{Options: 4, Rows: 6, Devices: true, MustLeave: true, Work: true, Tenants: true, Budgets: true, Relocation: true})
		again := policytest.CaseOf(c.Candidates())
		a, b := c.Candidates(), again.Candidates()
		for name, columns := range map[string][2]any{
			"need": {a.Need, b.Need}, "device need": {a.DeviceNeed, b.DeviceNeed}, "priority": {a.Rows.Priority, b.Rows.Priority},
			"use": {a.Rows.Use, b.Rows.Use}, "start": {a.Rows.Start, b.Rows.Start}, "lost work": {a.Rows.LostWork, b.Rows.LostWork},
			"budgets": {a.Rows.Budgets, b.Rows.Budgets}, "totals": {a.Shared.Totals, b.Shared.Totals}, "relocation": {a.Rows.DisplacedLostWork, b.Rows.DisplacedLostWork},
			"use of namespaces": {a.Shared.Namespaces.Use, b.Shared.Namespaces.Use}, "must leave": {a.MustLeave, b.MustLeave},
		} {
			if fmt.Sprint(columns[0]) != fmt.Sprint(columns[1]) {
				t.Fatalf("case %d: %s is %v, then %v\n%s", i, name, columns[0], columns[1], policytest.Format(c))
			}
		}
		for _, s := range subjects {
			x, err := s.Decide(c)
			if err != nil {
				t.Fatal(err)
			}
			y, err := s.Decide(again)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(x.Victims, y.Victims); d != "" {
				t.Fatalf("case %d: %s\n%s", i, d, policytest.Format(c))
			}
		}
		if text, err := policytest.Parse(policytest.Format(again)); err != nil || len(text.Options) != len(c.Options) || !slices.Equal(text.Dims, c.Dims) {
			t.Fatalf("case %d does not parse: %v\n%s", i, err, policytest.Format(again))
		}
	}
}
