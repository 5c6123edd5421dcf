package audit_test

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/audit"
	"github.com/cede-scheduler/cede/core/state"
)

// stateAt returns a state of a cluster at a version of the log.
func stateAt(version uint32, write func(*state.Txn)) *state.Snapshot {
	store := state.New()
	txn := store.Begin(1)
	meta := txn.Meta()
	meta.Version = version
	txn.ConfigWriter().SetMeta(meta)
	if write != nil {
		write(txn)
	}
	return txn.Commit()
}

// change sets a field to a value that differs from its zero value.
func change(t *testing.T, f reflect.Value) {
	t.Helper()
	switch f.Kind() {
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.String:
		f.SetString("other")
	case reflect.Int32:
		f.SetInt(7)
	case reflect.Uint8:
		f.SetUint(1)
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
	case reflect.Array:
		change(t, f.Index(0))
	default:
		t.Fatalf("field of kind %s: extend this test", f.Kind())
	}
}

// A change of any setting is visible in the detail of its record.
func TestDescribe_ShowsEveryChangedSetting(t *testing.T) {
	t.Parallel()
	snap := stateAt(replication.Newest, nil)
	var walk func(of func(*model.SchedulerConfig) reflect.Value)
	walk = func(of func(*model.SchedulerConfig) reflect.Value) {
		kind := of(&model.SchedulerConfig{}).Type()
		for i := range kind.NumField() {
			field := func(c *model.SchedulerConfig) reflect.Value { return of(c).Field(i) }
			switch name := kind.Field(i).Name; {
			case name == "ModifyIndex":
			case kind.Field(i).Type.Kind() == reflect.Struct:
				walk(field)
			default:
				next := *snap.Config()
				change(t, field(&next))
				r := audit.Describe(snap, &replication.SetConfig{Config: &next})
				if r.Action != "scheduler.config" || !strings.Contains(r.Detail, " -> ") {
					t.Errorf("field %s: %+v", name, r)
				}
			}
		}
	}
	walk(func(c *model.SchedulerConfig) reflect.Value { return reflect.ValueOf(c).Elem() })
}

func TestDescribe_ComparesWithTheState(t *testing.T) {
	t.Parallel()
	snap := stateAt(replication.Newest, func(txn *state.Txn) {
		txn.NamespaceWriter().Upsert(&model.Namespace{Name: "web", Weight: 2, Description: "old"})
		txn.TokenWriter().Upsert(&model.Token{Accessor: "a1", Name: "ci", Roles: []string{"submit", "policy"}, Namespace: "web"})
		txn.PriorityClassWriter().Upsert(&model.PriorityClass{Name: "gold", Value: 70})
		txn.PolicyWriter().UpsertState(&model.PolicyState{Name: "p", Active: "sha256:00112233445566"})
	})
	for _, c := range []struct {
		command                replication.Command
		action, object, detail string
	}{
		{&replication.UpsertNamespace{Namespace: &model.Namespace{Name: "web", Description: "new"}}, "namespace.put", "web", `description: "old" -> "new"`},
		{&replication.UpsertNamespace{Namespace: &model.Namespace{Name: "db"}}, "namespace.put", "db", `weight: 1, description: ""`},
		{&replication.DeleteToken{Accessor: "a1"}, "token.delete", "a1", `name "ci", roles submit policy, namespace web`},
		{&replication.UpsertPriorityClass{Class: &model.PriorityClass{Name: "gold", Value: 90}}, "priority-class.put", "gold", "value: 70 -> 90"},
		{&replication.UpsertPriorityClass{Class: &model.PriorityClass{Name: "gold", Value: 70}}, "priority-class.put", "gold", "no field differs"},
		{&replication.DeleteBudget{Key: model.BudgetKey{Namespace: "web", Name: "b"}}, "budget.delete", "web/b", "no field differs"},
		{&replication.ChangePolicy{Name: "p", Op: replication.OpActivate, Version: "sha256:aabbccddeeff00", Force: true}, "policy.activate", "p", "version aabbccddeeff, active was 001122334455, forced"},
		{&replication.ChangePolicy{Name: "p", Op: replication.OpRollback, Until: 5}, "policy.rollback", "p", "active was 001122334455, the time of the trial was over"},
		{&replication.Collect{Policies: []string{"sha256:aabbccddeeff00"}}, "policy.collect", "", "unused versions aabbccddeeff"},
		{&replication.RestoreState{Digest: "snapshot:x"}, "snapshot.restore", "snapshot:x", "the state of index 1 was replaced"},
	} {
		r := audit.Describe(snap, c.command)
		if r == nil || r.Action != c.action || r.Object != c.object || r.Detail != c.detail {
			t.Errorf("%T: %+v", c.command, r)
		}
	}
	for _, c := range []replication.Command{
		&replication.ChangePolicy{Name: "p", Op: replication.OpBlock}, &replication.Collect{Evals: []string{"e"}}, &replication.WriteEvals{},
	} {
		if r := audit.Describe(snap, c); r != nil {
			t.Errorf("%T: %+v", c, r)
		}
	}
}

