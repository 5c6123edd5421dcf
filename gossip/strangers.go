package gossip

import "time"

// stranger is a member that says that it belongs to another cluster. It may have come in
// before it knew, as where its address is one that a member had.
type stranger struct {
	cluster string
	since   time.Time
	out     bool // not listed any more
}

// believedFor is for how long a member may name another cluster and be listed: where a
// snapshot of another cluster is restored, its servers take the new name one after
// another.
const believedFor = 30 * time.Second

// foreign is whether a cluster is another one than this server's; r.mu is held.
func (r *roster) foreign(cluster string) bool {
	return r.tags.ClusterID != "" && cluster != "" && cluster != r.tags.ClusterID
}

// suspect notes that a member names another cluster; r.mu is held.
func (r *roster) suspect(id, cluster string) {
	if s, known := r.strangers[id]; !known || s.cluster != cluster {
		r.strangers[id] = stranger{cluster: cluster, since: time.Now()}
	}
}

// sortOut takes members off the list that have named another cluster for a while, and
// puts those back that do not any more.
func (r *roster) sortOut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, m := range r.members {
		s, noted := r.strangers[id]
		if !noted {
			s.cluster = m.Tags.ClusterID
		}
		if id == r.id || !r.foreign(s.cluster) {
			delete(r.strangers, id)
			continue
		}
		r.suspect(id, s.cluster)
		if s = r.strangers[id]; s.out || time.Since(s.since) < believedFor {
			continue
		}
		s.out = true
		r.strangers[id] = s
		r.log.Warn("a member is not listed any more: it belongs to another cluster", "id", id, "address", m.Addr, "cluster", s.cluster,
			"hint", "give one of the clusters another gossip.name, or that server other seeds")
		r.tell(Event{Member: m, Before: m.Status})
	}
}
