package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/membership"
)

// A linkedHost has one policy, which needs no module.
type linkedHost struct{ builtinHost }

var linkedModule = []byte{1}

func (linkedHost) Describe(ctx context.Context, _ policy.LoadRequest) (*model.PolicyVersion, error) {
	v, err := simHost{}.Describe(ctx, policy.LoadRequest{Module: linkedModule})
	if err != nil {
		return nil, err
	}
	v.Kind, v.Size = model.PolicyBuiltin, 0
	return v, nil
}

func (linkedHost) Open(_ context.Context, v *model.PolicyVersion, _ []byte) (*policy.Version, error) {
	return openOrderPolicy(v.Digest, linkedModule)
}

// A voter that is down does not block a caller that does not wait, and the response reports
// the reason.
func TestLoadPolicy_ReportsMissingChecks(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, func(c *Config) { c.Policies = linkedHost{} }, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		down := w.follower()
		down.halt()
		awaits := func(words string) {
			t.Helper()
			s, began := w.leader().server, time.Now()
			v, err := s.LoadPolicy(w.ctx, policy.LoadRequest{Wait: time.Minute})
			if took := time.Since(began); err != nil || took < time.Minute || took > time.Minute+time.Second { // writes may take time
				t.Fatalf("%v after %v", err, took)
			}
			awaited := s.AwaitedChecks(v)
			if len(v.Checks) != 2 || len(awaited) != 1 || !strings.Contains(awaited[down.id], words) {
				t.Errorf("%d checks, awaiting %v; want %q", len(v.Checks), awaited, words)
			}
			st, err := s.PolicyStatus(w.ctx, simPolicy)
			if err != nil || st.Awaited[v.ID][down.id] != awaited[down.id] {
				t.Errorf("status: %v, %v", st.Awaited, err)
			}
			_, err = s.ActivatePolicy(w.ctx, simPolicy, v.ID)
			if apierror.CodeOf(err) != apierror.CodeConflict || !strings.Contains(err.Error(), down.id+" has not checked it yet") {
				t.Errorf("activate: %v", err)
			}
		}
		awaits("it has been down since 2")
		w.pool.mu.Lock()
		was := w.pool.members[down.id]
		delete(w.pool.members, down.id)
		w.pool.mu.Unlock()
		awaits("cede operator raft remove " + down.id)
		was.Status = membership.MemberAlive
		w.pool.mu.Lock()
		w.pool.members[down.id] = was
		w.pool.mu.Unlock()
		awaits("see its log")
		down.start()
		v, err := w.leader().server.LoadPolicy(w.ctx, policy.LoadRequest{Wait: time.Minute})
		if err != nil || len(v.Checks) != 3 || len(w.leader().server.AwaitedChecks(v)) != 0 {
			t.Errorf("with all servers: %+v, %v", v, err)
		}
	})
}
