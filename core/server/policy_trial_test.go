package server

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/audit"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/policymgr"
	"github.com/cede-scheduler/cede/core/trial"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A lostWorkHost holds versions that evict the victims with the least lost work, or with
// the most, and versions that evict few large victims, or in 5 % of the decisions small ones.
type lostWorkHost struct{ builtinHost }

// A lostWorkPolicy scores victims by their lost work times a sign.
type lostWorkPolicy struct{ sign float64 }

func (lostWorkPolicy) Info() sdk.Info {
	return sdk.Info{Name: "p", Delta: 10, Columns: sdk.LostWorkColumn}
}

func (p lostWorkPolicy) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	for i := range out.Score {
		out.Tier[i] = int64(in.Rows.Priority[i])
		out.Score[i] = p.sign * float64(in.Rows.LostWork[i])
	}
	return nil
}

// A sizePolicy prefers the largest victims, or the smallest ones in the planted share of the
// decisions. The time of a decision determines whether it is one of them.
type sizePolicy struct{ planted float64 }

func (sizePolicy) Info() sdk.Info {
	return sdk.Info{Name: "p", Delta: 10, Columns: sdk.UseColumns | sdk.TimeColumns}
}

func (p sizePolicy) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	sign := -1.0
	if rand.New(rand.NewPCG(uint64(in.Now), 1)).Float64() < p.planted {
		sign = 1
	}
	for i := range out.Score {
		out.Tier[i] = int64(in.Rows.Priority[i])
		out.Score[i] = sign * in.Rows.Use[model.CPU][i]
	}
	return nil
}

// Describe returns a version with the name of the request's builtin policy as its digest.
func (lostWorkHost) Describe(_ context.Context, r policy.LoadRequest) (*model.PolicyVersion, error) {
	v, err := openLostWork("sha256:" + r.Builtin)
	if err != nil {
		return nil, err
	}
	return &model.PolicyVersion{ID: v.ID, Name: "p", Digest: v.Digest, Kind: model.PolicyBuiltin, Config: v.Config()}, nil
}

func (lostWorkHost) Open(_ context.Context, v *model.PolicyVersion, _ []byte) (*policy.Version, error) {
	return openLostWork(v.Digest)
}

func openLostWork(digest string) (*policy.Version, error) {
	var p sdk.Policy = lostWorkPolicy{1}
	switch {
	case strings.Contains(digest, "wasteful"):
		p = lostWorkPolicy{-1}
	case strings.Contains(digest, "large"):
		p = sizePolicy{}
	case strings.Contains(digest, "regressed"):
		p = sizePolicy{0.05}
	}
	return policy.NewVersion(policy.Source{Name: "p", Module: policy.Native(digest, func() sdk.Policy { return p })})
}

// verdicts holds the conditions worse and better, on one measure. never does not hold.
type verdicts struct{ measure string }

func (v verdicts) Check(string) ([]string, error) { return []string{v.measure}, nil }

func (v verdicts) Holds(condition string, s *trial.Summary) (bool, string, error) {
	d := s.Measure(v.measure).Difference
	return condition == "worse" && d.Low > 0 || condition == "better" && d.High < 0, fmt.Sprintf("%s after %d pairs", condition, s.Pairs), nil
}

// A trialStory is a trial of one version against another.
type trialStory struct {
	servers             int
	seed                uint64
	baseline, candidate string
	blocks              int    // 0: 40
	stopIf              string // "": worse
	measure             string // that the conditions read; "": wastedWork.cpu
	low                 []*coretest.JobBuilder
	pause               time.Duration                 // after every arrival; 0: 7 s
	disturb             func(w *harness, arrival int) // is called after every arrival; nil: never
}

