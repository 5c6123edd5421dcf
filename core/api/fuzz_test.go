package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/sdk/client"
)

// isRefusal reports whether err is an error that clients receive.
func isRefusal(err error) bool {
	f, ok := errors.AsType[*rest.Failure](err)
	return ok && f.Message != "" && f.Code != rest.CodeInternal
}

// Decoding and converting any job returns a job or an error, and never panics.
func FuzzJob(f *testing.F) {
	for _, body := range hostileBodies() {
		if len(body) < 1000 {
			f.Add(body)
		}
	}
	whole, _ := json.Marshal(client.JobRegisterRequest{Job: job("web", 50, 1, 100, 100)})
	f.Add(string(whole))
	f.Fuzz(func(t *testing.T, text string) {
		var req client.JobRegisterRequest
		unknown, err := rest.Decode([]byte(text), &req, 64)
		if err != nil {
			if !isRefusal(err) {
				t.Fatalf("%v", err)
			}
			return
		}
		if len(unknown) > rest.MaxUnknownFields {
			t.Fatalf("%d names", len(unknown))
		}
		if req.Job == nil {
			return
		}
		m, err := jobspec.ToModel(req.Job)
		if err == nil {
			_ = jobspec.FromModel(m)
		}
	})
}

// Converting any node returns a node or an error.
func FuzzNode(f *testing.F) {
	whole, _ := json.Marshal(client.NodeRegisterRequest{Node: nodeSpec("n1", 1, 1), Secret: "x"})
	f.Add(string(whole))
	f.Add(`{"Node":{"Devices":[{"ID":"a/b/c","Count":99999999999}],"Capacity":{"cpu":-1}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var req client.NodeRegisterRequest
		if _, err := rest.Decode([]byte(text), &req, 64); err != nil || req.Node == nil {
			return
		}
		n, err := nodeFrom(req.Node)
		if err != nil && !isRefusal(err) {
			t.Fatalf("%v", err)
		}
		if err == nil {
			_ = view.Node(n)
		}
	})
}

// Parsing any query string returns values or an error.
func FuzzQuery(f *testing.F) {
	f.Add("index=1&wait=5s&per_page=2&next_token=YQ&stale&namespace=*&topic=Job:x", "1.2")
	f.Add("index=%ff&wait=99999h", "x")
	a := &API{cfg: Config{Limits: Limits{}.withDefaults()}}
	f.Fuzz(func(t *testing.T, query, last string) {
		r := httptest.NewRequest(http.MethodGet, "/v1/jobs", nil)
		r.URL.RawQuery = query
		r.Header.Set("Last-Event-ID", strings.ToValidUTF8(last, ""))
		c := &call{api: a, r: r}
		wait, err := queryWait(c)
		if err == nil && (wait < 0 || wait > a.cfg.Limits.Wait) {
			t.Fatalf("wait %v", wait)
		}
		part, errPage := c.page()
		if errPage == nil && (part.limit < 0 || part.limit > maxPage) {
			t.Fatalf("page %+v", part)
		}
		_, skip, errStart := streamStart(c)
		if errStart == nil && skip < 0 {
			t.Fatalf("skip %d", skip)
		}
		_, _, errTopics := filterOf(c)
		_, errFlag := queryFlag(c, "stale")
		for _, err := range []error{err, errPage, errStart, errTopics, errFlag} {
			if err != nil && !isRefusal(err) {
				t.Fatalf("%v", err)
			}
		}
	})
}

// Reading any form stores at most the limit of each part.
func FuzzForm(f *testing.F) {
	f.Add("--b\r\nContent-Disposition: form-data; name=\"module\"\r\n\r\nx\r\n--b--\r\n")
	f.Add("--b\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n{\"Name\":\"x\"}\r\n--b--")
	a := &API{cfg: Config{Limits: Limits{}.withDefaults()}}
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest(http.MethodPost, "/v1/policies", strings.NewReader(body))
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		c := &call{api: a, r: r, w: rest.NewRecorder(httptest.NewRecorder(), time.Second)}
		req, err := loadParts(c)
		if err != nil && !isRefusal(err) {
			t.Fatalf("%v", err)
		}
		if len(req.Module) > client.MaxModule || int64(len(req.Signature)) > partLimits["signature"] {
			t.Fatal("a part exceeds its limit")
		}
	})
}
