package extender

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/kube"
)

// A Verb is an operation of the extender.
type Verb string

// The verbs. kube-scheduler sends all but Objects, which clients use to feed the extender.
const (
	Filter     Verb = "filter"
	Prioritize Verb = "prioritize"
	Preempt    Verb = "preempt"
	Bind       Verb = "bind"
	Objects    Verb = "objects"
)

// Verbs lists every verb.
var Verbs = []Verb{Filter, Prioritize, Preempt, Bind, Objects}

// maxBody bounds the body of a request in bytes, if the caller sets no limit. A
// filter request may contain every node of a cluster.
const maxBody = 1 << 30

// Handler returns a handler for verbs under a prefix, such as /kube/v1; by default for
// all of them. It is for processes without an API of their own.
func (e *Extender) Handler(prefix string, verbs ...Verb) http.Handler {
	if len(verbs) == 0 {
		verbs = Verbs
	}
	mux := http.NewServeMux()
	for _, v := range verbs {
		method := http.MethodPost
		if v == Objects {
			method = http.MethodPut
		}
		mux.HandleFunc(method+" "+prefix+"/"+string(v), func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			e.Serve(v, w, r)
		})
	}
	return mux
}

// Serve answers one request. The caller must limit the size of the body.
//
// kube-scheduler writes the URL of an extender, with the token in it, into the status of
// the pod if the response has another status than 200. Therefore its verbs always
// receive 200: see failure.
func (e *Extender) Serve(v Verb, w http.ResponseWriter, r *http.Request) {
	answer, err := e.answer(v, r)
	if err != nil {
		e.cfg.Logger.WarnContext(r.Context(), "invalid request from kube-scheduler", "verb", string(v), "err", err)
		if v == Objects {
			write(w, http.StatusBadRequest, map[string]string{"Code": "invalid", "Message": err.Error()})
			return
		}
		answer = failure(v, err)
	}
	if full, is := answer.(fullNodesResult); is {
		send(w, full)
		return
	}
	write(w, http.StatusOK, answer)
}

// send writes a filter response with complete nodes.
func send(w http.ResponseWriter, full fullNodesResult) {
	text, err := full.text()
	if err != nil {
		write(w, http.StatusOK, failure(Filter, err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // fails only if the client has disconnected
}

// failure returns the response to a request that cannot be processed. Without a
// readable proposal, preempt evicts nothing.
func failure(v Verb, err error) any {
	switch v {
	case Filter:
		return &kube.ExtenderFilterResult{Error: err.Error()}
	case Prioritize:
		return []kube.HostPriority{}
	case Bind:
		return &kube.ExtenderBindingResult{Error: err.Error()}
	}
	return &kube.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*kube.MetaVictims{}}
}

// Reasons for which a request is not processed; see Refuse.
var (
	// ErrUnauthenticated means that the request has no valid credentials.
	ErrUnauthenticated = errors.New("missing or unknown credentials of kube-scheduler")
	// ErrStandby means that another replica is the leader.
	ErrStandby = errors.New("another replica is the leader")
)

// maxRefused bounds the body of a request without valid credentials, in bytes.
const maxRefused = 16 << 20

// Refuse answers a request that is not processed. The verb is the last part of the
// path. The status of kube-scheduler's verbs is 200, as in Serve. For preempt the
// proposal stands, as if the extender were not configured, unless the request has
// onFault=none; it returns nothing that the request does not contain. On standby, all
// nodes pass filter.
func (e *Extender) Refuse(w http.ResponseWriter, r *http.Request, why error) {
	v, limit, result, level := Verb(path.Base(r.URL.Path)), int64(maxRefused), resultRefused, slog.LevelWarn
	if errors.Is(why, ErrStandby) {
		limit, result, level = maxBody, resultStandby, slog.LevelDebug
	}
	e.cfg.Logger.Log(r.Context(), level, "request refused", "verb", string(v), "remote", r.RemoteAddr, "err", why)
	body := http.MaxBytesReader(w, r.Body, limit)
	switch {
	case v == Preempt:
		e.metrics.count(result)
		var args kube.ExtenderPreemptionArgs
		answer := map[string]*kube.MetaVictims{}
		if _, err := decode(body, &args); err == nil && r.URL.Query().Get("onFault") != "none" {
			answer = args.ProposedVictims()
		}
		write(w, http.StatusOK, &kube.ExtenderPreemptionResult{NodeNameToMetaVictims: answer})
	case v == Filter && errors.Is(why, ErrStandby):
		passAll(w, body)
	case v == Filter, v == Prioritize, v == Bind:
		write(w, http.StatusOK, failure(v, why))
	default:
		write(w, http.StatusUnauthorized, map[string]string{"Code": "unauthenticated", "Message": why.Error()})
	}
}

// RefuseVerb is Refuse for the requests of kube-scheduler among others. It reports whether it
// answered.
func (e *Extender) RefuseVerb(w http.ResponseWriter, r *http.Request, why error) bool {
	verb, ok := strings.CutPrefix(r.URL.Path, "/kube/v1/")
	if !ok || r.Method != http.MethodPost || Verb(verb) == Objects || !slices.Contains(Verbs, Verb(verb)) {
		return false
	}
	e.Refuse(w, r, why)
	return true
}

// passAll answers filter with all nodes of the request.
func passAll(w http.ResponseWriter, body io.Reader) {
	text, err := io.ReadAll(body)
	if err != nil {
		write(w, http.StatusOK, failure(Filter, err))
		return
	}
	args, err := kube.ReadExtenderArgs(text)
	if _, err := tolerateTypeError(err); err != nil {
		write(w, http.StatusOK, failure(Filter, err))
		return
	}
	answer := &kube.ExtenderFilterResult{NodeNames: args.NodeNames}
	if args.Nodes == nil {
		write(w, http.StatusOK, answer)
		return
	}
	answer.NodeNames = nil
	send(w, fullNodesResult{args.Nodes.Items, answer})
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // fails only if the client has disconnected
}

func (e *Extender) answer(v Verb, r *http.Request) (any, error) {
	switch v {
	case Preempt:
		return e.servePreempt(r)
	case Filter:
		return e.serveFilter(r.Context(), r.Body)
	case Prioritize:
		return e.servePrioritize(r.Context(), r.Body)
	case Bind:
		return e.serveBind(r)
	case Objects:
		return e.serveObjects(r)
	}
	return nil, errors.New("unknown verb")
}

// decode decodes the body of a request. See tolerateTypeError.
func decode(body io.Reader, v any) (odd bool, err error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return false, err
	}
	return tolerateTypeError(json.Unmarshal(text, v))
}

// tolerateTypeError inspects an error of encoding/json. If a field has an unexpected
// type, as in a later version of Kubernetes, the rest has been decoded: odd is true
// and the error is nil. Other errors are returned.
func tolerateTypeError(err error) (odd bool, other error) {
	if _, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return true, nil
	}
	return false, err
}

