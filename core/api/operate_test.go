package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/server"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/sdk/client"
)

// A module is loaded, shadowed, tried, activated, rolled back and unloaded.
func TestPolicies_LifecycleFromLoadToUnload(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	load := func(words, name string) *client.PolicyVersion {
		v, err := w.client.Policies().Load(ctx, &client.PolicyLoad{Name: name, Module: moduleBytes(words + strings.Repeat(".", 600<<10))})
		w.check(err)
		return v
	}
	one, two := load("one", "mine"), load("two", "mine")
	if one.ID == two.ID || one.Kind != "wasm" || !one.Checks["s1"].OK || one.Size < 600<<10 {
		t.Fatalf("loaded %+v", one)
	}
	status, err := w.client.Policies().Activate(ctx, "mine", one.ID)
	w.check(err)
	if status.Active != one.ID || status.Here == nil || status.Here.Version != one.ID || len(status.Loaded) != 2 {
		t.Errorf("after activate: %+v", status)
	}
	status, err = w.client.Policies().Shadow(ctx, "mine", two.ID[:20])
	w.check(err)
	if status.Shadow != two.ID {
		t.Errorf("after shadow: %+v", status)
	}
	w.waitFor("the shadow run has started", func() bool {
		status, _, err = w.client.Policies().Status(ctx, "mine", nil)
		w.check(err)
		return status.ShadowRun != nil && status.ShadowRun.Version == two.ID
	})
	if _, _, err := w.client.Policies().Differences(ctx, "mine", nil); err != nil {
		t.Error(err)
	}
	if status, err = w.client.Policies().Try(ctx, "mine", two.ID, time.Hour); err != nil || status.Until == 0 || status.Previous != one.ID {
		t.Errorf("on trial: %+v, %v", status, err)
	}
	if status, err = w.client.Policies().Rollback(ctx, "mine"); err != nil || status.Active != one.ID {
		t.Errorf("after rollback: %+v, %v", status, err)
	}
	if _, err := w.client.Policies().Unload(ctx, "mine", one.ID); !client.IsConflict(err) {
		t.Errorf("unloading the active version: %v", err)
	}
	list, _, err := w.client.Policies().List(ctx, nil)
	w.check(err)
	if len(list) != 3 || list[0].Name != "default" || !list[0].Builtin || list[2].Name != "mine" || list[2].Versions != 2 {
		t.Errorf("policies %+v", list)
	}
	w.checkModuleDownload(one, two)
	w.checkShortTrial("mine", two.ID)
	for what, err := range map[string]error{
		"unknown policy":  second(w.client.Policies().Status(ctx, "nothing", nil)),
		"unknown version": first(w.client.Policies().Activate(ctx, "mine", "sha256:0000")),
	} {
		if !client.IsNotFound(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// checkModuleDownload compares the downloaded modules of two versions, of which the
// first is active, with the uploaded ones.
func (w *fixture) checkModuleDownload(active, other *client.PolicyVersion) {
	w.t.Helper()
	for version, want := range map[string]*client.PolicyVersion{"": active, active.ID: active, other.ID[:20]: other} {
		m, err := w.client.Policies().Module(w.t.Context(), "mine", version)
		w.check(err)
		if m.Version != want.ID || m.Digest != want.Digest || bundle.Digest(m.Code) != want.Digest || int64(len(m.Code)) != want.Size {
			w.t.Errorf("version %q: %s of %d bytes, want %s", version, m.Version, len(m.Code), want.ID)
		}
	}
	for what, name := range map[string][2]string{"not_found": {"nothing", ""}, "conflict": {"default", ""}} {
		if _, err := w.client.Policies().Module(w.t.Context(), name[0], name[1]); !client.HasCode(err, what) {
			w.t.Errorf("%v: %v", name, err)
		}
	}
	if _, err := w.client.Policies().Module(w.t.Context(), "mine", "0g"); !client.IsNotFound(err) {
		w.t.Errorf("unknown version: %v", err)
	}
}

// An invalid policy is rejected with its problem. A form with unexpected parts is
// rejected as well.
func TestPolicies_LoadRejectionsHaveMessages(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	for what, load := range map[string]*client.PolicyLoad{
		"nothing":        {},
		"invalid module": {Module: []byte("#!/bin/sh")},
		"two things":     {Module: moduleBytes("x"), Builtin: "default"},
		"no such":        {Builtin: "nothing"},
		"bad settings":   {Module: moduleBytes("x"), Config: []byte(`{"nobody": 1}`)},
		"bad answer":     {Module: moduleBytes("x"), OnFault: "hope"},
		"not permitted":  {Executable: "/bin/sh"},
	} {
		if _, err := w.client.Policies().Load(ctx, load); !client.HasCode(err, client.CodeInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, body := range map[string]string{
		"another part":  "--b\r\nContent-Disposition: form-data; name=\"else\"\r\n\r\nx\r\n--b--\r\n",
		"a part twice":  "--b\r\nContent-Disposition: form-data; name=\"module\"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; name=\"module\"\r\n\r\ny\r\n--b--\r\n",
		"a broken form": "--b\r\nContent-Disposition: form-data; name=\"module\"\r\n\r\nx",
		"not a form":    "hello",
	} {
		resp, text := w.send("POST", "/v1/policies", body, "Content-Type", "multipart/form-data; boundary=b")
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", what, resp.StatusCode, text)
		}
	}
	resp, text := w.send("POST", "/v1/policies", "--b\r\nContent-Disposition: form-data; name=\"module\"\r\n\r\n"+strings.Repeat("x", client.MaxModule+1)+"\r\n--b--\r\n", "Content-Type", "multipart/form-data; boundary=b")
	if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(text, "module") {
		t.Errorf("a huge module: %d %s", resp.StatusCode, text)
	}
	resp, text = w.send("POST", "/v1/policies", `{"Builtin":"default","Title":"x"}`)
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "Title") {
		t.Errorf("a wrong field: %d %s", resp.StatusCode, text)
	}
}

func TestOperator_PausesBrokerAndCollectsGarbage(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	o := w.client.Operator()
	paused, err := o.BrokerPause(ctx)
	w.check(err)
	conf, _, err := w.client.Scheduler().Get(ctx, nil)
	w.check(err)
	if !paused.Paused || !paused.Enabled || !conf.PauseEvalBroker {
		t.Errorf("paused %+v, configuration %+v", paused, conf)
	}
	r, err := w.client.Jobs().Register(ctx, job("web", 50, 1, 10, 10), nil)
	w.check(err)
	w.waitFor("the evaluation is queued", func() bool {
		s, err := o.BrokerStatus(ctx)
		w.check(err)
		return s.Ready == 1 && s.ByType["service"].Ready == 1
	})
	resumed, err := o.BrokerResume(ctx)
	w.check(err)
	if resumed.Paused {
		t.Errorf("resumed %+v", resumed)
	}
	w.awaitEval(r.EvalID)
	_, err = w.client.Jobs().Stop(ctx, "web", &client.StopOptions{Purge: true})
	w.check(err)
	w.waitFor("everything is garbage-collected", func() bool {
		_, err := o.GC(ctx, true)
		w.check(err)
		_, _, err = w.client.Jobs().Get(ctx, "web", nil)
		return client.IsNotFound(err)
	})
}

// The configuration is updated field by field, so that a client with few fields keeps
// the others. A write with an outdated index has no effect.
func TestScheduler_KeepsFieldsAbsentFromRequest(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	delta := 25
	conf, _, err := w.client.Scheduler().Get(ctx, nil)
	w.check(err)
	conf.PriorityDelta, conf.OnFault, conf.SchedulerAlgorithm = &delta, "default", "spread"
	set, err := w.client.Scheduler().Set(ctx, conf, nil)
	w.check(err)
	resp, text := w.send("PUT", "/v1/operator/scheduler/configuration", `{"SchedulerAlgorithm":"binpack","PreemptionConfig":{"BatchSchedulerEnabled":true},"NodeLimitForFeasibilityChecks":0}`)
	if resp.StatusCode != http.StatusOK {
		t.Fatal(text)
	}
	conf, _, err = w.client.Scheduler().Get(ctx, nil)
	w.check(err)
	if conf.PriorityDelta == nil || *conf.PriorityDelta != 25 || conf.OnFault != "default" || conf.SchedulerAlgorithm != "binpack" || !conf.PreemptionConfig.BatchSchedulerEnabled {
		t.Errorf("configuration %+v", conf)
	}
	old := set.Index
	if again, err := w.client.Scheduler().Set(ctx, conf, &old); err != nil || again.Updated {
		t.Errorf("written with an outdated index: %+v, %v", again, err)
	}
	if again, err := w.client.Scheduler().Set(ctx, conf, &conf.ModifyIndex); err != nil || !again.Updated {
		t.Errorf("not written with the current index: %+v, %v", again, err)
	}
	for _, bad := range []string{`{"SchedulerAlgorithm":"random"}`, `{"PriorityDelta":-1}`, `{"Policy":"nothing"}`, `{"OnFault":"hope"}`, `{"RejectJobRegistration":true}`, `{"Unknown":true}`} {
		if resp, text := w.send("PUT", "/v1/scheduler/configuration", bad); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, resp.StatusCode, text)
		}
	}
	for method, path := range map[string]string{"PUT": "/v1/scheduler/configuration", "POST": "/v1/rebalance/plan"} {
		resp, text := w.send(method, path, `{"Moves":{"PerJob":0,"Window":0}}`)
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "between 1 and 2147483647") || !strings.Contains(text, "Moves.Window 0") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
}

// Absent gates keep their value, null restores the default, and an unknown gate is
// rejected with any value. A rejected request changes nothing. Regression: bodies
// were once decoded into the stored values.
func TestScheduler_FeatureGatesAreMergedByName(t *testing.T) {
	w := start(t)
	put := func(body string, status int, gates string) {
		t.Helper()
		if resp, text := w.send("PUT", "/v1/scheduler/configuration", body); resp.StatusCode != status {
			t.Errorf("%s: %d %s", body, resp.StatusCode, text)
		} else if strings.Contains(body, "NoSuch") && !strings.Contains(text, "the feature gates are PriorityBasedScheduling, ") {
			t.Errorf("%s: the error does not list the gates: %s", body, text)
		}
		conf, _, err := w.client.Scheduler().Get(t.Context(), nil)
		w.check(err)
		var list []string
		for _, gate := range conf.FeatureGates.All() {
			if *gate.Value != nil {
				list = append(list, fmt.Sprint(gate.Name, " ", gate.On()))
			}
		}
		if got := strings.Join(list, ", "); got != gates {
			t.Errorf("after %s: %q, want %q", body, got, gates)
		}
	}
	const off, both = "PriorityBasedScheduling false", "PriorityBasedScheduling false, StrictPriorityClasses true"
	put(`{"FeatureGates":{"PriorityBasedScheduling":false}}`, http.StatusOK, off)
	put(`{"FeatureGates":{"StrictPriorityClasses":true}}`, http.StatusOK, both)
	put(`{"FeatureGates":{}}`, http.StatusOK, both)
	put(`{}`, http.StatusOK, both)
	put(`{"FeatureGates":{"NoSuch":true}}`, http.StatusBadRequest, both)
	put(`{"featuregates":{"NoSuch":false}}`, http.StatusBadRequest, both)
	put(`{"FeatureGates":{"NoSuch":null,"PriorityBasedScheduling":true}}`, http.StatusBadRequest, both)
	put(`{"FeatureGates":{"PriorityBasedScheduling":"no"}}`, http.StatusBadRequest, both)
	put(`{"FeatureGates":{"StrictPriorityClasses":null}}`, http.StatusOK, off)
}

// A field that a client removes from the configuration returns to its default.
func TestScheduler_NullRestoresDefault(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	conf, _, err := w.client.Scheduler().Get(ctx, nil)
	w.check(err)
	conf.PriorityDelta, conf.Coalescing, conf.FeatureGates.PriorityBasedScheduling = new(25), new(false), new(false)
	_, err = w.client.Scheduler().Set(ctx, conf, nil)
	w.check(err)
	conf, _, err = w.client.Scheduler().Get(ctx, nil)
	w.check(err)
	if conf.PriorityDelta == nil || conf.Coalescing == nil || conf.FeatureGates.PriorityBasedScheduling == nil {
		t.Fatalf("not written: %+v", conf)
	}
	conf.PriorityDelta, conf.Coalescing, conf.FeatureGates.PriorityBasedScheduling = nil, nil, nil
	_, err = w.client.Scheduler().Set(ctx, conf, nil)
	w.check(err)
	conf, _, err = w.client.Scheduler().Get(ctx, nil)
	w.check(err)
	if conf.PriorityDelta != nil || conf.Coalescing != nil || conf.FeatureGates.PriorityBasedScheduling != nil {
		t.Errorf("still set: %+v", conf)
	}
}

// Restoring a snapshot brings back the state at the time it was saved.
func TestSnapshot_SavesAndRestores(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.register(job("kept", 50, 1, 10, 10))
	var file bytes.Buffer
	w.check(w.client.Operator().SnapshotSave(ctx, &file))
	w.register(job("later", 50, 1, 10, 10))
	before, err := w.client.Operator().RaftStatus(ctx)
	w.check(err)
	if before.State != "leader" && before.State != "Leader" || before.LeaderID != "s1" || before.AppliedIndex == 0 || len(before.Servers) != 1 {
		t.Errorf("raft %+v", before)
	}
	if err := w.client.Operator().SnapshotRestore(ctx, strings.NewReader("not a snapshot")); !client.HasCode(err, client.CodeInvalid) {
		t.Errorf("an invalid snapshot: %v", err)
	}
	w.check(w.client.Operator().SnapshotRestore(ctx, bytes.NewReader(file.Bytes())))
	w.waitFor("the state equals the snapshot", func() bool {
		_, _, err := w.client.Jobs().Get(ctx, "later", nil)
		return client.IsNotFound(err)
	})
	if _, _, err := w.client.Jobs().Get(ctx, "kept", nil); err != nil {
		t.Error(err)
	}
	after, err := w.client.Operator().RaftStatusWithHash(ctx)
	w.check(err)
	if len(after.StateHash) != 64 || after.StateIndex == 0 || before.StateHash != "" {
		t.Errorf("raft %+v, before %+v", after, before)
	}
}

// failingSnapshotLog fails in the middle of a snapshot.
type failingSnapshotLog struct{ Replication }

func (failingSnapshotLog) SaveSnapshot(_ context.Context, w io.Writer) error {
	_, _ = w.Write([]byte("half"))
	return errors.New("the disk is full")
}

func TestSnapshot_TruncatedIsRejected(t *testing.T) {
	w := start(t, func(c *Config) { c.Replication = failingSnapshotLog{c.Replication} })
	var file bytes.Buffer
	if err := w.client.Operator().SnapshotSave(t.Context(), &file); err == nil {
		t.Errorf("an incomplete snapshot was accepted: %q", file.String())
	}
}

func TestHealth_ReportsFailedChecks(t *testing.T) {
	w := start(t)
	h, err := w.client.Status().Health(t.Context())
	w.check(err)
	if !h.OK || len(h.Checks) == 0 {
		t.Errorf("health %+v", h)
	}
	sick := start(t, func(c *Config) { c.Server = unreadyServer{c.Server} })
	h, err = sick.client.Status().Health(t.Context())
	sick.check(err)
	if h.OK || len(h.Checks) != 1 || h.Checks[0].Detail != "full" {
		t.Errorf("health %+v", h)
	}
	if resp, _ := sick.send("GET", "/healthz", ""); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("healthz: %d", resp.StatusCode)
	}
	if resp, _ := sick.send("GET", "/livez", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("livez: %d", resp.StatusCode)
	}
}