// runTrial runs a trial with arrivals that evict, until it has ended.
func runTrial(t *testing.T, story trialStory) (got *model.PolicyTrial, roles model.PolicyState, events []string) {
	t.Helper()
	const block = time.Minute
	if story.low == nil {
		story.low = []*coretest.JobBuilder{coretest.Job("low").Priority(20).Count(3).Ask(300, 300, 0)}
	}
	blocks, stopIf := cmp.Or(story.blocks, 40), cmp.Or(story.stopIf, "worse")
	baseline, candidate := story.baseline, story.candidate
	change := func(c *Config) {
		c.Policies, c.Conditions = lostWorkHost{}, verdicts{cmp.Or(story.measure, "wastedWork.cpu")}
	}
	runServers(t, max(1, story.servers), change, func(w *harness) {
		w.addNodes(1)
		versions := map[string]string{}
		for _, name := range []string{baseline, candidate} {
			w.mustCall(func(s *Server) error {
				v, err := s.LoadPolicy(w.ctx, policy.LoadRequest{Name: "p", Builtin: name})
				if err == nil {
					versions[name] = v.ID
				}
				return err
			})
		}
		w.mustCall(func(s *Server) error {
			_, err := s.ActivatePolicy(w.ctx, "p", versions[baseline])
			return err
		})
		config := coretest.AllPreempt()
		config.Policy = "p"
		w.mustCall(func(s *Server) error {
			_, err := s.SetConfig(w.ctx, config, nil)
			return err
		})
		for _, job := range story.low {
			w.registerJob(job)
		}
		w.waitIdle()
		w.mustCall(func(s *Server) error {
			_, err := s.StartTrial(audit.WithOrigin(w.ctx, model.AuditOrigin{Actor: "alice"}), "p", versions[candidate], policymgr.TrialRequest{
				For: time.Duration(blocks) * block, Block: block, Seed: story.seed, StopIf: stopIf, PromoteIf: "better",
			})
			return err
		})
		for arrival := 0; w.snap().PolicyTrial("p").Running(); arrival++ {
			w.registerJob(coretest.Job("high").Priority(80).Ask(300, 300, 0))
			w.waitIdle()
			w.mustCall(func(s *Server) error {
				_, err := s.StopJob(w.ctx, model.JobKey{Namespace: "default", ID: "high"}, endpoint.StopOptions{})
				return err
			})
			w.waitIdle()
			if story.disturb != nil {
				story.disturb(w, arrival)
			}
			time.Sleep(cmp.Or(story.pause, 7*time.Second))
		}
		snap := w.snap()
		got, roles = snap.PolicyTrial("p"), *snap.PolicyState("p")
		if roles.Active != versions[baseline] && roles.Active != versions[candidate] {
			t.Errorf("%+v", roles)
		}
		events = w.eventTypes("Policy")
		if r := snap.AuditRecords(); len(r) > 0 {
			begun, ended := slices.IndexFunc(r, func(r *model.AuditRecord) bool { return r.Action == "policy.trial" }), r[len(r)-1]
			if begun < 0 || r[begun].Actor != "alice" || ended.Actor != model.TrialActor || ended.Action != "policy.rollback" && ended.Action != "policy.activate" {
				t.Errorf("the audit records end with %+v", ended)
			}
		} else {
			t.Error("there are no audit records")
		}
		for _, id := range versions {
			if sums := snap.PolicyVersion(id).Shadow; sums.Compared == 0 || sums.Active.Victims == 0 || sums.Shadow.Victims == 0 {
				t.Errorf("the shadow run of %s has the sums %+v", id, sums)
			}
		}
	})
	return got, roles, events
}

// checkBlocks checks that the blocks of a trial are those of its seed, and are measured.
func checkBlocks(t *testing.T, got *model.PolicyTrial) {
	t.Helper()
	victims, arrived := int64(0), int64(0)
	for i, b := range got.Blocks {
		if b.Candidate != got.Plan.CandidateDecides(i) {
			t.Errorf("block %d: the candidate decides: %t", i, b.Candidate)
		}
		victims += b.Sums.Victims
		arrived += b.Sums.Arrived
	}
	if blocks := int64(len(got.Blocks)); victims < blocks || arrived < 300*blocks {
		t.Errorf("%d victims in %d blocks, %d millicores arrived", victims, blocks, arrived)
	}
}

