package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/clitest"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/client"
)

const (
	oldVersion = "sha256:1111111111110000000000000000000000000000000000000000000000000000"
	newVersion = "sha256:2222222222220000000000000000000000000000000000000000000000000000"
)

// asked is a request of a command to the server.
type asked struct {
	route string
	body  map[string]string // by part; "" is the complete body
}

// policyServer answers every route with a value or an error, and records the
// requests.
func policyServer(t *testing.T, answers map[string]any) (url string, requests func() []asked) {
	t.Helper()
	var list []asked
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/agent/members" {
			serveMembers(w, answers)
			return
		}
		got := asked{route: r.Method + " " + r.URL.Path, body: map[string]string{}}
		if form, err := r.MultipartReader(); err == nil {
			for part, err := form.NextPart(); err == nil; part, err = form.NextPart() {
				text, _ := io.ReadAll(part)
				got.body[part.FormName()] = string(text)
			}
		} else {
			text, _ := io.ReadAll(r.Body)
			got.body[""] = string(text)
		}
		list = append(list, got)
		w.Header().Set("Content-Type", "application/json")
		answer := answers[got.route]
		if e, ok := answer.(*client.Error); ok {
			w.WriteHeader(e.StatusCode)
		}
		if answer == nil {
			t.Errorf("unexpected request %s", got.route)
			w.WriteHeader(http.StatusNotFound)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []asked { return list }
}