type unreadyServer struct{ Server }

func (unreadyServer) Ready(context.Context) []server.Check {
	return []server.Check{{Name: "storage", Detail: "full"}}
}

func TestReload_ReturnsChanges(t *testing.T) {
	fails := errors.New("line 7: unknown key")
	w := start(t, func(c *Config) {
		c.Process.Reload = func(context.Context) ([]string, error) { return []string{"log.level"}, fails }
	})
	if _, err := w.client.Operator().Reload(t.Context()); !client.HasCode(err, client.CodeInvalid) || !strings.Contains(err.Error(), "line 7") {
		t.Errorf("a bad configuration: %v", err)
	}
	fails = nil
	r, err := w.client.Operator().Reload(t.Context())
	w.check(err)
	if !slices.Equal(r.Changed, []string{"log.level"}) {
		t.Errorf("changed %v", r.Changed)
	}
}

// follower is a server that is not the leader.
type follower struct{ Replication }

func (follower) IsLeader() bool { return false }

// leaderlessFollower is a server that never had contact with a leader.
type leaderlessFollower struct{ follower }

func (leaderlessFollower) Leader() (id, addr string) { return "", "" }

func (leaderlessFollower) Stats() raftnode.Stats { return raftnode.Stats{LastContact: "never"} }

// Without any contact with a leader, the reported age is the time since the start,
// because the state may be that old.
func TestLastContact_WithoutLeader(t *testing.T) {
	now := clock.NewVirtual(time.Unix(1000, 0))
	w := start(t, func(c *Config) { c.Clock, c.Replication = now, leaderlessFollower{follower{c.Replication}} })
	now.AdvanceTo(time.Unix(1007, 0))
	resp, err := http.Get(w.url + "/v1/jobs?stale=true")
	w.check(err)
	defer resp.Body.Close()
	if known, ago := resp.Header.Get(headerLeader), resp.Header.Get(headerContact); known != "false" || ago != "7000" {
		t.Errorf("known leader %s, last contact %s ms, want 7000", known, ago)
	}
}

