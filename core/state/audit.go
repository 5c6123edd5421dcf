package state

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// MaxAuditRecords bounds the audit records: the oldest one is dropped for a new one.
const MaxAuditRecords = 4096

// AuditRecords returns the newest changes by operators, ascending by index. The slice is
// shared and read-only.
func (v *smallTables) AuditRecords() []*model.AuditRecord { return v.audit }

// Append adds a record. Its index must be above those of all others: operators change
// settings rarely, so that the list is copied.
func (t AuditWriter) Append(r *model.AuditRecord) {
	a := t.ownSmall()
	if n := len(a.audit); n > 0 && a.audit[n-1].Index >= r.Index {
		panic(fmt.Sprintf("state: audit record of index %d after %d", r.Index, a.audit[n-1].Index))
	}
	a.audit = slices.Concat(a.audit[max(0, len(a.audit)+1-MaxAuditRecords):], []*model.AuditRecord{r})
	t.touch(TableAudit.All())
}

// Replace replaces all records by a list that ascends by index.
func (t AuditWriter) Replace(list []*model.AuditRecord) {
	t.ownSmall().audit = list
	t.touch(TableAudit.All())
}
