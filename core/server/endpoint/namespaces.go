package endpoint

import (
	"context"
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/suggest"
)

// Namespaces stores and deletes namespaces. Objects need no stored namespace: one that is
// not stored has the default weight.
type Namespaces struct{ writer *logwriter.Writer }

// A NamespaceRequest describes a namespace to store.
type NamespaceRequest struct {
	Name        string
	Description string
	Weight      *float64 // nil: that of the stored namespace, or the default
	// Check is the ModifyIndex that the namespace must have; 0: it must not be stored;
	// nil: any.
	Check *uint64
}

// PutNamespace stores a namespace, or a new version of it.
func (e *Namespaces) PutNamespace(ctx context.Context, r NamespaceRequest) (uint64, error) {
	n := &model.Namespace{Name: r.Name, Description: r.Description}
	checks := []fieldcheck.Problem{fieldcheck.NamespaceName(r.Name), fieldcheck.NamespaceText(r.Description)}
	if r.Weight != nil {
		n.Weight = *r.Weight
		checks = append(checks, fieldcheck.NamespaceWeight(n.Weight))
	}
	var problems, remedies []string
	for _, p := range checks {
		if p.Found() {
			problems, remedies = append(problems, p.Text), append(remedies, p.Remedy)
		}
	}
	if len(problems) > 0 {
		return 0, apierror.New(apierror.CodeInvalid, "namespace %.60q: %s", r.Name, strings.Join(problems, "; ")).
			WithHint("%s", strings.Join(remedies, "; ")).WithDetails(map[string]any{"Problems": problems})
	}
	return e.writer.CommitIndex(ctx, &replication.UpsertNamespace{Namespace: n, Check: r.Check})
}

// DeleteNamespace removes a namespace that contains nothing. The error lists what it
// contains. check is the ModifyIndex that the namespace must have; nil: any.
func (e *Namespaces) DeleteNamespace(ctx context.Context, name string, check *uint64) (uint64, error) {
	if name == model.DefaultNamespace {
		return 0, apierror.New(apierror.CodeInvalid, "namespace %s cannot be deleted", name).
			WithHint("set its weight to 1 and its description to an empty text instead")
	}
	err := e.writer.Check(ctx, func(snap *state.Snapshot) error {
		in := snap.ObjectsIn(name, e.writer.Now())
		switch {
		case !in.IsEmpty():
			return apierror.New(apierror.CodeConflict, "namespace %s contains %s", name, in).
				WithHint("stop its jobs and bindings, and delete its budgets and tokens first")
		case snap.Namespace(name) == nil:
			return apierror.New(apierror.CodeNotFound, "no namespace %q", name)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return e.writer.CommitIndex(ctx, &replication.DeleteNamespace{Name: name, Check: check})
}

// namespaceWarnings returns a warning if nothing is in a namespace that is not stored:
// its name may be mistyped.
func namespaceWarnings(snap *state.Snapshot, name string) []string {
	if name == model.DefaultNamespace || snap.Namespace(name) != nil || snap.UsesNamespace(name) {
		return nil
	}
	known := []string{model.DefaultNamespace}
	for _, n := range snap.Namespaces() {
		known = append(known, n.Name)
	}
	for j := range snap.Jobs() {
		if j.Namespace != known[len(known)-1] { // jobs are in the order of their namespaces
			known = append(known, j.Namespace)
		}
	}
	text := fmt.Sprintf("namespace %q was not created, and nothing else is in it", name)
	if near := suggest.Nearest(name, known); near != "" {
		text += ": " + suggest.Question(near)
	}
	return []string{text}
}
