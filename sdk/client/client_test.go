package client

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// served returns a client of a handler.
func served(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := New(Config{Address: srv.URL, RetryDelay: time.Millisecond, Token: "t0ken", Namespace: "team"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// The client repeats reads, and writes with an idempotency key, which stays the same.
// It does not repeat other writes.
func TestClient_RepeatsSafeRequests(t *testing.T) {
	var asked atomic.Int32
	var keys []string
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			keys = append(keys, key)
		}
		if asked.Add(1) < 3 {
			answer(w, http.StatusServiceUnavailable, &Error{Code: CodeNoLeader, Message: "no leader"})
			return
		}
		answer(w, http.StatusOK, map[string]any{"EvalID": "e"})
	})
	ctx := t.Context()
	for name, do := range map[string]func() error{
		"get":      func() error { _, _, err := c.Jobs().Get(ctx, "web", nil); return err },
		"register": func() error { _, err := c.Jobs().Register(ctx, &Job{ID: "web"}, nil); return err },
		"stop":     func() error { _, err := c.Jobs().Stop(ctx, "web", nil); return err },
		"report":   func() error { _, err := c.NodeAgent().Update(ctx, "n", "s", nil); return err },
	} {
		asked.Store(0)
		keys = nil
		if err := do(); err != nil || asked.Load() != 3 {
			t.Errorf("%s: %d requests: %v", name, asked.Load(), err)
		}
		if slices.Sort(keys); len(slices.Compact(keys)) > 1 {
			t.Errorf("%s: several keys: %v", name, keys)
		}
	}
	asked.Store(0)
	if _, err := c.Jobs().Evaluate(ctx, "web", nil); !IsUnreachable(err) || asked.Load() != 1 {
		t.Errorf("write without a key: %d requests: %v", asked.Load(), err)
	}
}

// While servers elect a leader, the client repeats a request until there is one. If
// Retries is set, it limits the attempts.
func TestClient_RetriesDuringElection(t *testing.T) {
	var asked atomic.Int32
	const elected = 12
	handle := func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < elected {
			w.Header().Set("Retry-After", "1")
			answer(w, http.StatusServiceUnavailable, &Error{Code: CodeNoLeader, Message: "no leader"})
			return
		}
		answer(w, http.StatusOK, &Job{ID: "web"})
	}
	c := served(t, handle)
	c.electionPatience = time.Minute // so many attempts may take longer than an election
	if _, _, err := c.Jobs().Get(t.Context(), "web", nil); err != nil || asked.Load() != elected {
		t.Errorf("%d requests: %v", asked.Load(), err)
	}
	asked.Store(0)
	c.retries, c.electionPatience = 2, 0
	if _, _, err := c.Jobs().Get(t.Context(), "web", nil); !HasCode(err, CodeNoLeader) || asked.Load() != 3 {
		t.Errorf("%d requests: %v", asked.Load(), err)
	}
}

// A write with a check is repeated while servers elect a leader, because nothing was written, and
// not after an attempt that may have taken effect: the check would fail then.
func TestClient_RepeatsCheckedWritesWithoutEffect(t *testing.T) {
	var asked atomic.Int32
	var code string
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cas") != "7" || r.Header.Get("Idempotency-Key") != "" {
			t.Errorf("%s %s, key %q", r.Method, r.URL, r.Header.Get("Idempotency-Key"))
		}
		if asked.Add(1) < 3 {
			answer(w, http.StatusServiceUnavailable, &Error{Code: code, Message: "the leader cannot be reached"})
			return
		}
		answer(w, http.StatusOK, &SchedulerSetConfigurationResponse{Updated: true})
	})
	index := uint64(7)
	for name, do := range map[string]func() error{
		"configuration": func() error { _, err := c.Scheduler().Set(t.Context(), &SchedulerConfiguration{}, &index); return err },
		"namespace":     func() error { _, err := c.Namespaces().Put(t.Context(), &Namespace{Name: "n"}, &index); return err },
		"deletion":      func() error { _, err := c.Namespaces().Delete(t.Context(), "n", &index); return err },
	} {
		for failure, requests := range map[string]int32{CodeNoLeader: 3, CodeUnknownOutcome: 1} {
			asked.Store(0)
			code = failure
			if err := do(); asked.Load() != requests || (err == nil) != (requests == 3) {
				t.Errorf("%s after %s: %d requests: %v", name, failure, asked.Load(), err)
			}
		}
	}
}

