package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/config"
)

// webJob is a job that a web page could try to run, with its ID.
func webJob(id string) string {
	return `{"Job":{"ID":"` + id + `","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Driver":"exec","Config":{"command":"/bin/true"}}]}]}}`
}

// send sends one request with these header lines, NAME: VALUE, and returns the status.
func (s *started) send(method, url, body string, header ...string) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode
}

// A web page that the user of cede agent --dev opens cannot run jobs or read anything,
// with the headers that browsers send. Other clients are not affected.
func TestDev_RejectsRequestsOfWebPages(t *testing.T) {
	s := start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"listen.hosts": "cede.example"})}))
	const json, text = "Content-Type: application/json", "Content-Type: text/plain;charset=UTF-8"
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL(), "http://"), ":")
	for name, test := range map[string]struct {
		header []string
		want   int
	}{
		"page, text":                     {[]string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site", text}, http.StatusForbidden},
		"page, no type":                  {[]string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"}, http.StatusForbidden},
		"page, JSON":                     {[]string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site", json}, http.StatusForbidden},
		"page on another port":           {[]string{"Origin: http://127.0.0.1:8080", "Sec-Fetch-Site: same-site", json}, http.StatusForbidden},
		"old browser":                    {[]string{"Origin: https://evil.example", json}, http.StatusForbidden},
		"file or sandboxed frame":        {[]string{"Origin: null", json}, http.StatusForbidden},
		"name that resolves to loopback": {[]string{"Host: evil.example:" + port, "Origin: http://evil.example:" + port, "Sec-Fetch-Site: same-origin", json}, http.StatusForbidden},
		"unknown host":                   {[]string{"Host: evil.example", json}, http.StatusForbidden},
		"address of another host":        {[]string{"Host: 192.0.2.1:" + port, json}, http.StatusForbidden},
		"text without origin":            {[]string{text}, http.StatusUnsupportedMediaType},
		"form without origin":            {[]string{"Content-Type: application/x-www-form-urlencoded"}, http.StatusUnsupportedMediaType},
		"own page without type":          {[]string{"Origin: " + s.URL(), "Sec-Fetch-Site: same-origin"}, http.StatusUnsupportedMediaType},
		"own page":                       {[]string{"Origin: " + s.URL(), "Sec-Fetch-Site: same-origin", json}, http.StatusOK},
		"client":                         {[]string{json}, http.StatusOK},
		"client with a character set":    {[]string{json + "; charset=utf-8"}, http.StatusOK},
		"client without type":            {nil, http.StatusOK},
		"client with the name":           {[]string{"Host: LOCALHOST:" + port, json}, http.StatusOK},
		"client over IPv6":               {[]string{"Host: [::1]:" + port, json}, http.StatusOK},
		"proxy":                          {[]string{"Host: cede.example", json}, http.StatusOK},
	} {
		if got := s.send("POST", s.URL()+"/kube/v1/preempt", "{}", test.header...); got != http.StatusOK {
			t.Errorf("%s: status %d of preempt, want 200: kube-scheduler writes its URL into the status of a pod otherwise", name, got)
		}
		id := "web-" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
		if got := s.send("PUT", s.URL()+"/v1/jobs", webJob(id), test.header...); got != test.want {
			t.Errorf("%s: status %d, want %d", name, got, test.want)
		}
		_, _, err := s.c.Jobs().Get(t.Context(), id, nil)
		if registered := err == nil; registered != (test.want == http.StatusOK) {
			t.Errorf("%s: job registered: %v", name, registered)
		}
	}
	for _, url := range []string{s.URL() + "/v1/jobs", s.URL() + "/v1/allocation/x/logs", s.URL() + "/livez", "http://" + s.MetricsAddress() + "/metrics", "http://" + s.MetricsAddress() + "/debug/pprof/cmdline"} {
		if got := s.send("GET", url, "", "Host: evil.example"); got != http.StatusForbidden {
			t.Errorf("%s with another host: status %d", url, got)
		}
	}
	if got := s.send("POST", s.URL()+"/v1/agent/reload", "", "Origin: https://evil.example"); got != http.StatusForbidden {
		t.Errorf("write without a body from another origin: status %d", got)
	}
}