// A version that loses more work is stopped, although leaders stop in between. The blocks,
// the verdict and its actor are those of a trial on one server.
func TestPolicies_TrialStopsWorseVersionAcrossLeaders(t *testing.T) {
	skipStatisticsUnderRace(t)
	down, killed := -1, 0
	disturb := func(w *harness, arrival int) {
		switch {
		case arrival%15 == 7 && down < 0:
			down = slices.Index(w.members, w.leader())
			w.members[down].halt()
			killed++
			w.leader()
		case arrival%15 == 10 && down >= 0:
			w.members[down].start()
			down = -1
		}
	}
	got, roles, events := runTrial(t, trialStory{servers: 3, seed: 11, baseline: "careful", candidate: "wasteful", disturb: disturb})
	checkBlocks(t, got)
	end := got.End
	if end.Ended != model.TrialStopped || end.Actor != model.TrialActor || !strings.HasPrefix(end.Reason, "worse after") || roles.Active != got.Baseline || roles.LastTrial != end {
		t.Errorf("%+v, %+v", end, roles)
	}
	if killed < 2 || got.Actor != "alice" {
		t.Errorf("%d leaders were stopped, in a trial of %q", killed, got.Actor)
	}
	if !slices.Contains(events, "PolicyRolledBack p") {
		t.Errorf("events %v", events)
	}
}

func TestPolicies_TrialPromotesBetterVersion(t *testing.T) {
	got, roles, _ := runTrial(t, trialStory{seed: 11, baseline: "wasteful", candidate: "careful"})
	checkBlocks(t, got)
	if got.End.Ended != model.TrialPromoted || roles.Active != got.Candidate || roles.Previous != got.Baseline || roles.Shadow != "" || len(got.Blocks) > 30 {
		t.Errorf("%+v, %+v after %d blocks", got.End, roles, len(got.Blocks))
	}
}

// Two versions that decide alike get no verdict, and the baseline remains. The trial consists of
// complete blocks, although the entries that start them are committed late.
func TestPolicies_TrialOfEqualVersionsExpires(t *testing.T) {
	late := func(w *harness, _ int) {
		w.leader().faults.failWith(func(e *replication.Entry) (bool, error) {
			if _, ok := e.Command.(*replication.ChangePolicy); ok {
				e.Time += int64(5 * time.Millisecond)
			}
			return false, nil
		})
	}
	got, roles, _ := runTrial(t, trialStory{seed: 11, baseline: "careful", candidate: "careful too", blocks: 20, disturb: late})
	checkBlocks(t, got)
	if last := &got.Blocks[len(got.Blocks)-1]; last.Start+got.Plan.Block <= got.Until {
		t.Errorf("the blocks are not late: the last one ends at %d, the trial at %d", last.Start+got.Plan.Block, got.Until)
	}
	if got.End.Ended != model.TrialExpired || roles.Active != got.Baseline || len(got.Blocks) != 20 {
		t.Errorf("%+v, %+v after %d blocks", got.End, roles, len(got.Blocks))
	}
}

// Versions that decide alike rarely get a verdict, although the conditions are evaluated
// after every pair of blocks of a random load.
func TestPolicies_TrialsOfEqualVersionsRarelyDecide(t *testing.T) {
	skipStatisticsUnderRace(t)
	runs, wrong := soak.Count(4, 1000), 0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 1))
		got, _, _ := runTrial(t, trialStory{seed: seed + 1, baseline: "careful", candidate: "careful too", disturb: randomPause(r, 10*time.Second)})
		if got.End.Ended != model.TrialExpired {
			wrong++
		}
	}
	if wrong > max(1, runs*5/100) {
		t.Errorf("%d of %d trials of equal versions decided", wrong, runs)
	}
}