// A request that the server rejects is not repeated.
func TestClient_ErrorsHaveCodeAndHint(t *testing.T) {
	var asked atomic.Int32
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("X-Request-Id", "r1")
		if strings.HasSuffix(r.URL.Path, "plain") {
			http.Error(w, "bad gateway", http.StatusBadGateway)
			return
		}
		answer(w, http.StatusConflict, &Error{Code: CodeConflict, Message: "no", Hint: "plan again", Details: map[string]any{"Index": 7}})
	})
	_, _, err := c.Jobs().Get(t.Context(), "web", nil)
	e, ok := errors.AsType[*Error](err)
	if !ok || !IsConflict(err) || e.Hint != "plan again" || e.StatusCode != http.StatusConflict || e.RequestID != "r1" || e.Details["Index"] != 7.0 || asked.Load() != 1 {
		t.Errorf("%#v, %d requests", err, asked.Load())
	}
	if err.Error() != "no; plan again" {
		t.Errorf("message: %s", err)
	}
	_, _, err = c.Jobs().Get(t.Context(), "plain", nil)
	if !HasCode(err, CodeUnavailable) || !strings.Contains(err.Error(), "bad gateway") {
		t.Errorf("error of a proxy: %v", err)
	}
}

// The client honours Retry-After.
func TestClient_HonoursRetryAfter(t *testing.T) {
	var asked atomic.Int32
	var last time.Time
	wait := "1"
	c := served(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			last = time.Now()
			w.Header().Set("Retry-After", wait)
			answer(w, http.StatusTooManyRequests, &Error{Code: CodeRateLimited})
			return
		}
		if time.Since(last) < time.Second {
			t.Error("returned before the delay")
		}
		answer(w, http.StatusOK, []*JobStub{})
	})
	if _, _, err := c.Jobs().List(t.Context(), nil); err != nil {
		t.Error(err)
	}
	wait = "3600"
	for within := 100 * time.Millisecond; ; within *= 2 { // the response time depends on the machine
		asked.Store(0)
		ctx, cancel := context.WithTimeout(t.Context(), within)
		_, _, err := c.Jobs().List(ctx, nil)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && within < time.Minute {
			continue
		}
		if !HasCode(err, CodeRateLimited) {
			t.Errorf("caller with a short deadline: %v", err)
		}
		return
	}
}

