package extender

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/cede-scheduler/cede/core/kube"
)

// Verb is one thing that kube-scheduler, or whoever feeds the extender, asks for.
type Verb string

// The verbs: all but the last are kube-scheduler's.
const (
	Filter     Verb = "filter"
	Prioritize Verb = "prioritize"
	Preempt    Verb = "preempt"
	Bind       Verb = "bind"
	Objects    Verb = "objects"
)

// Verbs lists every verb.
var Verbs = []Verb{Filter, Prioritize, Preempt, Bind, Objects}

// maxBody bounds a request without a limit of its own, in bytes: filter may carry
// every node of a cluster, whole.
const maxBody = 1 << 30

// Handler serves every verb under a prefix, such as /kube/v1, for a process that
// has no API of its own.
func (e *Extender) Handler(prefix string) http.Handler {
	mux := http.NewServeMux()
	for _, v := range Verbs {
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

// Serve answers one request. Whoever calls it bounds the body.
func (e *Extender) Serve(v Verb, w http.ResponseWriter, r *http.Request) {
	answer, err := e.answer(v, r)
	if err != nil {
		e.cfg.Logger.WarnContext(r.Context(), "request of kube-scheduler not understood", "verb", string(v), "err", err)
		write(w, http.StatusBadRequest, map[string]string{"Code": "invalid", "Message": err.Error()})
		return
	}
	if whole, is := answer.(fullNodesResult); is {
		if text, err := whole.text(); err == nil {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(text) // who asked has gone, if anything
			return
		}
	}
	write(w, http.StatusOK, answer)
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // who asked has gone, if anything
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
	return nil, errors.New("there is no such verb")
}

// decode reads a request.
func decode(body io.Reader, v any) (odd bool, err error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return false, err
	}
	return tolerateTypeError(json.Unmarshal(text, v))
}

// tolerateTypeError is what to make of a decoder's error. A field of a type that we do not expect,
// as a later version of Kubernetes may have, leaves the rest readable: odd says that
// there is one.
func tolerateTypeError(err error) (odd bool, other error) {
	if _, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return true, nil
	}
	return false, err
}

func (e *Extender) servePreempt(r *http.Request) (any, error) {
	var args kube.ExtenderPreemptionArgs
	odd, err := decode(r.Body, &args)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	wishes := PreemptOptions{OnFault: OnFault(q.Get("onFault") == "none"), AllNodes: q.Get("nodes") == "all"}
	for _, victims := range args.NodeNameToVictims {
		if victims != nil {
			e.cache.observePods(slices.DeleteFunc(slices.Clone(victims.Pods), func(p *kube.Pod) bool { return p == nil || p.Metadata.UID == "" })...)
		}
	}
	if odd {
		args.Pod = nil // what the policy would be told is not what was said
	}
	return e.Preempt(r.Context(), &args, wishes), nil
}

// ErrNoBinder is what bind is answered where nobody binds.
var ErrNoBinder = errors.New("this extender binds nothing: leave bindVerb out of kube-scheduler's configuration")

func (e *Extender) serveBind(r *http.Request) (any, error) {
	var args kube.ExtenderBindingArgs
	if _, err := decode(r.Body, &args); err != nil {
		return nil, err
	}
	why := ErrNoBinder
	if e.cfg.Binder != nil {
		why = e.cfg.Binder.Bind(r.Context(), &args)
	}
	answer := &kube.ExtenderBindingResult{}
	if why == nil {
		e.cache.setNode(args.PodUID, args.Node)
	} else {
		answer.Error = why.Error()
	}
	return answer, nil
}

// objectsResult is the answer to who tells of a cluster.
type objectsResult struct {
	Nodes, Pods int      // that are known now
	Unread      int      `json:",omitempty"` // objects that are not as their kind is
	First       []string `json:",omitempty"` // of them
}

// serveObjects takes over what `kubectl get -o json` writes. One object that is not as
// its kind is must not keep the extender from all others, for who feeds it tells the
// same again and again: it is left out and named, and what was known of it stays. What
// cannot be read to its end, or has nothing else in it, changes nothing.
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
		e.cfg.Logger.WarnContext(r.Context(), "kubernetes objects could not be read", "count", d.InvalidCount, "first", answer.First[0])
	}
	e.Feed(d, r.URL.Query().Get("replace") == "true")
	answer.Nodes, answer.Pods = e.cache.size()
	return answer, nil
}
