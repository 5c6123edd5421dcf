package extender

import (
	"slices"

	"github.com/cede-scheduler/cede/core/kube"
)

// podChanged updates the answers after the feed stored a pod. The caller must hold mu.
func (c *cache) podChanged(p *kube.Pod) {
	k := key(p)
	if p.Metadata.DeletionTimestamp != "" && len(c.answers.victims[k]) > 0 {
		c.answers.evicted(p, false)
	}
	a := c.answers.byPod[k]
	if a == nil {
		return
	}
	if p.Spec.NodeName != "" {
		c.preemptorPlaced(a)
	} else if c.answers.nominate(k, p.Status.NominatedNodeName) {
		c.changes.Add(1)
	}
}

// podGone updates the answers after the feed removed a pod. The victims of a preemptor
// that is gone remain leaving, because their eviction may be in progress.
func (c *cache) podGone(p *kube.Pod) {
	if len(c.answers.victims[key(p)]) > 0 {
		c.answers.evicted(p, true)
	}
	if a := c.answers.byPod[key(p)]; a != nil {
		c.answers.unreserve(a)
	}
}

// preemptorPlaced ends the reservation of a preemptor that was bound. If no victim was
// evicted by then, kube-scheduler found capacity elsewhere and discarded the answer.
func (c *cache) preemptorPlaced(a *answer) {
	c.answers.unreserve(a)
	if isSpared(c, a) {
		c.answers.end(a, resultDiscarded)
	}
}

// isSpared reports whether a victim of the answer is cached and not terminating.
func isSpared(c *cache, a *answer) bool {
	spared := func(k string) bool { p := c.pods[k]; return p != nil && p.Metadata.DeletionTimestamp == "" }
	if a.node != "" {
		return slices.ContainsFunc(a.victims[a.node], spared)
	}
	for _, victims := range a.victims {
		if slices.ContainsFunc(victims, spared) {
			return true
		}
	}
	return false
}

// requestAnswer prepares a preemption request for a pod. If there is an answer for the
// pod already, kube-scheduler did not use it as long as a victim is still running:
// these victims stop leaving. proposed holds the victims of the request. If the
// extender is not fed, the cached pods may be outdated, and only proposed victims are
// certain to be running.
func (c *cache) requestAnswer(pod *kube.Pod, proposal map[string]*kube.MetaVictims) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expireAnswers()
	a := c.answers.byPod[key(pod)]
	if a == nil {
		return
	}
	c.changes.Add(1)
	spared := isSpared(c, a)
	if c.synced.IsZero() {
		spared = isProposed(a, proposal) && spared
	}
	if spared {
		c.answers.end(a, resultDiscarded)
		return
	}
	c.answers.unreserve(a)
}

// isProposed reports whether a victim of the answer is proposed again.
func isProposed(a *answer, proposal map[string]*kube.MetaVictims) bool {
	for node, v := range proposal {
		if v != nil && slices.ContainsFunc(v.Pods, func(p kube.MetaPod) bool { return a.named[node][p.UID] }) {
			return true
		}
	}
	return false
}

// recordAnswer stores a response of preempt. If described is true, its result will be
// reported with the reasons and the names of the victims.
func (c *cache) recordAnswer(pod *kube.Pod, nodes map[string]*kube.MetaVictims, end *outcome, described bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes.Add(1)
	if a := c.answers.record(pod, nodes, end.result != resultAnswered); described {
		a.reasons = end.reasons
		a.describe(c)
	}
}

// nominatedNode returns the node on which kube-scheduler will place a pod, or "" if
// there is none, and updates the answers from the pod's nomination.
func (c *cache) nominatedNode(pod *kube.Pod) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expireAnswers()
	node := pod.Status.NominatedNodeName
	if c.answers.nominate(key(pod), node) {
		c.changes.Add(1)
	}
	a := c.answers.byPod[key(pod)]
	if a == nil {
		return node
	}
	if c.synced.IsZero() && node != "" && node == a.node {
		c.answers.final(a, resultChosen) // without a feed, a nomination is the only confirmation
	}
	if a.node != "" {
		return a.node
	}
	return node
}

// expireAnswers ends answers after their deadline. The caller must hold mu.
func (c *cache) expireAnswers() {
	if c.answers.expire(!c.synced.IsZero()) {
		c.changes.Add(1)
	}
}

// leaving returns the keys of the pods that were named as victims, sorted.
func (c *cache) leaving() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var list []string
	for k := range c.answers.victims {
		if c.answers.isLeaving(k) {
			list = append(list, k)
		}
	}
	slices.Sort(list)
	return list
}

// unconfirmed returns the number of answers that have not ended.
func (c *cache) unconfirmed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expireAnswers()
	return c.answers.open
}
