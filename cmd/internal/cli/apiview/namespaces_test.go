package apiview

import (
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Jobs of different namespaces may have the same name, so that tables of several
// namespaces show which one.
func TestTables_NameNamespacesIfSeveral(t *testing.T) {
	t.Parallel()
	env := &cmdutil.Env{Clock: clock.NewVirtual(time.Unix(0, 0))}
	for _, tt := range []struct {
		name       string
		namespaces []string
		want       bool
	}{
		{"none", nil, false},
		{"one", []string{"red", "red"}, false},
		{"several", []string{"red", "red", "blue"}, true},
	} {
		var allocs []*client.AllocationStub
		var evals []*client.Evaluation
		for _, ns := range tt.namespaces {
			allocs = append(allocs, &client.AllocationStub{ID: "a", JobID: "work", Namespace: ns})
			evals = append(evals, &client.Evaluation{ID: "e", JobID: "work", Namespace: ns})
		}
		for kind, show := range map[string]func(cmdutil.Page){
			"allocations":          func(p cmdutil.Page) { AllocTable(p, env, allocs, false) },
			"evaluations":          func(p cmdutil.Page) { EvalTable(p, env, evals) },
			"allocations of a job": func(p cmdutil.Page) { AllocTable(p, env, allocs, true) },
		} {
			text := shown(t, show)
			want := tt.want && kind != "allocations of a job"
			header, _, _ := strings.Cut(text, "\n")
			if strings.Contains(header, "NAMESPACE") != want || strings.Contains(text, "blue") != want {
				t.Errorf("%s, %s: names namespaces: %v, want %v\n%s", tt.name, kind, !want, want, text)
			}
		}
	}
}