// skipStatisticsUnderRace skips trials that differ from others by their verdict alone, and
// those whose leaders stop as in TestCluster_HoldsUnderFaults.
func skipStatisticsUnderRace(t *testing.T) {
	t.Helper()
	if soak.Race && !soak.Full() {
		t.Skip("its goroutines are those of shorter trials, which run under the race detector")
	}
}

// randomPause returns a function that waits for random times with a mean.
func randomPause(r *rand.Rand, mean time.Duration) func(*harness, int) {
	return func(*harness, int) { time.Sleep(time.Duration(r.ExpFloat64() * float64(mean))) }
}

// stopWithin is the number of blocks within which a trial stops a version that evicts 5 % more
// victims, with a power of 90 %. A block has about ten decisions that evict.
const stopWithin = 120

// regression returns a trial of a version that evicts two small victims instead of a large
// one in 5 % of its decisions, under a random load.
func regression(seed uint64, blocks int, stopIf string) trialStory {
	return trialStory{
		seed: seed + 1, baseline: "large", candidate: "regressed", blocks: blocks, stopIf: stopIf, measure: "victims",
		low: []*coretest.JobBuilder{
			coretest.Job("large").Priority(20).Count(2).Ask(300, 300, 0), coretest.Job("small").Priority(20).Count(2).Ask(150, 150, 0),
		},
		pause: time.Second, disturb: randomPause(rand.New(rand.NewPCG(seed, 2)), 4*time.Second),
	}
}

// A version that evicts 5 % more victims is stopped within a stated number of blocks.
func TestPolicies_TrialStopsRegressionOfFivePercent(t *testing.T) {
	skipStatisticsUnderRace(t)
	runs, stopped, blocks := soak.Count(1, 200), 0, 0
	for seed := range uint64(runs) {
		got, roles, _ := runTrial(t, regression(seed, stopWithin, "worse"))
		blocks += len(got.Blocks)
		if got.End.Ended == model.TrialPromoted || roles.Active != got.Baseline {
			t.Errorf("seed %d: the worse version is active: %+v", seed, got.End)
		}
		if got.End.Ended == model.TrialStopped {
			stopped++
		}
	}
	t.Logf("%d of %d trials were stopped within %d blocks, after %d on average", stopped, runs, stopWithin, blocks/runs)
	if soak.Full() && stopped < runs*90/100 { // one trial in ten may not be stopped
		t.Errorf("%d of %d trials were stopped within %d blocks", stopped, runs, stopWithin)
	}
}

// Without the control, even twice as many blocks decide in fewer trials than with it.
func TestPolicies_ControlHalvesBlocksOfTrial(t *testing.T) {
	if !soak.Full() {
		t.Skip("few trials show no difference")
	}
	runs, with, without := soak.Count(1, 60), 0, 0
	for seed := range uint64(runs) {
		got, _, _ := runTrial(t, regression(seed, 2*stopWithin, "never"))
		plain := *got
		plain.Blocks = slices.Clone(got.Blocks)
		for i := range plain.Blocks {
			plain.Blocks[i].Sums.Arrived = 0
		}
		if excludesZero(got, stopWithin) {
			with++
		}
		if excludesZero(&plain, 2*stopWithin) {
			without++
		}
	}
	t.Logf("with the control, %d of %d trials decide within %d blocks; without it, %d within %d", with, runs, stopWithin, without, 2*stopWithin)
	if with < runs*90/100 || without >= with {
		t.Errorf("with the control, %d of %d trials decide within %d blocks; without it, %d within %d", with, runs, stopWithin, without, 2*stopWithin)
	}
}

// excludesZero reports whether any prefix of the blocks of a trial finds the candidate worse.
func excludesZero(t *model.PolicyTrial, blocks int) bool {
	for n := 2; n <= min(blocks, len(t.Blocks)); n += 2 {
		prefix := *t
		prefix.Blocks = t.Blocks[:n]
		if trial.Summarize(&prefix).Measure("victims").Difference.Low > 0 {
			return true
		}
	}
	return false
}
