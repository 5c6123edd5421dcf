package state

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

func tokenAccessor(t *model.Token) string { return t.Accessor }

// Tokens returns the tokens, ascending by accessor. The slice is shared and
// read-only.
func (v *smallTables) Tokens() []*model.Token { return v.tokens }

// Token returns the token with the accessor, or nil if there is none.
func (v *smallTables) Token(accessor string) *model.Token {
	return v.tokens.Get(accessor, tokenAccessor)
}

// TokenByHash returns the token with this hash of its secret, or nil if there is
// none. It scans all tokens, since clusters have few.
func (v *smallTables) TokenByHash(hash [32]byte) *model.Token {
	for _, t := range v.tokens {
		if t.Hash == hash {
			return t
		}
	}
	return nil
}

// Upsert stores a token and sets its index.
func (t TokenWriter) Upsert(k *model.Token) {
	if !t.restores {
		k.CreateIndex = t.index
		if old := t.Token(k.Accessor); old != nil {
			k.CreateIndex = old.CreateIndex
		}
	}
	a := t.ownSmall()
	a.tokens = a.tokens.With(k, tokenAccessor)
	t.touch(TableTokens.Of(k.Accessor))
}

// Delete deletes a token, if it exists.
func (t TokenWriter) Delete(accessor string) {
	if next, found := t.tokens.Without(accessor, tokenAccessor); found {
		t.ownSmall().tokens = next
		t.touch(TableTokens.Of(accessor))
	}
}

func signerKey(s *model.Signer) string { return string(s.Key[:]) }

// Signers returns the keys of servers that sign certificates, ascending by key. Servers that
// were removed are included. The slice is shared and read-only.
func (v *smallTables) Signers() []*model.Signer { return v.signers }

// Signer returns the signer with the key, or nil if there is none.
func (v *smallTables) Signer(key [32]byte) *model.Signer {
	return v.signers.Get(string(key[:]), signerKey)
}

// Upsert stores a signer and sets its index.
func (t SignerWriter) Upsert(s *model.Signer) {
	if !t.restores {
		s.CreateIndex = t.index
	}
	a := t.ownSmall()
	a.signers = a.signers.With(s, signerKey)
	t.touch(TableSigners.Of(s.ServerID))
}

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