// notLeaderServer rejects writes, as on a follower.
type notLeaderServer struct{ Server }

func (notLeaderServer) PauseBroker(context.Context) (uint64, error) {
	return 0, &apierror.Error{Code: apierror.CodeNotLeader, Message: "s1 leads"}
}

// Requests that only the leader can handle are forwarded once. Others are handled
// locally.
func TestFollower_ForwardsToLeader(t *testing.T) {
	leads := start(t)
	url := leads.url
	w := start(t, func(c *Config) {
		c.ID, c.Replication, c.Server = "s2", follower{c.Replication}, notLeaderServer{c.Server}
		c.Process.LeaderURL = func() string { return url }
		c.ForwardTransport = leads.http.Transport
	})
	ctx := t.Context()
	if _, err := w.client.Jobs().Register(ctx, job("web", 50, 1, 10, 10), nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := leads.client.Jobs().Get(ctx, "web", nil); err != nil {
		t.Errorf("missing on the leader: %v", err)
	}
	if _, _, err := w.client.Jobs().Get(ctx, "web", nil); !client.IsNotFound(err) {
		t.Errorf("a stale read was forwarded: %v", err)
	}
	if _, _, err := w.client.Jobs().Get(ctx, "web", &client.QueryOptions{Consistent: true}); err != nil {
		t.Errorf("a consistent read was not forwarded: %v", err)
	}
	resp, text := w.send("PUT", "/v1/operator/broker/pause", "", headerForwarded, "s3")
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, `"no_leader"`) || strings.Contains(text, "not_leader") {
		t.Errorf("forwarded twice: %d %s", resp.StatusCode, text)
	}
	resp, _ = w.send("GET", "/v1/jobs?consistent=true", "")
	for _, once := range []string{headerNoSniff, headerRequestID, headerIndex} {
		if len(resp.Header.Values(once)) != 1 {
			t.Errorf("%s: %q", once, resp.Header.Values(once))
		}
	}
	url = "http://127.0.0.1:1"
	if _, err := w.client.Jobs().Register(ctx, job("web", 50, 1, 10, 10), nil); !client.HasCode(err, client.CodeNoLeader) {
		t.Errorf("an unreachable leader: %v", err)
	}
}

