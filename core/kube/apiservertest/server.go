// Package apiservertest provides an API server for tests: it lists and watches
// objects as Kubernetes does, with bookmarks, expired versions and lost connections on
// request, and records the requests. It stores what tests put into it and validates
// nothing.
//
// A Server is safe for concurrent use.
package apiservertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A Request identifies requests by what a ClusterRole permits.
type Request struct{ Group, Resource, Verb string }

// A Server is an API server.
type Server struct {
	http *httptest.Server
	// Refuse, if set, returns the status of a request, or 0 to serve it.
	Refuse func(Request) int
	// WithoutWatchList makes the server reject watches that start with a list.
	WithoutWatchList bool
	// Time is the date of every response; zero: the current time.
	Time time.Time
	// Disabled lists versions of API groups that are not served, such as resource.k8s.io/v1.
	Disabled []string

	mu        sync.Mutex
	version   int
	kinds     map[string]*kind // by resource
	requests  map[Request]int
	changed   chan struct{} // closed at the next change
	connected int           // incremented to end all watches
}

// A kind holds the objects of one resource.
type kind struct {
	apiVersion, name string
	objects          map[string]json.RawMessage // by namespace/name
	versions         map[string]int
	log              []event
	oldest           int // watches from before this version expire
}

type event struct {
	version int
	kind    string
	object  json.RawMessage
}

// New starts a server. The caller must close it.
func New() *Server {
	s := NewInProcess()
	s.http = httptest.NewServer(s)
	return s
}

// NewInProcess returns a server without a listener, for tests in virtual time. Its
// clients can send requests that end, but no watches.
func NewInProcess() *Server {
	s := &Server{requests: map[Request]int{}, changed: make(chan struct{}), kinds: map[string]*kind{}, version: 1}
	for resource, k := range map[string]*kind{
		"nodes": {apiVersion: "v1", name: "Node"}, "pods": {apiVersion: "v1", name: "Pod"}, "namespaces": {apiVersion: "v1", name: "Namespace"},
		"poddisruptionbudgets": {apiVersion: "policy/v1", name: "PodDisruptionBudget"}, "priorityclasses": {apiVersion: "scheduling.k8s.io/v1", name: "PriorityClass"},
		"leases": {apiVersion: "coordination.k8s.io/v1", name: "Lease"},
		"events": {apiVersion: "v1", name: "Event"}, "podgroups": {apiVersion: "scheduling.k8s.io/v1beta1", name: "PodGroup"},
		"deviceclasses": {apiVersion: "resource.k8s.io/v1", name: "DeviceClass"}, "resourceslices": {apiVersion: "resource.k8s.io/v1", name: "ResourceSlice"},
		"resourceclaims": {apiVersion: "resource.k8s.io/v1", name: "ResourceClaim"}, "resourceclaimtemplates": {apiVersion: "resource.k8s.io/v1", name: "ResourceClaimTemplate"},
	} {
		k.objects, k.versions = map[string]json.RawMessage{}, map[string]int{}
		s.kinds[resource] = k
	}
	return s
}

// inProcess calls a server without a connection.
type inProcess struct{ s *Server }

func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	t.s.ServeHTTP(w, r)
	return w.Result(), nil
}

// Close ends all watches and stops the server. It may be called again.
func (s *Server) Close() {
	s.Disconnect()
	s.http.CloseClientConnections()
	s.http.Close()
}

// Config returns the configuration of a client.
func (s *Server) Config() *rest.Config {
	if s.http == nil {
		return &rest.Config{Host: "http://in-process", QPS: -1, Transport: inProcess{s}}
	}
	return &rest.Config{Host: s.http.URL, QPS: -1}
}

// URL returns the address of the server.
func (s *Server) URL() string { return s.http.URL }