// readOptions returns the options in the URL of preempt. Invalid ones have no effect, and are
// named by the error: kube-scheduler does not check them.
func readOptions(q url.Values) (w PreemptOptions, err error) {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(q)) {
		switch value := q.Get(name); {
		case name == "onFault" && value == "none":
			w.OnFault = EvictNone
		case name == "nodes" && value == "all":
			w.AllNodes = true
		default:
			problems = append(problems, fmt.Errorf("unknown option %q: use onFault=none or nodes=all", name+"="+value))
		}
	}
	return w, errors.Join(problems...)
}

func (e *Extender) servePreempt(r *http.Request) (any, error) {
	var args kube.ExtenderPreemptionArgs
	odd, err := decode(r.Body, &args)
	if err != nil {
		return nil, err
	}
	wishes, err := readOptions(r.URL.Query())
	if err != nil {
		e.cfg.Logger.WarnContext(r.Context(), "invalid preemptVerb in the configuration of kube-scheduler", "err", err)
	}
	for _, victims := range args.NodeNameToVictims {
		if victims != nil {
			e.cache.observePods(slices.DeleteFunc(slices.Clone(victims.Pods), func(p *kube.Pod) bool { return p == nil || p.Metadata.UID == "" })...)
		}
	}
	if odd {
		args.Pod = nil // decoded incompletely: the policy would decide on wrong data
	}
	return e.Preempt(r.Context(), &args, wishes), nil
}

// ErrNoBinder is the response to bind if there is no Binder.
var ErrNoBinder = errors.New("bind is not supported by this extender: remove bindVerb from the configuration of kube-scheduler")

func (e *Extender) serveBind(r *http.Request) (any, error) {
	var args kube.ExtenderBindingArgs
	if _, err := decode(r.Body, &args); err != nil {
		return nil, err
	}
	bindErr := ErrNoBinder
	if e.cfg.Binder != nil {
		bindErr = e.cfg.Binder.Bind(r.Context(), &args)
	}
	answer := &kube.ExtenderBindingResult{}
	if bindErr == nil {
		e.cache.setNode(args.PodUID, args.Node)
	} else {
		answer.Error = bindErr.Error()
	}
	return answer, nil
}

// An objectsResult is the response to objects.
type objectsResult struct {
	Nodes, Pods int      // number of cached objects
	Unread      int      `json:",omitempty"` // number of invalid objects
	First       []string `json:",omitempty"` // the first of them
}

// serveObjects stores objects in the output format of `kubectl get -o json`. Invalid
// objects are skipped and reported; their last valid version is retained. Otherwise
// one invalid object would block all updates, because clients send the same objects
// repeatedly. If the text cannot be read to its end, or contains no valid object,
// nothing is stored.
func (e *Extender) serveObjects(r *http.Request) (any, error) {
	d, err := kube.ReadPartial(r.Body)
	if err != nil {
		return nil, err
	}
	answer := objectsResult{Unread: d.InvalidCount}
	var all []error
	for _, u := range d.Invalid {
		answer.First, all = append(answer.First, u.Error()), append(all, u)
	}
	if len(d.InvalidFiles) > 0 {
		return nil, errors.Join(all...)
	}
	if d.InvalidCount > 0 {
		e.cfg.Logger.WarnContext(r.Context(), "invalid kubernetes objects skipped", "count", d.InvalidCount, "first", answer.First[0])
	}
	e.Feed(d, r.URL.Query().Get("replace") == "true")
	answer.Nodes, answer.Pods = e.cache.size()
	return answer, nil
}
