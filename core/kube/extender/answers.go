package extender

import (
	"maps"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/kube"
)

// answers holds the responses of preempt until the cluster confirms them. Between a
// response and the feed of its consequences the cache is out of date: it contains the
// victims as running pods, and the preemptor without a node. Without this record the
// next request would name further victims for the same pod.
//
// The named victims count as leaving, and the preemptor as if it were on its node. The
// feed ends both: for a victim its deletion, for the preemptor its binding. If neither
// arrives, the answer expires. The lock of the cache protects answers.
type answers struct {
	ttl time.Duration
	// finished receives each answer with its final result, once. It is called with the
	// lock of the cache held.
	finished func(a *answer, result string)
	now      func() time.Time
	byPod    map[string]*answer // the latest answer for each preemptor that is not bound yet
	// victims holds the answers that name a pod, oldest first.
	victims map[string][]*answer
	order   []*answer // all answers, oldest first; some may have ended
	open    int       // elements of order that have not ended
	named   int       // victims of these, on all nodes
}

// An answer is one response of preempt.
type answer struct {
	pod *kube.Pod // the preemptor, as in the request
	// node is the node that kube-scheduler evicts on; "" if the response has several
	// nodes and the choice of kube-scheduler is unknown yet. Until then the victims of
	// all of them count as leaving and the preemptor as if it were on all of them:
	// otherwise a response could name a pod that is gone.
	node    string
	victims map[string][]string        // keys by node of the preemptor; pod groups may have pods on others
	named   map[string]map[string]bool // the same keys, as sets
	size    int                        // number of keys
	expires time.Time
	counted bool // the result is final
	ended   bool

	time    time.Time         // of the response
	reasons []string          // of the policy
	known   map[string]PodRef // victims, by key; nil if decisions are not observed
}

// Bounds of what is stored: answers, and victims that they name. The oldest answers end early.
const (
	maxAnswers = 4096
	maxVictims = 1 << 17
)

func newAnswers(ttl time.Duration, now func() time.Time, finished func(*answer, string)) answers {
	return answers{ttl: ttl, now: now, finished: finished, byPod: map[string]*answer{}, victims: map[string][]*answer{}}
}

// record stores a response. If isProposal is true the response is the proposal of
// kube-scheduler, and has been counted.
func (s *answers) record(pod *kube.Pod, nodes map[string]*kube.MetaVictims, isProposal bool) *answer {
	a := &answer{pod: pod, victims: make(map[string][]string, len(nodes)), named: make(map[string]map[string]bool, len(nodes)), time: s.now(), expires: s.now().Add(s.ttl), counted: isProposal}
	for node, v := range nodes {
		a.named[node] = make(map[string]bool, len(v.Pods))
		a.size += len(v.Pods)
		for _, p := range v.Pods {
			a.victims[node] = append(a.victims[node], p.UID)
			a.named[node][p.UID] = true
			s.victims[p.UID] = append(s.victims[p.UID], a)
		}
		if len(nodes) == 1 {
			a.node = node
		}
	}
	s.byPod[key(pod)] = a
	s.order = append(s.order, a)
	s.open++
	s.named += a.size
	for _, oldest := range s.order {
		if s.open <= maxAnswers && s.named <= maxVictims {
			break
		}
		s.end(oldest, resultUnconfirmed)
	}
	s.compact()
	return a
}

// compact removes ended answers from the list once they are the majority.
func (s *answers) compact() {
	if len(s.order) > 2*s.open+16 {
		s.order = slices.DeleteFunc(s.order, func(a *answer) bool { return a.ended })
	}
}

// final counts the result of an answer, once.
func (s *answers) final(a *answer, result string) {
	if !a.counted {
		a.counted = true
		s.finished(a, result)
	}
}

// end removes an answer and counts its result unless it has been counted.
func (s *answers) end(a *answer, result string) {
	if a.ended {
		return
	}
	s.final(a, result)
	a.ended = true
	s.open--
	s.named -= a.size
	s.unreserve(a)
	for _, node := range slices.Sorted(maps.Keys(a.victims)) {
		for _, k := range a.victims[node] {
			s.removeVictim(k, a)
		}
	}
}

func (s *answers) removeVictim(k string, a *answer) {
	rest := slices.DeleteFunc(s.victims[k], func(o *answer) bool { return o == a })
	if s.victims[k] = rest; len(rest) == 0 {
		delete(s.victims, k)
	}
}

// unreserve ends the reservation of the preemptor. Its victims remain leaving.
func (s *answers) unreserve(a *answer) {
	if s.byPod[key(a.pod)] == a {
		delete(s.byPod, key(a.pod))
	}
	s.endIfComplete(a)
}

// endIfComplete ends an answer that was used once its victims are gone and its preemptor
// has no reservation.
func (s *answers) endIfComplete(a *answer) {
	if a.ended || !a.counted || a.node == "" || s.byPod[key(a.pod)] == a {
		return
	}
	for _, k := range a.victims[a.node] {
		if slices.Contains(s.victims[k], a) {
			return
		}
	}
	s.end(a, resultChosen)
}

// isLeaving reports whether a pod was named as a victim on a node that kube-scheduler
// may evict on.
func (s *answers) isLeaving(k string) bool {
	return slices.ContainsFunc(s.victims[k], func(a *answer) bool { return a.node == "" || a.named[a.node][k] })
}

// nominate records the node that kube-scheduler chose for a preemptor. It returns true
// if that was unknown.
func (s *answers) nominate(pod, node string) bool {
	a := s.byPod[pod]
	if a == nil || a.node != "" || a.victims[node] == nil {
		return false
	}
	a.node = node
	return true
}

// evicted records that the eviction of a pod has been observed. The answers that name
// it are correct, even if kube-scheduler takes long to bind the preemptor.
func (s *answers) evicted(p *kube.Pod, gone bool) {
	k, explained := key(p), false
	for _, a := range slices.Clone(s.victims[k]) {
		if !explained {
			s.nominate(key(a.pod), p.Spec.NodeName)
		}
		if !a.named[a.node][k] {
			continue // another answer caused the eviction
		}
		explained = true
		s.final(a, resultChosen)
		if gone {
			s.removeVictim(k, a)
			s.endIfComplete(a)
			continue
		}
		var grace time.Duration
		if seconds := p.Spec.TerminationGracePeriod; seconds != nil {
			grace = time.Duration(min(max(*seconds, 0), 24*3600)) * time.Second
		}
		a.expires = s.now().Add(s.ttl + grace)
	}
}

// expire ends the answers whose time has passed. fed reports whether the cache
// is fed, so that evictions would have been observed. It returns true if an answer
// has ended.
func (s *answers) expire(fed bool) bool {
	now, open := s.now(), s.open
	for _, a := range s.order {
		if a.ended || now.Before(a.expires) {
			continue
		}
		if fed {
			s.end(a, resultDiscarded)
		} else {
			s.end(a, resultUnconfirmed)
		}
	}
	s.compact()
	return s.open != open
}

// nodes returns the nodes that kube-scheduler may evict on, sorted.
func (a *answer) nodes() []string {
	if a.node != "" {
		return []string{a.node}
	}
	return slices.Sorted(maps.Keys(a.victims))
}
