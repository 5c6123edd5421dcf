package codec

import (
	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

// BudgetWithEvictions converts a budget with the recent evictions that count
// against its rate. Only snapshots hold them.
func (e *Encoder) BudgetWithEvictions(b *model.Budget, recent []model.EvictionCount) *pb.Budget {
	m := e.Budget(b)
	m.Recent = encodeList(recent, e.EvictionCount)
	return m
}

// RecentEvictions returns the recent evictions of a budget in a snapshot.
func (d *Decoder) RecentEvictions(m *pb.Budget) []model.EvictionCount {
	return decodeList(m.Recent, d.evictionCount)
}