// The origin is that of the request. An entry without a request is the server's own, and
// the verdict of a trial is the trial's, in any context.
func TestStamp_SetsTheOrigin(t *testing.T) {
	t.Parallel()
	snap := stateAt(replication.Newest, nil)
	origin := model.AuditOrigin{Actor: "a1", ActorName: "ci", Address: "10.0.0.7", Via: "s2", RequestID: "r"}
	request := audit.WithOrigin(t.Context(), origin)
	forged := &model.AuditRecord{Action: "policy.load", AuditOrigin: model.AuditOrigin{Actor: "someone"}}
	trip := func() *replication.Entry {
		return &replication.Entry{Command: &replication.ChangePolicy{Name: "p", Op: replication.OpTrip}, Audit: forged}
	}

	e := trip()
	audit.Stamp(request, snap, e)
	if e.Audit.AuditOrigin != origin || e.Audit.Action != "policy.trip" {
		t.Errorf("of a request: %+v", e.Audit)
	}
	e = trip()
	audit.Stamp(t.Context(), snap, e)
	if e.Audit.AuditOrigin != (model.AuditOrigin{Actor: model.ServerActor}) {
		t.Errorf("of the server: %+v", e.Audit)
	}
	e = &replication.Entry{Command: &replication.ChangePolicy{Name: "p", Op: replication.OpRollback, Actor: model.TrialActor}}
	audit.Stamp(request, snap, e)
	if e.Audit.AuditOrigin != (model.AuditOrigin{Actor: model.TrialActor}) {
		t.Errorf("of a trial: %+v", e.Audit)
	}
	e = &replication.Entry{Command: &replication.WriteEvals{}, Audit: forged}
	audit.Stamp(request, snap, e)
	if e.Audit != nil {
		t.Errorf("of evaluations: %+v", e.Audit)
	}
}

// Servers of the first version do not read records.
func TestStamp_WaitsForTheClusterVersion(t *testing.T) {
	t.Parallel()
	e := &replication.Entry{Command: &replication.DeleteToken{Accessor: "a"}}
	audit.Stamp(t.Context(), stateAt(1, nil), e)
	if e.Audit != nil {
		t.Errorf("%+v", e.Audit)
	}
}

func TestStamp_BoundsTheText(t *testing.T) {
	t.Parallel()
	e := &replication.Entry{Command: &replication.ChangePolicy{Name: strings.Repeat("ä", 4000), Op: replication.OpTrip, Reason: "\xff" + strings.Repeat("€", 4000)}}
	audit.Stamp(t.Context(), stateAt(replication.Newest, nil), e)
	for _, text := range []string{e.Audit.Object, e.Audit.Detail} {
		if len(text) > 1<<10 || len(text) < 1000 || !utf8.ValidString(text) || !strings.HasSuffix(text, "…") {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
}