// serveMembers answers with the servers of the pool, by default without names. Requests for
// them are not recorded.
func serveMembers(w http.ResponseWriter, answers map[string]any) {
	var members any = &client.Members{}
	if given := answers["members"]; given != nil {
		members = given
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(members)
}

func thriftyStatus(change func(*client.PolicyStatus)) *client.PolicyStatus {
	st := &client.PolicyStatus{
		PolicyStub: client.PolicyStub{Name: "thrifty", Active: oldVersion, Versions: 2},
		Loaded: []*client.PolicyVersion{
			{ID: newVersion, Name: "thrifty", Kind: "wasm", Size: 2048, Checks: map[string]client.PolicyCheck{"s1": {OK: true}}},
			{ID: oldVersion, Name: "thrifty", Kind: "builtin", Checks: map[string]client.PolicyCheck{"s1": {Error: "trap"}}},
		},
		Here: &client.PolicyHere{Version: oldVersion, Calls: 1200, Faults: 1},
	}
	if change != nil {
		change(st)
	}
	return st
}

func TestPolicyCommands_SendRequestsAndPrintResults(t *testing.T) {
	active := thriftyStatus(func(st *client.PolicyStatus) { st.Active, st.Previous = newVersion, oldVersion })
	for _, c := range []struct {
		args, route, body, out string
		answer                 any
	}{
		{"policy activate thrifty@2222", "PUT /v1/policy/thrifty/activate", `"Version":"2222"`, "thrifty@222222222222 is active; cede policy rollback thrifty returns to 111111111111", active},
		{
			"policy activate thrifty@2222 --for 10m", "PUT /v1/policy/thrifty/activate", `"For":600000000000`, "to keep it, run before then: cede policy activate thrifty@222222222222",
			thriftyStatus(func(st *client.PolicyStatus) { st.Active, st.Until = newVersion, 1e18 }),
		},
		{
			"policy activate default@2222", "PUT /v1/policy/default/activate", `"Version":"2222"`,
			"default@222222222222 is active in place of the built-in policy; cede policy load default --activate returns to that one\n", inPlaceOfDefault(nil),
		},
		{
			"policy activate default@2222", "PUT /v1/policy/default/activate", `"Version":"2222"`, "default@222222222222 is active\n",
			inPlaceOfDefault(func(st *client.PolicyStatus) { st.Loaded[0].Digest = policy.BuiltinDigest("default", "2") }),
		},
		{
			"policy activate default@2222", "PUT /v1/policy/default/activate", `"Version":"2222"`, "default@222222222222 is active; cede policy rollback default returns to 111111111111\n",
			inPlaceOfDefault(func(st *client.PolicyStatus) { st.Previous = oldVersion }),
		},
		{"policy rollback thrifty", "PUT /v1/policy/thrifty/rollback", "{}", "rolled back to thrifty@111111111111\n", thriftyStatus(nil)},
		{
			"policy rollback thrifty", "PUT /v1/policy/thrifty/rollback", "{}",
			"rolled back from thrifty@111111111111 to thrifty@222222222222; another rollback goes forward again, to 111111111111\n", active,
		},
		{
			"policy shadow thrifty@2222", "PUT /v1/policy/thrifty/shadow", `"2222"`, "thrifty@222222222222 is the shadow of thrifty@111111111111",
			thriftyStatus(func(st *client.PolicyStatus) { st.Shadow = newVersion }),
		},
		{"policy shadow thrifty --off", "PUT /v1/policy/thrifty/shadow", "{}", "no version of thrifty runs in the shadow", thriftyStatus(nil)},
		{"policy unload thrifty@2222", "PUT /v1/policy/thrifty/unload", `"2222"`, "thrifty@2222 is forgotten", thriftyStatus(nil)},
		{"policy list --no-headers", "GET /v1/policies", "", "thrifty  222222222222  -  -  1  a version is out of service", []*client.PolicyStub{
			{Name: "thrifty", Active: newVersion, Versions: 1, Tripped: map[string]string{oldVersion: "trap"}},
		}},
		{"policy list -o name", "GET /v1/policies", "", "default\n", []*client.PolicyStub{{Name: "default", Builtin: true}}},
		{"policy status thrifty@1111 -o name", "GET /v1/policy/thrifty", "", "thrifty@111111111111\n", thriftyStatus(nil)},
		{"policy status thrifty -o name", "GET /v1/policy/thrifty", "", "thrifty@222222222222\nthrifty@111111111111\n", thriftyStatus(nil)},
	} {
		url, requests := policyServer(t, map[string]any{c.route: c.answer})
		w := clitest.New(nil, strings.Fields(c.args)...)
		w.Variables["CEDE_ADDR"] = url
		if code := runEnv(t, w); code != cmdutil.ExitOK || !strings.Contains(w.Out.String(), c.out) {
			t.Errorf("%s: exit %d, %s%s", c.args, code, w.Out.String(), w.Err.String())
		}
		if got := requests(); len(got) != 1 || got[0].route != c.route || !strings.Contains(got[0].body[""], c.body) {
			t.Errorf("%s: requests are %+v", c.args, got)
		}
	}
}

func TestPolicyStatus_ShowsOneVersionAlone(t *testing.T) {
	url, _ := policyServer(t, map[string]any{"GET /v1/policy/thrifty": thriftyStatus(nil)})
	for _, c := range []struct {
		arg  string
		exit cmdutil.Exit
		out  string
	}{
		{"thrifty@2222", cmdutil.ExitOK, "222222222222"},
		{"thrifty@33", cmdutil.ExitNotFound, "has no version 33"},
		{"thrifty@", cmdutil.ExitUsage, "requires N or N@V"},
	} {
		w := clitest.New(nil, "policy", "status", c.arg, "--addr", url)
		if code := runEnv(t, w); code != c.exit || !strings.Contains(w.Out.String()+w.Err.String(), c.out) {
			t.Errorf("%s: exit %d, %s%s", c.arg, code, w.Out.String(), w.Err.String())
		}
		if versions, _, _ := strings.Cut(w.Out.String(), "Checks"); strings.Contains(versions, "builtin") || strings.Contains(w.Out.String(), "refused") {
			t.Errorf("%s: prints another version: %s", c.arg, w.Out.String())
		}
	}
}

func TestPolicyStatus_ShowsChecksShadowAndDecisions(t *testing.T) {
	st := thriftyStatus(func(st *client.PolicyStatus) {
		st.Loaded[0].Awaited = map[string]string{"s2": "it is down since noon"}
		st.Tripped = map[string]string{newVersion: "policy thrifty: trap"}
		st.ShadowRun = &client.PolicyShadowRun{Version: newVersion, Decisions: 1500, Agreed: 1499, Differed: 1}
		st.ShadowRun.Differences = []*client.PolicyDifference{{
			Namespace: "default", JobID: "web",
			Active: client.PolicyChoice{Victims: []string{"aaaaaaaaaa"}, Why: "low.g[0] (priority 10, loses 3s)"},
			Shadow: client.PolicyChoice{Why: "g: 1 without a place"},
		}}
		for range 12 {
			st.Decisions = append(st.Decisions, &client.PolicyDecision{
				Namespace: "default", JobID: "web", Version: oldVersion, Victims: []string{"aaaaaaaaaa"},
				Uses: []client.PolicyUse{{Hook: "ScoreVictims", Calls: 2, Fuel: 12345, Duration: 1500}},
			})
		}
	})
	url, _ := policyServer(t, map[string]any{"GET /v1/policy/thrifty": st})
	w := clitest.New(nil, "policy", "status", "thrifty", "--addr", url)
	if code := runEnv(t, w); code != cmdutil.ExitOK {
		t.Fatal(code, w.Err.String())
	}
	for _, want := range []string{
		"111111111111", "1,200, faults 1", "out of service", "policy thrifty: trap", "2.0 KiB", "refused by s1", "by 1 of 2 servers",
		"222222222222  s1      ok", "222222222222  s2      none yet", "it is down since noon", "111111111111  s1      refused", "trap",
		"1,500 decisions compared, 1,499 agreed, 1 differed", "low.g[0] (priority 10, loses 3s)  no eviction: g: 1 without a place", "aaaaaaaa ", "12,345", "and 2 more",
	} {
		if !strings.Contains(w.Out.String(), want) {
			t.Errorf("no %q in\n%s", want, w.Out.String())
		}
	}
}

func TestPolicyLoad_SendsModuleManifestAndSignature(t *testing.T) {
	module := filepath.Join(t.TempDir(), "Thrifty one.wasm")
	if err := os.WriteFile(module, []byte("\x00asm\x01\x00\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	version := &client.PolicyVersion{ID: newVersion, Name: "thrifty", Kind: "wasm", Checks: map[string]client.PolicyCheck{"s1": {OK: true}}}
	for _, c := range []struct {
		args []string
		want map[string]string
	}{
		{[]string{module}, map[string]string{"module": "\x00asm\x01\x00\x00\x00", "request": `{"Name":"thrifty-one"}`}},
		{
			[]string{"least-waste?bands=20", "--name", "frugal", "--on-fault", "default", "--grant", "keepRedundant"},
			map[string]string{"request": `{"Name":"frugal","Builtin":"least-waste","Config":{"bands":20},"Grants":["keepRedundant"],"OnFault":"default"}`},
		},
		{[]string{"default", "--config", "s.yaml"}, map[string]string{"request": `{"Builtin":"default","Config":{"halfLife":"10m"}}`}},
	} {
		url, requests := policyServer(t, map[string]any{"POST /v1/policies": version, "GET /v1/policy/thrifty": thriftyStatus(nil)})
		w := clitest.New(map[string]string{"s.yaml": "halfLife: 10m\n"}, append([]string{"policy", "load"}, c.args...)...)
		w.Variables["CEDE_ADDR"] = url
		if code := runEnv(t, w); code != cmdutil.ExitOK || !strings.Contains(w.Out.String(), "thrifty@222222222222 is loaded (wasm) and checked by 1 of 1 server") {
			t.Fatalf("%v: exit %d, %s%s", c.args, code, w.Out.String(), w.Err.String())
		}
		got := requests()[0].body
		for part, text := range c.want {
			if got[part] != text {
				t.Errorf("%v: %s is %s, want %s", c.args, part, got[part], text)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%v: sent %v", c.args, got)
		}
	}
}

// A version that decides in place of a built-in policy has no version to roll back to.
func TestPolicyLoad_NamesWayBackToBuiltin(t *testing.T) {
	for _, c := range []struct {
		status *client.PolicyStatus
		want   bool
	}{
		{inPlaceOfDefault(nil), true},
		{inPlaceOfDefault(func(st *client.PolicyStatus) { st.Loaded[0].Digest = policy.BuiltinDigest("default", "2") }), false},
	} {
		url, _ := policyServer(t, map[string]any{"POST /v1/policies": c.status.Loaded[0], "PUT /v1/policy/default/activate": c.status})
		w := clitest.New(nil, "policy", "load", "-e", "order: victim.age", "--name", "default", "--activate", "--addr", url)
		code := runEnv(t, w)
		const way = "It decides in place of the built-in policy; cede policy load default --activate returns to that one.\n"
		if code != cmdutil.ExitOK || strings.Contains(w.Out.String(), way) != c.want {
			t.Errorf("exit %d, %s%s", code, &w.Out, &w.Err)
		}
	}
}

// inPlaceOfDefault returns the status of policy default while a loaded version is active.
func inPlaceOfDefault(change func(*client.PolicyStatus)) *client.PolicyStatus {
	st := &client.PolicyStatus{
		PolicyStub: client.PolicyStub{Name: "default", Builtin: true, Active: newVersion, Versions: 1},
		Loaded:     []*client.PolicyVersion{{ID: newVersion, Name: "default", Kind: "wasm", Config: json.RawMessage("{}"), Checks: map[string]client.PolicyCheck{"s1": {OK: true}}}},
	}
	if change != nil {
		change(st)
	}
	return st
}

// waitingServer loads a version that one server has not checked: that server responds
// slowly at first, is then down, and has checked the version after four requests.
func waitingServer(t *testing.T) (url string, waits func() []string) {
	t.Helper()
	var list []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/agent/members" {
			serveMembers(w, nil)
			return
		}
		list = append(list, r.URL.Query().Get("wait"))
		v := &client.PolicyVersion{ID: newVersion, Name: "p", Kind: "builtin", Checks: map[string]client.PolicyCheck{"s1": {OK: true}}}
		switch n := len(list); {
		case n < 3:
			v.Awaited = map[string]string{"s2": "it is slow"}
		case n < 5:
			v.Awaited = map[string]string{"s2": "it is down"}
		default:
			v.Checks["s2"] = client.PolicyCheck{OK: true}
		}
		var answer any = v
		if r.Method == http.MethodGet {
			answer = &client.PolicyStatus{PolicyStub: client.PolicyStub{Name: "p"}, Loaded: []*client.PolicyVersion{v}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string { return list }
}

// ticking is a clock whose pauses return at once.
type ticking struct{ *clock.Virtual }

func (c ticking) AfterFunc(d time.Duration, f func()) clock.Timer {
	timer := c.Virtual.AfterFunc(d, f)
	go c.AdvanceTo(c.Now().Add(d))
	return timer
}

// TestPolicyLoad_ReportsMissingChecksOnce checks that each missing check is printed once, and
// not at all with -o json.
func TestPolicyLoad_ReportsMissingChecksOnce(t *testing.T) {
	const waiting = "p@222222222222: waiting for the check by server s2: it is slow\np@222222222222: waiting for the check by server s2: it is down\n"
	for _, c := range []struct{ args, out, err string }{
		{"", "checked by 2 of 2 servers", waiting},
		{"-o json", `"Checks":{`, ""},
		{"--timeout 0s", "checked by 1 of 2 servers\nIt cannot be activated until these servers have checked it:\n  server s2: it is slow\n", ""},
		{"--timeout 2500ms", "  server s2: it is down\n", waiting},
	} {
		url, waits := waitingServer(t)
		w := clitest.New(nil, strings.Fields("policy load default --name p --addr "+url+" "+c.args)...)
		w.Clock = ticking{clock.NewVirtual(time.Unix(100_000, 0))}
		if code := runEnv(t, w); code != cmdutil.ExitOK || !strings.Contains(w.Out.String(), c.out) || w.Err.String() != c.err {
			t.Errorf("%s: exit %d, %s%s", c.args, code, w.Out.String(), w.Err.String())
		}
		if asked := waits(); asked[0] == "" {
			t.Errorf("%s: the request has no wait time: %q", c.args, asked)
		}
	}
}

func TestPolicyLoad_RefusedVersionIsNotActivated(t *testing.T) {
	refused := &client.PolicyVersion{ID: newVersion, Name: "p", Kind: "builtin", Checks: map[string]client.PolicyCheck{
		"s1": {OK: true}, "s2": {Error: "the same question had two answers"},
	}}
	members := &client.Members{Members: []*client.Member{{Name: "s2", Tags: map[string]string{"name": "beta"}}}}
	url, requests := policyServer(t, map[string]any{"POST /v1/policies": refused, "members": members})
	w := clitest.New(nil, "policy", "load", "default", "--name", "p", "--activate", "--addr", url)
	if code := runEnv(t, w); code != cmdutil.ExitPolicy || !strings.Contains(w.Err.String(), "server beta (s2): the same question had two answers") ||
		!strings.Contains(w.Err.String(), "refused by 1 of 2 servers") {
		t.Errorf("exit %d: %s", code, w.Err.String())
	}
	if len(requests()) != 1 {
		t.Errorf("requests are %+v", requests())
	}
}

func TestPolicyCommands_ReportEveryProblemOnce(t *testing.T) {
	url, _ := policyServer(t, map[string]any{"POST /v1/policies": &client.Error{
		Code: client.CodeInvalid, Message: "a does not fit; b is unknown", StatusCode: 400,
		Details: map[string]any{"Problems": []string{"a does not fit", "b is unknown"}, "Fault": "abi"},
	}})
	w := clitest.New(nil, "policy", "load", "default", "--addr", url)
	if code, want := runEnv(t, w), "a does not fit\nb is unknown\nerror: 2 problems\n"; code != cmdutil.ExitPolicy || w.Err.String() != want {
		t.Errorf("exit %d: %s", code, w.Err.String())
	}
}

func TestPolicyCommands_ExitCodes(t *testing.T) {
	answer := func(code string, status int, details map[string]any) *client.Error {
		return &client.Error{Code: code, Message: "no", StatusCode: status, Details: details}
	}
	for _, c := range []struct {
		args   string
		answer any
		want   cmdutil.Exit
	}{
		{"policy activate thrifty", nil, cmdutil.ExitUsage},
		{"policy activate @1", nil, cmdutil.ExitUsage},
		{"policy activate thrifty@1 --for 0s", nil, cmdutil.ExitUsage},
		{"policy load default --grant all", nil, cmdutil.ExitUsage},
		{"policy load default --on-fault shrug", nil, cmdutil.ExitUsage},
		{"policy load gone", nil, cmdutil.ExitUsage},
		{"policy activate thrifty@1", answer(client.CodeNotFound, 404, nil), cmdutil.ExitNotFound},
		{"policy activate thrifty@1", answer(client.CodeConflict, 409, nil), cmdutil.ExitConflict},
		{"policy activate thrifty@1", answer(client.CodeInvalid, 400, nil), cmdutil.ExitUsage},
		{"policy activate thrifty@1", answer(client.CodeInvalid, 400, map[string]any{"Fault": "guest"}), cmdutil.ExitPolicy},
		{"policy activate thrifty@1 --addr http://127.0.0.1:1", nil, cmdutil.ExitUnreachable},
	} {
		url, _ := policyServer(t, map[string]any{"PUT /v1/policy/thrifty/activate": c.answer})
		w := clitest.New(nil, strings.Fields(c.args)...)
		w.Variables["CEDE_ADDR"] = url
		if code := runEnv(t, w); code != c.want || w.Err.Len() == 0 {
			t.Errorf("%s: exit %d, want %d: %s", c.args, code, c.want, w.Err.String())
		}
	}
}
