package server

import (
	"bytes"
	"compress/flate"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A plan token is the entry that would be written, packed and signed: whichever
// server gets it knows what was shown without having kept anything. The
// signature keeps people from making placements and victims up. Before the entry
// stands a line with the rules by which the plan was made.

// planPrefix begins every token; the number is of what follows.
const planPrefix = "cede_plan2."

// planLimit is the size of the largest token, unpacked.
const planLimit = 16 << 20

// shownPlan is what a token holds.
type shownPlan struct {
	*replication.RegisterJob
	at    int64 // Unix nanoseconds at which it was made
	rules *planRules
}

// sealPlan makes a token.
func (s *Server) sealPlan(now int64, p *Proposal, eval *model.Evaluation, plan *model.Plan, rules *planRules) string {
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
	raw := replication.Encode(&replication.Entry{Time: now, Command: &replication.RegisterJob{
		Job: p.Job, Eval: &done, Check: &check,
		Batch: &apply.Batch{Now: now, Plans: []apply.BatchPlan{{Plan: plan, Groups: groups}}},
	}})
	head, _ := json.Marshal(rules) // of strings and numbers
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestSpeed) // the level is valid
	_, _ = w.Write(append(head, '\n'))                // a buffer takes everything
	_, _ = w.Write(raw)
	_ = w.Close()
	mac := s.sign(packed.Bytes())
	return planPrefix + base64.RawURLEncoding.EncodeToString(append(mac, packed.Bytes()...))
}

func (s *Server) sign(packed []byte) []byte {
	h := hmac.New(sha256.New, s.planKey())
	_, _ = h.Write([]byte(planPrefix))
	_, _ = h.Write(packed)
	return h.Sum(nil)
}

// openPlan is what a token holds.
func (s *Server) openPlan(token string) (*shownPlan, error) {
	invalid := func(why string) error {
		return apierror.New(apierror.CodeInvalid, "the plan token %s", why).WithHint("take it from `cede job plan` as it is, of this cluster")
	}
	text, ok := strings.CutPrefix(token, planPrefix)
	if !ok {
		return nil, invalid("does not begin with " + planPrefix)
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < sha256.Size {
		return nil, invalid("is cut off or was changed")
	}
	mac, packed := raw[:sha256.Size], raw[sha256.Size:]
	if !hmac.Equal(mac, s.sign(packed)) {
		return nil, invalid("is not of this cluster, or was changed")
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), planLimit))
	if err != nil {
		return nil, invalid("cannot be unpacked")
	}
	head, plain, _ := bytes.Cut(plain, []byte("\n"))
	p := &shownPlan{}
	if err := json.Unmarshal(head, &p.rules); err != nil {
		return nil, invalid("is of another release of the server")
	}
	entry, err := replication.Decode(plain)
	if err != nil {
		return nil, invalid("is of another release of the server")
	}
	c, ok := entry.Command.(*replication.RegisterJob)
	if !ok || c.Batch == nil || c.Check == nil || c.Eval == nil {
		return nil, invalid("holds no plan")
	}
	p.RegisterJob, p.at = c, entry.Time
	return p, nil
}

// planKey signs tokens. Every server has the same, from the state.
func (s *Server) planKey() []byte {
	if s.cfg.Secret != nil {
		return s.cfg.Secret()
	}
	meta := s.Snapshot().Meta()
	h := hmac.New(sha256.New, meta.Key[:])
	_, _ = h.Write([]byte("plan tokens of " + meta.ClusterID))
	return h.Sum(nil)
}

// noLongerHolds lists what of a plan the applier would turn down now.
func (s *Server) noLongerHolds(snap *state.Snapshot, p *replication.RegisterJob) []string {
	job, err := cloneJob(p.Job)
	if err != nil {
		return []string{err.Error()}
	}
	old := snap.Job(job.Key())
	changed := old == nil || old.Stopped || replication.JobHash(old) != replication.JobHash(job)
	after, err := registeredIn(snap, job, old, changed)
	if err != nil {
		return []string{err.Error()}
	}
	stored := after.Job(job.Key())
	var list []string
	for _, bp := range p.Batch.Plans {
		plan := *bp.Plan
		plan.Groups = rebound(plan.Groups, stored)
		verdict, err := planner.Verify(after, &plan, s.writer.Now(), &scheduler.CommitRules{}, &planner.Scratch{})
		if err != nil {
			return []string{err.Error()}
		}
		for _, r := range verdict.Rejected {
			list = append(list, fmt.Sprintf("node %s: %s", r.NodeID, r.Reason))
		}
		for _, g := range bp.Plan.Groups {
			list = append(list, goneVictims(snap, &g)...)
		}
	}
	return list
}

// rebound is groups whose placements are of the job as it is stored.
func rebound(groups []model.CommitGroup, job *model.Job) []model.CommitGroup {
	bind := func(list []*model.Allocation) []*model.Allocation {
		out := make([]*model.Allocation, len(list))
		for i, a := range list {
			bound := *a
			bound.Job = job
			if g := job.Group(a.Group.Name); g != nil {
				bound.Group = g
			}
			out[i] = &bound
		}
		return out
	}
	out := make([]model.CommitGroup, len(groups))
	for i, g := range groups {
		g.Placements, g.Updates = bind(g.Placements), bind(g.Updates)
		out[i] = g
	}
	return out
}

// goneVictims lists the victims that have ended: the plan shown had them run.
func goneVictims(snap *state.Snapshot, g *model.CommitGroup) []string {
	var list []string
	for _, e := range g.Evictions {
		if a := snap.Alloc(e.AllocID); a == nil || !a.Live() {
			list = append(list, fmt.Sprintf("allocation %s, which it evicts, is no longer running", e.AllocID))
		}
	}
	return list
}
