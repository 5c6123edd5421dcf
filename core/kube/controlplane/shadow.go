package controlplane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A Shadow stands between kube-scheduler and the extender. It passes the first request of
// each pod on, records the response, and returns the proposal of kube-scheduler, so that
// kube-scheduler decides as if there were no extender.
type Shadow struct {
	server *httptest.Server
	to     string // URL of the extender

	mu        sync.Mutex
	proposals map[string]map[string]string // by pod, then node: the victims
	answers   map[string]string            // by pod: node and victims
}

// StartShadow returns a shadow of the extender, until the test ends.
func StartShadow(t testing.TB, e *Extender) *Shadow {
	s := &Shadow{to: e.URL(), proposals: map[string]map[string]string{}, answers: map[string]string{}}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// URL returns the address for the configuration of kube-scheduler.
func (s *Shadow) URL() string { return s.server.URL }

type metaVictims map[string]*struct {
	Pods             []struct{ UID string }
	NumPDBViolations int64
}

// describe returns the victims on a node, sorted.
func (v metaVictims) describe(node string) string {
	var list []string
	for _, p := range v[node].Pods {
		list = append(list, p.UID)
	}
	slices.Sort(list)
	return fmt.Sprintf("%s: %s (%d violations)", node, strings.Join(list, " "), v[node].NumPDBViolations)
}

// ServeHTTP answers preempt.
func (s *Shadow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	var request struct {
		Pod                   struct{ Metadata struct{ Name string } }
		NodeNameToMetaVictims metaVictims
	}
	if err == nil {
		err = json.Unmarshal(text, &request)
	}
	if err == nil {
		err = s.consult(r, request.Pod.Metadata.Name, text, request.NodeNameToMetaVictims)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"NodeNameToMetaVictims": request.NodeNameToMetaVictims}) // fails only if kube-scheduler has disconnected
}

// consult passes the first request of a pod to the extender.
func (s *Shadow) consult(r *http.Request, pod string, text []byte, proposal metaVictims) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proposals[pod] != nil {
		return nil
	}
	s.proposals[pod] = map[string]string{}
	for node := range proposal {
		s.proposals[pod][node] = proposal.describe(node)
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, s.to+r.URL.Path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	var answer struct{ NodeNameToMetaVictims metaVictims }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	s.answers[pod] = "no eviction"
	for node := range answer.NodeNameToMetaVictims {
		s.answers[pod] = answer.NodeNameToMetaVictims.describe(node)
	}
	if len(answer.NodeNameToMetaVictims) > 1 {
		s.answers[pod] = "the proposal"
	}
	return nil
}

// Proposals returns the proposals of kube-scheduler for a pod, one in a line.
func (s *Shadow) Proposals(pod string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Values(s.proposals[pod])), "\n")
}

// Compare returns the choice of kube-scheduler for a pod, given the node to which it
// nominated the pod, and the choice of the extender. ok is false if kube-scheduler has
// sent no request.
func (s *Shadow) Compare(pod, nominated string) (stock, extender string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proposals[pod] == nil {
		return "", "", false
	}
	return s.proposals[pod][nominated], s.answers[pod], true
}