func resourceOf(o metav1.Object) string {
	switch o.(type) {
	case *corev1.Node:
		return "nodes"
	case *corev1.Pod:
		return "pods"
	case *corev1.Namespace:
		return "namespaces"
	case *corev1.Event:
		return "events"
	case *policyv1.PodDisruptionBudget:
		return "poddisruptionbudgets"
	case *schedulingv1.PriorityClass:
		return "priorityclasses"
	case *coordinationv1.Lease:
		return "leases"
	case *schedulingv1beta1.PodGroup:
		return "podgroups"
	case *resourcev1.DeviceClass:
		return "deviceclasses"
	case *resourcev1.ResourceSlice:
		return "resourceslices"
	case *resourcev1.ResourceClaim:
		return "resourceclaims"
	case *resourcev1.ResourceClaimTemplate:
		return "resourceclaimtemplates"
	}
	panic(fmt.Sprintf("%T is not served", o))
}

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// Put creates or replaces objects.
func (s *Server) Put(objects ...metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		k := s.kinds[resourceOf(o)]
		s.version++
		o.SetResourceVersion(strconv.Itoa(s.version))
		text := k.encode(o)
		what := "MODIFIED"
		if k.objects[keyOf(o)] == nil {
			what = "ADDED"
		}
		k.objects[keyOf(o)], k.versions[keyOf(o)] = text, s.version
		k.log = append(k.log, event{s.version, what, text})
	}
	s.notify()
}

// Delete removes an object.
func (s *Server) Delete(o metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[resourceOf(o)]
	if k.objects[keyOf(o)] == nil {
		return
	}
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	delete(k.objects, keyOf(o))
	delete(k.versions, keyOf(o))
	k.log = append(k.log, event{s.version, "DELETED", k.encode(o)})
	s.notify()
}

func (k *kind) encode(o any) json.RawMessage {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		panic(err)
	}
	all["kind"], all["apiVersion"] = quote(k.name), quote(k.apiVersion)
	text, _ = json.Marshal(all) // cannot fail: all values are valid
	return text
}

func quote(text string) json.RawMessage { return json.RawMessage(strconv.Quote(text)) }

func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Expire forgets all events, so that a watch from an earlier version fails with 410.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	for _, k := range s.kinds {
		k.log, k.oldest = nil, s.version
	}
	s.notify()
}

// Disconnect ends all watches.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected++
	s.notify()
}

// Requests returns the number of requests of each kind.
func (s *Server) Requests() map[Request]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.requests)
}

// ServeHTTP answers a list or a watch, or a request for one Lease.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.Time.IsZero() {
		w.Header().Set("Date", s.Time.UTC().Format(http.TimeFormat))
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // api/v1/RESOURCE or apis/GROUP/v1/RESOURCE
	if len(parts) >= 6 && parts[5] == "leases" {
		s.serveLease(w, r, parts)
		return
	}
	if len(parts) == 3 && parts[0] == "apis" {
		s.discover(w, parts[1]+"/"+parts[2])
		return
	}
	resource, request := parts[len(parts)-1], Request{Verb: "list"}
	request.Resource = resource
	if parts[0] == "apis" {
		request.Group = parts[1]
	}
	q := r.URL.Query()
	if q.Get("watch") == "true" || q.Get("watch") == "1" {
		request.Verb = "watch"
	}
	s.mu.Lock()
	s.requests[request]++
	k := s.kinds[resource]
	s.mu.Unlock()
	if k != nil && slices.Contains(s.Disabled, k.apiVersion) {
		k = nil
	}
	if k == nil || r.Method != http.MethodGet {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	if s.Refuse != nil {
		if status := s.Refuse(request); status != 0 {
			reason := metav1.StatusReasonInternalError
			if status == http.StatusForbidden {
				reason = metav1.StatusReasonForbidden
			}
			fail(w, status, reason)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if request.Verb == "list" {
		s.list(w, k, selectorOf(parts, q.Get("fieldSelector")))
		return
	}
	if q.Get("sendInitialEvents") == "true" && s.WithoutWatchList {
		fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		return
	}
	s.watch(w, r, k)
}

// discover lists the resources of an API group.
func (s *Server) discover(w http.ResponseWriter, version string) {
	list := metav1.APIResourceList{GroupVersion: version}
	for resource, k := range s.kinds {
		if k.apiVersion == version && !slices.Contains(s.Disabled, version) {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource, Kind: k.name})
		}
	}
	if len(list.APIResources) == 0 {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&list) // fails only if the client has disconnected
}