// The suspended process of a leader keeps its connections and never responds. Once
// another server leads, callers that wait for it receive an error. The leader may have
// executed a write before it was suspended, so only reads report that nothing happened.
func TestFollower_StopsWaitingForDeposedLeader(t *testing.T) {
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"/v1/operator/broker/pause": {http.StatusGatewayTimeout, client.CodeUnknownOutcome},
		"/v1/job/web/plan":          {http.StatusServiceUnavailable, client.CodeNoLeader},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w := startBehindSuspendedLeader(t)
			resp, text := w.send("PUT", path, "{}")
			if resp.StatusCode != want.status || !strings.Contains(text, strconv.Quote(want.code)) || !strings.Contains(text, "lost leadership") {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
		})
	}
}

// startBehindSuspendedLeader starts a follower whose leader accepts one connection,
// never responds, and loses leadership when it has received a request.
func startBehindSuspendedLeader(t *testing.T) *fixture {
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hangs.Close() })
	var leader atomic.Pointer[string]
	set := func(url string) { leader.Store(&url) }
	set("http://" + hangs.Addr().String())
	w := start(t, func(c *Config) {
		c.ID, c.Replication, c.Server = "s2", follower{c.Replication}, notLeaderServer{c.Server}
		c.Process.LeaderURL = func() string { return *leader.Load() }
	})
	go func() {
		conn, err := hangs.Accept() // the request was forwarded
		if err == nil {
			defer func() { _ = conn.Close() }()
			_, _ = conn.Read(make([]byte, 1))
			set("http://127.0.0.1:1")
			<-t.Context().Done()
		}
	}()
	return w
}

