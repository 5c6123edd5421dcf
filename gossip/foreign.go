package gossip

import "time"

// foreignMember is a member that says that it belongs to another cluster. It may have come in
// before it knew, as where its address is one that a member had.
type foreignMember struct {
	cluster  string
	since    time.Time
	unlisted bool // not listed any more
}

// foreignGrace is for how long a member may name another cluster and be listed: where a
// snapshot of another cluster is restored, its servers take the new name one after
// another.
const foreignGrace = 30 * time.Second

// isForeign is whether a cluster is another one than this server's; r.mu is held.
func (r *membership) isForeign(cluster string) bool {
	return r.tags.ClusterID != "" && cluster != "" && cluster != r.tags.ClusterID
}

// recordForeign notes that a member names another cluster; r.mu is held.
func (r *membership) recordForeign(id, cluster string) {
	if s, known := r.foreign[id]; !known || s.cluster != cluster {
		r.foreign[id] = foreignMember{cluster: cluster, since: time.Now()}
	}
}

// unlistForeign takes members off the list that have named another cluster for a while, and
// puts those back that do not any more.
func (r *membership) unlistForeign() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, m := range r.members {
		s, noted := r.foreign[id]
		if !noted {
			s.cluster = m.Tags.ClusterID
		}
		if id == r.id || !r.isForeign(s.cluster) {
			delete(r.foreign, id)
			continue
		}
		r.recordForeign(id, s.cluster)
		if s = r.foreign[id]; s.unlisted || time.Since(s.since) < foreignGrace {
			continue
		}
		s.unlisted = true
		r.foreign[id] = s
		r.log.Warn("a member is not listed any more: it belongs to another cluster", "id", id, "address", m.Addr, "cluster", s.cluster,
			"hint", "give one of the clusters another gossip.name, or that server other seeds")
		r.emit(Event{Member: m, Before: m.Status})
	}
}