// serveLease reads, creates or replaces one Lease.
func (s *Server) serveLease(w http.ResponseWriter, r *http.Request, parts []string) {
	request := Request{parts[1], "leases", map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update"}[r.Method]}
	lease := &coordinationv1.Lease{}
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(lease); err != nil {
			fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
			return
		}
	}
	name := parts[4] + "/" + lease.Name
	if len(parts) == 7 {
		name = parts[4] + "/" + parts[6]
	}
	if s.Refuse != nil {
		if status := s.Refuse(request); status != 0 {
			fail(w, status, metav1.StatusReasonInternalError)
			return
		}
	}
	s.mu.Lock()
	s.requests[request]++
	k := s.kinds["leases"]
	known, version := k.objects[name], k.versions[name]
	s.mu.Unlock()
	switch {
	case request.Verb == "create" && known != nil:
		fail(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	case request.Verb != "create" && known == nil:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	case request.Verb == "update" && lease.ResourceVersion != strconv.Itoa(version):
		fail(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	if request.Verb != "get" {
		s.Put(lease)
		s.mu.Lock()
		known = k.objects[name]
		s.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(known) // fails only if the client has disconnected
}

func fail(w http.ResponseWriter, status int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(statusOf(status, reason)) // fails only if the client has disconnected
}

func statusOf(status int, reason metav1.StatusReason) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: http.StatusText(status), Reason: reason, Code: int32(status), //nolint:gosec // G115: an HTTP status
	}
}

// selectorOf returns a function that reports whether a request selects an object: by the
// namespace in its path, and by equal fields.
func selectorOf(path []string, fields string) func(object json.RawMessage) bool {
	want := map[string]string{}
	for term := range strings.SplitSeq(fields, ",") {
		if field, value, ok := strings.Cut(term, "="); ok {
			want[field] = value
		}
	}
	if n := len(path); n > 2 && path[n-3] == "namespaces" {
		want["metadata.namespace"] = path[n-2]
	}
	return func(object json.RawMessage) bool {
		for field, value := range want {
			at := object
			for key := range strings.SplitSeq(field, ".") {
				var fields map[string]json.RawMessage
				if json.Unmarshal(at, &fields) != nil {
					return false
				}
				at = fields[key]
			}
			if string(at) != string(quote(value)) {
				return false
			}
		}
		return true
	}
}

func (s *Server) list(w http.ResponseWriter, k *kind, selected func(json.RawMessage) bool) {
	s.mu.Lock()
	var items []json.RawMessage
	for _, name := range slices.Sorted(maps.Keys(k.objects)) {
		if selected(k.objects[name]) {
			items = append(items, k.objects[name])
		}
	}
	version := s.version
	s.mu.Unlock()
	if items == nil {
		items = []json.RawMessage{}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{ // fails only if the client has disconnected
		"kind": k.name + "List", "apiVersion": k.apiVersion, "metadata": map[string]string{"resourceVersion": strconv.Itoa(version)}, "items": items,
	})
}

// watch sends the events after a version, and bookmarks, until Disconnect.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, k *kind) {
	flush := func() { w.(http.Flusher).Flush() }
	send := func(kind string, object any) {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object}) // fails only if the client has disconnected
	}
	s.mu.Lock()
	connected := s.connected
	at, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		at = s.version
		var items []json.RawMessage
		for _, name := range slices.Sorted(maps.Keys(k.objects)) {
			items = append(items, k.objects[name])
		}
		s.mu.Unlock()
		for _, o := range items {
			send("ADDED", o)
		}
		send("BOOKMARK", k.bookmark(at, map[string]string{metav1.InitialEventsAnnotationKey: "true"}))
		flush()
		s.mu.Lock()
	}
	for {
		if at < k.oldest {
			s.mu.Unlock()
			send("ERROR", statusOf(http.StatusGone, metav1.StatusReasonExpired))
			return
		}
		var events []event
		for _, e := range k.log[firstAfter(k.log, at):] {
			events = append(events, e)
			at = e.version
		}
		bookmark := at < s.version
		at = s.version
		changed, ended := s.changed, s.connected != connected
		s.mu.Unlock()
		if ended {
			return
		}
		for _, e := range events {
			send(e.kind, e.object)
		}
		if bookmark && r.URL.Query().Get("allowWatchBookmarks") == "true" {
			send("BOOKMARK", k.bookmark(at, nil))
		}
		flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
		s.mu.Lock()
	}
}

func firstAfter(log []event, version int) int {
	i, _ := slices.BinarySearchFunc(log, version+1, func(e event, v int) int { return e.version - v })
	return i
}

func (k *kind) bookmark(version int, annotations map[string]string) any {
	return map[string]any{
		"kind": k.name, "apiVersion": k.apiVersion, "metadata": map[string]any{"resourceVersion": strconv.Itoa(version), "annotations": annotations},
	}
}
