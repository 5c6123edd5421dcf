package audit

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

// from is the first cluster version with audit records: a server of an older release would
// derive another state from their entries.
const from = 2

// maxDetail bounds the text of a record, in bytes: records are held in memory.
const maxDetail = 1 << 10

type originKey struct{}

// WithOrigin returns a context in which changes are recorded as those of an origin.
func WithOrigin(ctx context.Context, o model.AuditOrigin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns the origin of a context, and false if it has none.
func OriginOf(ctx context.Context) (o model.AuditOrigin, ok bool) {
	o, ok = ctx.Value(originKey{}).(model.AuditOrigin)
	return o, ok
}

// Stamp sets the audit record of an entry that is about to be proposed on a state. It
// replaces the one that the entry has: only the server that proposes an entry composes it.
func Stamp(ctx context.Context, snap *state.Snapshot, e *replication.Entry) {
	e.Audit = nil
	if snap.Meta().Version < from {
		return
	}
	r := Describe(snap, e.Command)
	if r == nil {
		return
	}
	var known bool
	if r.AuditOrigin, known = OriginOf(ctx); !known {
		r.Actor = model.ServerActor
	}
	if c, ok := e.Command.(*replication.ChangePolicy); ok && c.Actor == model.TrialActor {
		r.AuditOrigin = model.AuditOrigin{Actor: model.TrialActor}
	}
	r.Object, r.Detail = shorten(r.Object), shorten(r.Detail)
	e.Audit = r
}

// shorten returns a text of at most maxDetail bytes of valid UTF-8.
func shorten(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxDetail {
		return text
	}
	end := maxDetail - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