// If a server accepts a request and does not respond, as a stopped process does, the
// client uses another one: within the request if there is time, or else for the next.
func TestClient_SkipsUnresponsiveServer(t *testing.T) {
	awake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("index") != "" {
			time.Sleep(800 * time.Millisecond) // as the query allows, and longer than Silence
		}
		answer(w, http.StatusOK, []*JobStub{})
	}))
	defer awake.Close()
	asleep := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer asleep.Close()
	c, err := New(Config{Address: asleep.URL + "," + awake.URL, Silence: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Jobs().List(t.Context(), nil); err != nil || c.Address() != awake.URL {
		t.Errorf("%s responded: %v", c.Address(), err)
	}
	if _, _, err := c.Jobs().List(t.Context(), &QueryOptions{Index: 1, Wait: time.Minute}); err != nil || c.Address() != awake.URL {
		t.Errorf("blocking query at %s: %v", c.Address(), err)
	}

	hurried, err := New(Config{Address: asleep.URL + "," + awake.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer hurried.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := hurried.Jobs().List(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || hurried.Address() != awake.URL {
		t.Errorf("after a request that timed out, the preferred server is %s: %v", hurried.Address(), err)
	}
}

// If one of several servers does not respond, the client tries the next, and prefers
// the one that responded from then on.
func TestClient_FailsOverToNextServer(t *testing.T) {
	var asked atomic.Int32
	alive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" {
			asked.Add(1)
		}
		answer(w, http.StatusOK, []*JobStub{})
	}))
	defer alive.Close()
	dead := httptest.NewServer(nil)
	dead.Close()
	c, err := New(Config{Address: dead.URL + "," + alive.URL + "/", RetryDelay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		if _, _, err := c.Jobs().List(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if asked.Load() != 3 || c.Address() != alive.URL {
		t.Errorf("%d requests; preferred is %s", asked.Load(), c.Address())
	}
	alone, err := New(Config{Address: dead.URL, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alone.Status().Leader(t.Context()); !IsUnreachable(err) || !strings.Contains(err.Error(), "CEDE_ADDR") {
		t.Errorf("no server there: %v", err)
	}
}

// A request carries the token, the options and the deadline.
func TestClient_SendsOptions(t *testing.T) {
	var got *http.Request
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		w.Header().Set("X-Nomad-Index", "42")
		w.Header().Set("X-Nomad-KnownLeader", "true")
		w.Header().Set("X-Nomad-LastContact", "15")
		w.Header().Set("X-Nomad-NextToken", "next")
		answer(w, http.StatusOK, []*JobStub{})
	})
	_, meta, err := c.Jobs().List(t.Context(), &QueryOptions{
		Prefix: "w", Index: 41, Wait: time.Minute, PerPage: 5, NextToken: "x", Consistent: true, Params: map[string][]string{"status": {"blocked"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if q := got.URL.RawQuery; q != "consistent=true&index=41&namespace=team&next_token=x&per_page=5&prefix=w&status=blocked&wait=1m0s" {
		t.Errorf("query %s", q)
	}
	if got.Header.Get("Authorization") != "Bearer t0ken" {
		t.Error("no token")
	}
	if *meta != (QueryMeta{LastIndex: 42, LastContact: 15 * time.Millisecond, KnownLeader: true, NextToken: "next"}) {
		t.Errorf("meta %+v", meta)
	}
	if _, _, err := c.Jobs().Get(t.Context(), "a/b c", &QueryOptions{Namespace: "other"}); err == nil {
		t.Error("a list was decoded as a job")
	}
	if got.URL.EscapedPath() != "/v1/job/a%2Fb%20c" || got.URL.Query().Get("namespace") != "other" {
		t.Errorf("URL %s", got.URL)
	}
}

// The files of a configuration authenticate both ends of a TLS connection.
func TestClient_UsesTLSFiles(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "leader") }))
	defer srv.Close()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"CEDE_ADDR": srv.URL, "CEDE_CACERT": ca}
	c, err := New(FromLookup(func(name string) (string, bool) { v, ok := env[name]; return v, ok }))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if leader, err := c.Status().Leader(t.Context()); err != nil || leader != "leader" {
		t.Errorf("%q, %v", leader, err)
	}
	strange, err := New(Config{Address: srv.URL, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strange.Status().Leader(t.Context()); !IsUnreachable(err) {
		t.Errorf("certificate of an unknown authority: %v", err)
	}
	for _, bad := range []Config{
		{CACert: filepath.Join(dir, "none")},
		{CACert: os.Args[0]},
		{ClientCert: ca},
		{ClientCert: ca, ClientKey: ca},
		{Address: "ftp://x"},
		{Address: " , "},
		{Address: "http://"},
	} {
		if _, err := New(bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// A module is sent as a multipart form, with its manifest and signature.
func TestPolicies_LoadStreamsForm(t *testing.T) {
	module := strings.Repeat("m", 3<<20)
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		form, err := r.MultipartReader()
		if err != nil || r.ContentLength != -1 {
			t.Errorf("%v, length %d", err, r.ContentLength)
			return
		}
		for {
			p, err := form.NextPart()
			if errors.Is(err, io.EOF) {
				break
			}
			text, _ := io.ReadAll(p)
			if want := map[string]string{"request": `{"Name":"p","Config":{"a":1}}`, "module": module, "manifest": "m", "signature": "s"}; string(text) != want[p.FormName()] {
				t.Errorf("part %s has %d bytes", p.FormName(), len(text))
			}
		}
		answer(w, http.StatusOK, &PolicyVersion{ID: "sha256:x"})
	})
	v, err := c.Policies().Load(t.Context(), &PolicyLoad{Name: "p", Config: json.RawMessage(`{"a":1}`), Module: []byte(module), Manifest: []byte("m"), Signature: []byte("s")})
	if err != nil || v.ID != "sha256:x" {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := c.Policies().Load(t.Context(), &PolicyLoad{Module: make([]byte, MaxModule+1)}); !HasCode(err, CodeTooLarge) {
		t.Errorf("oversized module: %v", err)
	}
}

// A module is rejected if its bytes do not match its digest.
func TestPolicies_ModuleMatchesDigest(t *testing.T) {
	const code, digest = "m", "sha256:62c66a7a5dd70c3146618063c344e531e6d4b59e379808443ce962b3abd63c5a"
	said := digest
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/policy/p/module" || r.URL.Query().Get("version") != "12" {
			t.Errorf("asked %s", r.URL)
		}
		w.Header().Set("X-Cede-Policy-Digest", said)
		w.Header().Set("X-Cede-Policy-Version", "sha256:1234")
		_, _ = io.WriteString(w, code)
	})
	m, err := c.Policies().Module(t.Context(), "p", "12")
	if err != nil || m.Version != "sha256:1234" || m.Digest != digest || string(m.Code) != code {
		t.Errorf("%+v, %v", m, err)
	}
	for _, said = range []string{"", "sha256:" + strings.Repeat("0", 64)} {
		if m, err := c.Policies().Module(t.Context(), "p", "12"); !HasCode(err, CodeUnavailable) {
			t.Errorf("digest %q: %+v, %v", said, m, err)
		}
	}
}

// A truncated snapshot is an error.
func TestOperator_DetectsTruncatedSnapshot(t *testing.T) {
	whole := true
	c := served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Cede-Complete")
		_, _ = io.WriteString(w, "state")
		if whole {
			w.Header().Set("X-Cede-Complete", "true")
		}
	})
	var text strings.Builder
	if err := c.Operator().SnapshotSave(t.Context(), &text); err != nil || text.String() != "state" {
		t.Errorf("%q, %v", text.String(), err)
	}
	whole = false
	if err := c.Operator().SnapshotSave(t.Context(), io.Discard); !HasCode(err, CodeUnavailable) {
		t.Errorf("truncated snapshot: %v", err)
	}
}

// An unhealthy server is a result, not an error.
func TestStatus_HealthReturnsEveryCheck(t *testing.T) {
	c := served(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusServiceUnavailable, &Error{Code: CodeUnavailable, Details: map[string]any{"OK": false, "Checks": []HealthCheck{{Name: "leader", Detail: "none"}}}})
	})
	h, err := c.Status().Health(t.Context())
	if err != nil || h.OK || len(h.Checks) != 1 || h.Checks[0].Detail != "none" {
		t.Errorf("%+v, %v", h, err)
	}
}

