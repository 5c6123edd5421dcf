package gossip

import "time"

// A foreignMember belongs to another cluster. It may have been admitted before it had a
// cluster ID, if its address is that of a former member.
type foreignMember struct {
	cluster  string
	since    time.Time
	unlisted bool // not listed any more
}

// foreignGrace is how long a member may announce another cluster ID and stay listed. After
// the snapshot of another cluster was restored, the servers adopt the new ID one after
// another.
const foreignGrace = 30 * time.Second

// isForeign reports whether cluster differs from this server's cluster. The caller holds
// r.mu.
func (r *membership) isForeign(cluster string) bool {
	return r.tags.ClusterID != "" && cluster != "" && cluster != r.tags.ClusterID
}

// recordForeign records since when a member announces another cluster. The caller holds
// r.mu.
func (r *membership) recordForeign(id, cluster string) {
	if s, known := r.foreign[id]; !known || s.cluster != cluster {
		r.foreign[id] = foreignMember{cluster: cluster, since: time.Now()}
	}
}

// unlistForeign removes members from the list that have announced another cluster for
// foreignGrace, and restores those that no longer do.
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
		r.log.Warn("removed a member of another cluster from the list", "id", id, "address", m.Addr, "cluster", s.cluster,
			"hint", "change gossip.name of one cluster, or the seeds of that server")
		r.emit(Event{Member: m, Before: m.Status})
	}
}
