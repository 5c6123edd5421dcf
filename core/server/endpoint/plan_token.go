package endpoint

import (
	"bytes"
	"compress/flate"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A plan token is the entry that would be written, compressed and signed. Any server
// that receives it can verify the plan without having stored it. The signature prevents
// that clients invent placements and victims. A line with the rules of the plan precedes
// the entry.

// planTokenPrefix starts every token; its number is the version of the format.
const planTokenPrefix = "cede_plan2."

// maxPlanSize is the size of the largest token after decompression, in bytes.
const maxPlanSize = 16 << 20

// sealedPlan is the content of a token.
type sealedPlan struct {
	*replication.RegisterJob
	at    int64      // Unix nanoseconds at which it was made
	rules *planRules // nil: the plan does not depend on policies
}

// planKey signs plan tokens.
type planKey struct {
	store  *state.Store
	secret func() []byte // nil: the key is derived from the state
}

// seal returns the token of a plan.
func (k *planKey) seal(now int64, p *Proposal, eval *model.Evaluation, plan *model.Plan, rules *planRules) string {
	done := *eval
	done.Queued = p.Queued
	if len(p.Failed) == 0 {
		done.Status = model.EvalComplete
	}
	groups := make([]int, len(plan.Groups))
	for i := range groups {
		groups[i] = i
	}
	check := p.JobModifyIndex
	raw := codec.Encode(&replication.Entry{Time: now, Command: &replication.RegisterJob{
		Job: p.Job, Eval: &done, Check: &check,
		Batch: &apply.Batch{Now: now, Plans: []apply.BatchPlan{{Plan: plan, Groups: groups}}},
	}})
	head, _ := json.Marshal(rules) // strings and numbers only: cannot fail
	return k.pack(planTokenPrefix, head, raw)
}

// pack returns a token with a line and the bytes of an entry.
func (k *planKey) pack(prefix string, head, raw []byte) string {
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestSpeed) // the level is valid
	_, _ = w.Write(append(head, '\n'))                // writing into a buffer cannot fail
	_, _ = w.Write(raw)
	_ = w.Close()
	mac := k.sign(prefix, packed.Bytes())
	return prefix + base64.RawURLEncoding.EncodeToString(append(mac, packed.Bytes()...))
}

// unpack returns the content of a token, or the reason why it is invalid.
func (k *planKey) unpack(prefix, token string) (head, raw []byte, reason string) {
	text, ok := strings.CutPrefix(token, prefix)
	if !ok {
		return nil, nil, "does not start with " + prefix
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(sealed) < sha256.Size {
		return nil, nil, "truncated or changed"
	}
	mac, packed := sealed[:sha256.Size], sealed[sha256.Size:]
	if !hmac.Equal(mac, k.sign(prefix, packed)) {
		return nil, nil, "made for another cluster, or changed"
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxPlanSize))
	if err != nil {
		return nil, nil, "cannot be decompressed"
	}
	head, raw, _ = bytes.Cut(plain, []byte("\n"))
	return head, raw, ""
}

func (k *planKey) sign(prefix string, packed []byte) []byte {
	h := hmac.New(sha256.New, k.key())
	_, _ = h.Write([]byte(prefix))
	_, _ = h.Write(packed)
	return h.Sum(nil)
}

// invalidToken returns the error of a token that a command did not print like this.
func invalidToken(command, reason string) error {
	return apierror.New(apierror.CodeInvalid, "invalid plan token: %s", reason).
		WithHint("use a token that `%s` printed for this cluster, unchanged", command)
}

// open verifies a token and returns its content.
func (k *planKey) open(token string) (*sealedPlan, error) {
	invalid := func(reason string) error { return invalidToken("cede job plan", reason) }
	head, plain, reason := k.unpack(planTokenPrefix, token)
	if reason != "" {
		return nil, invalid(reason)
	}
	p := &sealedPlan{}
	if err := json.Unmarshal(head, &p.rules); err != nil {
		return nil, invalid("made by another release of the server")
	}
	entry, err := codec.Decode(plain)
	if err != nil {
		return nil, invalid("made by another release of the server")
	}
	c, ok := entry.Command.(*replication.RegisterJob)
	if !ok || c.Batch == nil || c.Check == nil || c.Eval == nil {
		return nil, invalid("contains no plan")
	}
	p.RegisterJob, p.at = c, entry.Time
	return p, nil
}

// key returns the key of the signature, which is the same on every server.
func (k *planKey) key() []byte {
	if k.secret != nil {
		return k.secret()
	}
	meta := k.store.Snapshot().Meta()
	h := hmac.New(sha256.New, meta.Key[:])
	_, _ = h.Write([]byte("plan tokens of " + meta.ClusterID))
	return h.Sum(nil)
}