// A lost stream resumes at its position, also within an index.
func TestEvents_ResumeAtPosition(t *testing.T) {
	var froms []string
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		froms = append(froms, r.Header.Get("Last-Event-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		switch len(froms) {
		case 1:
			_, _ = fmt.Fprint(w, ": alive\n\nid: 5.1\nevent: events\ndata: {\"Index\":5,\ndata: \"Events\":[{\"Key\":\"a\"}]}\n\nid: 6")
		case 2:
			answer(w, http.StatusServiceUnavailable, &Error{Code: CodeNoLeader})
		default:
			_, _ = fmt.Fprint(w, "id: 7\r\nevent: lost\r\ndata: {\"From\":6,\"To\":7}\r\n\r\nevent: new\ndata: x\n\nid: 8.1\nevent: events\ndata: {\"Index\":8,\"Events\":[{\"Key\":\"b\"}]}\n\n")
		}
	})
	var seen []string
	end := errors.New("enough")
	err := c.Events().Stream(t.Context(), &StreamOptions{Index: 4, Topics: []string{"Job", "Node:n1"}}, func(e *Events) error {
		if e.Lost != nil {
			seen = append(seen, fmt.Sprint("lost ", e.Lost.From, "-", e.Lost.To))
		}
		for _, one := range e.Events {
			seen = append(seen, one.Key)
		}
		if len(seen) == 3 {
			return end
		}
		return nil
	})
	if !errors.Is(err, end) || !slices.Equal(seen, []string{"a", "lost 6-7", "b"}) || !slices.Equal(froms, []string{"4", "5.1", "5.1"}) {
		t.Errorf("saw %v from %v: %v", seen, froms, err)
	}
}

// A rejected stream is not retried.
func TestEvents_EndIfRejected(t *testing.T) {
	asked := 0
	c := served(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		answer(w, http.StatusForbidden, &Error{Code: CodeForbidden})
	})
	if err := c.Events().Stream(t.Context(), nil, nil); !HasCode(err, CodeForbidden) || asked != 1 {
		t.Errorf("%d requests: %v", asked, err)
	}
}

// For any bytes, reading a stream ends, and returns only messages that it contained.
func FuzzFrames(f *testing.F) {
	f.Add("id: 1\nevent: events\ndata: {}\n\n")
	f.Add(": alive\n\ndata\n\n:\n\nid\n\n")
	f.Add("event: lost\ndata: {\"From\":1}\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		read := frames{r: newReader(strings.NewReader(text))}
		for range len(text) + 1 {
			m, err := read.next()
			if err != nil {
				return
			}
			if m.event == "" && m.data == nil {
				t.Fatal("message without content")
			}
			_, _ = m.read()
		}
		t.Fatal("more messages than bytes")
	})
}