func TestNodes_ValidatedBeforeRegistration(t *testing.T) {
	w := start(t)
	bad := nodeSpec("n1", -1, 1)
	bad.Devices = []client.NodeDevice{{ID: "gpu", Count: 1}, {ID: "a/b/c", Count: 0}}
	bad.Capacity[""] = 7
	_, err := w.client.NodeAgent().Register(t.Context(), bad, testNodeSecret)
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Code != client.CodeInvalid {
		t.Fatalf("an invalid node: %v", err)
	}
	if list, _ := e.Details["Problems"].([]any); len(list) != 4 {
		t.Errorf("problems %v", e.Details)
	}
	w.addNode("n1", 100, 100)
	for what, err := range map[string]error{
		"unknown status":      first(w.client.NodeAgent().Update(t.Context(), "n1", testNodeSecret, []client.AllocUpdate{{AllocID: "a", ClientStatus: "lost"}})),
		"invalid eligibility": registerNodeTwice(w, "PUT", "/v1/node/n1/eligibility", `{"Eligibility":"maybe"}`),
		"another node":        registerNodeTwice(w, "PUT", "/v1/node/n1/eligibility", `{"NodeID":"n2","Eligibility":"eligible"}`),
	} {
		if !client.HasCode(err, client.CodeInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.check(first(w.client.Nodes().Delete(t.Context(), "n1")))
	if _, _, err := w.client.Nodes().Get(t.Context(), "n1", nil); !client.IsNotFound(err) {
		t.Errorf("after delete: %v", err)
	}
}

func registerNodeTwice(w *fixture, method, path, body string) error {
	resp, text := w.send(method, path, body)
	if resp.StatusCode < 400 {
		return nil
	}
	return &client.Error{Code: map[bool]string{true: client.CodeInvalid}[resp.StatusCode == http.StatusBadRequest], Message: text}
}

// Requests that a follower forwards count against the rate of their caller at the
// follower, and not against the follower here. A forged header does not exempt a
// client.
func TestRateLimit_ExemptsForwardedRequests(t *testing.T) {
	var peers []Member
	w := start(t, func(c *Config) {
		c.Limits.Rate, c.Limits.Burst = 0.001, 1
		c.Process.Members = func() []Member { return peers }
	})
	ask := func() int {
		resp, _ := w.send("GET", "/v1/status/peers", "", headerForwarded, "s2")
		return resp.StatusCode
	}
	if got := []int{ask(), ask()}; !slices.Equal(got, []int{http.StatusOK, http.StatusTooManyRequests}) {
		t.Errorf("a client outside the pool: %v", got)
	}
	peers = []Member{{Name: "s2", Address: "127.0.0.1:7946", Status: "alive"}}
	if got := ask(); got != http.StatusOK {
		t.Errorf("a server of the pool: %d", got)
	}
}

// checkShortTrial starts a trial that is too short for a verdict, and reads its course.
func (w *fixture) checkShortTrial(name, version string) {
	w.t.Helper()
	ctx := w.t.Context()
	if _, _, err := w.client.Policies().TrialCourse(ctx, name, "victims", nil); !client.IsNotFound(err) {
		w.t.Errorf("course without a trial: %v", err)
	}
	bad := &client.PolicyTrialRequest{Version: version, For: -1, Block: time.Second, Washout: time.Hour}
	_, err := w.client.Policies().Trial(ctx, name, bad)
	for _, problem := range []string{"For must be positive", "Block must be at least 1m0s", "Washout must be shorter", "StopIf or PromoteIf is required"} {
		if err == nil || !strings.Contains(err.Error(), problem) {
			w.t.Errorf("a trial with four problems: %v, want %q", err, problem)
		}
	}
	request := &client.PolicyTrialRequest{Version: version, For: 15 * time.Minute, Block: time.Minute, StopIf: "worse(victims, candidate, active)"}
	status, err := w.client.Policies().Trial(ctx, name, request)
	w.check(err)
	if t := status.Trial; t.LeastPairs != 8 || t.MostPairs != 7 || !strings.Contains(t.Warning, "at least 8 pairs of blocks, and For contains 7; no job uses policy "+name) {
		w.t.Errorf("a short trial: %+v", t)
	}
	course, _, err := w.client.Policies().TrialCourse(ctx, name, "victims", nil)
	w.check(err)
	if course.Policy != name || course.Metric != "victims" || course.Trial.Candidate != version || course.Points == nil || course.Blocks == nil {
		w.t.Errorf("course %+v", course)
	}
	if _, _, err := w.client.Policies().TrialCourse(ctx, name, "beauty", nil); err == nil || !strings.Contains(err.Error(), `do not measure "beauty"`) {
		w.t.Errorf("course of an unknown metric: %v", err)
	}
	_, err = w.client.Policies().Rollback(ctx, name) // the candidate may be active in the first block
	w.check(err)
	request.For = 17 * time.Minute
	if status, err = w.client.Policies().Trial(ctx, name, request); err != nil || strings.Contains(status.Trial.Warning, "pairs of blocks") {
		w.t.Errorf("a trial of eight pairs: %+v, %v", status.Trial, err)
	}
	_, err = w.client.Policies().Rollback(ctx, name)
	w.check(err)
}
