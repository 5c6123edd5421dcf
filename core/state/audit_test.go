package state

import (
	"testing"

	"github.com/cede-scheduler/cede/core/model"
)

// A new record drops the oldest one once there are MaxAuditRecords. Earlier snapshots and
// aborted transactions share nothing with it.
func TestAuditWriter_DropsTheOldestRecord(t *testing.T) {
	t.Parallel()
	s := New()
	txn := s.Begin(1)
	for i := range MaxAuditRecords {
		txn.AuditWriter().Append(&model.AuditRecord{Index: uint64(i + 1)})
	}
	full := txn.Commit()
	next := s.Begin(2)
	next.AuditWriter().Append(&model.AuditRecord{Index: MaxAuditRecords + 1, Action: "aborted"})
	next.Abort()
	next = s.Begin(3)
	next.AuditWriter().Append(&model.AuditRecord{Index: MaxAuditRecords + 1})
	after := next.Commit()
	if list := full.AuditRecords(); len(list) != MaxAuditRecords || list[0].Index != 1 {
		t.Errorf("the earlier snapshot has %d records from %d on", len(list), list[0].Index)
	}
	list := after.AuditRecords()
	if last := list[len(list)-1]; len(list) != MaxAuditRecords || list[0].Index != 2 || last.Index != MaxAuditRecords+1 || last.Action != "" {
		t.Errorf("%d records from %d to %+v", len(list), list[0].Index, last)
	}
	if err := after.Check(); err != nil {
		t.Error(err)
	}
}
