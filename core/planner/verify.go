package planner

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// Verification is what becomes of a plan on one state.
type Verification struct {
	// Plan is the plan that was asked about, or a copy without the stops and
	// evictions of what has ended meanwhile and without the placements that do not
	// hold of groups of which a part does.
	Plan      *model.Plan
	Committed []int             // positions of groups that hold, or of which a part does, ascending
	Rejected  []model.Rejection // in the order of Plan.Groups
	Causes    []RejectionCause  // of Rejected, by position in it
	Nodes     int               // nodes looked at
}

// Empty is whether committing the plan would change nothing.
func (v *Verification) Empty() bool {
	for _, i := range v.Committed {
		g := &v.Plan.Groups[i]
		if len(g.Placements)+len(g.Updates)+len(g.Stops)+len(g.Evictions)+len(g.Claims) > 0 || g.HasBindingChanges() {
			return false
		}
	}
	return true
}

// retries bounds how often rejected groups get another chance because a group
// behind them made room.
const retries = 3

// Scratch is the memory of Verify, for use again. It may serve one call at a
// time.
type Scratch struct {
	rooms
	rules    PlacementVerifier
	check    PlacementCheck // of rules; nil: not begun, or nothing to check
	asked    bool           // rules were asked for check
	job      *model.Job     // as it is now; nil when it is gone
	priority int32          // nobody at or above it may be a victim

	// written has the ids that the plan places or updates.
	written map[string]struct{}
	updates bool

	// held has, for every instance that the plan places, the live allocation
	// that is that instance; nil where there is none.
	held     map[instance]*model.Allocation
	taken    []holding // what groups changed in held, for undo
	existing []*model.Allocation

	// charges counts what is taken from strict budgets, by position in the state's
	// list; charged is by whom, for undo.
	charges []int
	charged []int32
	whole   bool // the group at hand evicts of a job that goes whole

	// omitted lists what is left out because it has ended, by group.
	omitted []omission
	// parted lists the placements that are left out of groups of which a part holds,
	// ascending.
	parted []omission

	accepted []int
	refused  []refusal // by group
	choice   []int16
	by       int // where in CommitGroup.Place the last beneficiary was found
}

// instance is what may run once: an index of a group, or for jobs that run on
// every node the node's position.
type instance struct{ group, which int32 }

// holding is what an instance was held by before.
type holding struct {
	instance
	before *model.Allocation
}

// omission is one stop (from 0) or eviction (from -1 down) of a group, or in parted a
// placement.
type omission struct{ group, which int }

func omittedStop(group, i int) omission     { return omission{group, i} }
func omittedEviction(group, i int) omission { return omission{group, -1 - i} }

// refusal is why a group does not hold.
type refusal struct {
	cause     RejectionCause
	nodeID    string
	reason    string // "": it holds
	malformed bool   // reason is a fault of the plan instead
}

func malformed(format string, args ...any) refusal {
	return refusal{malformed: true, reason: fmt.Sprintf(format, args...)}
}

// Verify checks a plan against a state. It changes nothing, and the same
// arguments give the same verdict. A nil rules checks no rules; now is when
// claims are looked at. The plan's fault is a *PlanError.
//
// Whoever checks one group after the other, in their order, rejects plans that
// hold: a scheduler moves an instance off a node that an earlier group of the
// same plan fills. So the groups are first checked together, everything that
// ends before anything that begins: a plan made on this very state passes
// here. Only when something does not hold are they checked one by one, with
// another round for those that were refused before room was made; and what still
// does not hold, but may be divided, placement by placement.
func Verify(snap *state.Snapshot, plan *model.Plan, now int64, rules PlacementVerifier, s *Scratch) (Verification, error) {
	if err := Validate(plan); err != nil {
		return Verification{}, err
	}
	defer s.release()
	if err := s.begin(snap, plan, now, rules); err != nil {
		return Verification{}, err
	}
	group, r := s.together()
	if r.reason != "" && !r.malformed {
		s.forget()
		if group, r = s.oneByOne(); !r.malformed {
			group, r = s.divide()
		}
	}
	if r.malformed {
		return Verification{}, &PlanError{EvalID: plan.EvalID, Group: group, Fault: r.reason}
	}
	return s.verdict(), nil
}

func (s *Scratch) begin(snap *state.Snapshot, plan *model.Plan, now int64, rules PlacementVerifier) error {
	s.reset(snap, plan, now)
	s.rules, s.asked, s.job, s.priority = rules, false, snap.Job(plan.Job), plan.Priority
	if s.job != nil {
		s.priority = min(s.priority, s.job.Priority)
	}
	s.omitted, s.parted, s.accepted, s.by = s.omitted[:0], s.parted[:0], s.accepted[:0], 0
	s.refused = append(s.refused[:0], make([]refusal, len(plan.Groups))...)
	if err := s.listWritten(); err != nil {
		return err
	}
	s.listHeld()
	return nil
}

// forget takes back what together did.
func (s *Scratch) forget() {
	s.undo(0)
	s.untake(0)
	s.uncharge(0)
	s.omitted, s.accepted = s.omitted[:0], s.accepted[:0]
}

// release drops what the call referred to, so that an idle applier keeps no
// old snapshot alive.
func (s *Scratch) release() {
	s.rooms.release()
	s.uncharge(0)
	s.rules, s.check, s.job = nil, nil, nil
	// Emptying a map costs what it once held, so a large one is not kept.
	if len(s.written)+len(s.held) > 1<<14 {
		s.written, s.held = nil, nil
	}
	clear(s.written)
	clear(s.held)
	clear(s.existing)
	clear(s.taken)
	clear(s.refused)
	s.existing, s.taken = s.existing[:0], s.taken[:0]
}

// listWritten notes every id that the plan writes. No id may be written twice.
func (s *Scratch) listWritten() error {
	if s.written == nil {
		s.written, s.held = map[string]struct{}{}, map[instance]*model.Allocation{}
	}
	s.updates = false
	total := 0
	for i := range s.plan.Groups {
		g := &s.plan.Groups[i]
		s.updates = s.updates || len(g.Updates) > 0
		for _, list := range [2][]*model.Allocation{g.Placements, g.Updates} {
			for _, a := range list {
				s.written[a.ID] = struct{}{}
				if total++; len(s.written) < total {
					fault := fmt.Sprintf("allocation %q is listed twice", a.ID)
					return &PlanError{EvalID: s.plan.EvalID, Group: i, Fault: fault}
				}
			}
		}
	}
	return nil
}

// listHeld finds out which of the instances to be placed are running. Jobs may
// have many more instances than a plan places, so those are what is looked up.
func (s *Scratch) listHeld() {
	if s.job == nil {
		return
	}
	few := uint64(0) // what is wanted, by the last bits of which: most others are known by it
	for i := range s.plan.Groups {
		for _, a := range s.plan.Groups[i].Placements {
			if key, ok := s.instance(a); ok {
				s.held[key] = nil
				few |= 1 << (key.which & 63)
			}
		}
	}
	if len(s.held) == 0 {
		return
	}
	s.existing = s.snap.AppendJobAllocs(s.existing[:0], s.plan.Job)
	for _, a := range s.existing {
		key, ok := s.instance(a)
		if !ok || few>>(key.which&63)&1 == 0 {
			continue
		}
		if _, wanted := s.held[key]; wanted && a.Live() && !s.isAway(a) {
			s.held[key] = a
		}
	}
}

// isAway is whether another may run in an allocation's place because its node is silent.
func (s *Scratch) isAway(a *model.Allocation) bool {
	g := s.job.Group(a.Group.Name)
	if g == nil || !g.ReplacesOnDisconnect() {
		return false
	}
	node := s.snap.Node(a.NodeID)
	if node == nil {
		return false
	}
	_, kept := g.LostAt(node)
	return kept
}

// instance is what an allocation is an instance of, in the job as it is now.
func (s *Scratch) instance(a *model.Allocation) (instance, bool) {
	g := a.Group
	if a.Job != s.job {
		if g = s.job.Group(g.Name); g == nil {
			return instance{}, false
		}
	}
	if !s.job.Type.PerNode() {
		return instance{int32(g.Position), int32(a.Index)}, true
	}
	pos, ok := s.snap.Position(a.NodeID)
	return instance{int32(g.Position), pos}, ok
}

// together checks all groups as one. It stops at the first that fails.
func (s *Scratch) together() (int, refusal) {
	for i := range s.plan.Groups {
		s.accepted = append(s.accepted, i)
		if r := s.ends(i); r.reason != "" {
			return i, r
		}
	}
	for i := range s.plan.Groups {
		if r := s.begins(i); r.reason != "" {
			return i, r
		}
	}
	return 0, s.ruled(s.accepted)
}

// oneByOne checks each group behind those accepted before it; first of all
// those that only end something, as they always hold.
func (s *Scratch) oneByOne() (int, refusal) {
	for round := -1; round <= retries; round++ {
		again := round < 0
		for i := range s.plan.Groups {
			if endsOnly(&s.plan.Groups[i]) != (round < 0) || round > 0 && s.refused[i].reason == "" {
				continue
			}
			s.refused[i] = s.one(i)
			if s.refused[i].malformed {
				return i, s.refused[i]
			}
			// An eviction makes room for its own group; a stop may do so for
			// others.
			again = again || s.refused[i].reason == "" && len(s.plan.Groups[i].Stops) > 0
		}
		if !again || len(s.accepted) == len(s.plan.Groups) {
			break
		}
	}
	return 0, refusal{}
}

func endsOnly(g *model.CommitGroup) bool {
	return len(g.Placements)+len(g.Updates)+len(g.Evictions)+len(g.Claims) == 0 && !g.HasBindingChanges()
}

// one checks a group; one that does not hold leaves no trace.
func (s *Scratch) one(i int) refusal {
	journal, taken, omitted, charged := len(s.journal), len(s.taken), len(s.omitted), len(s.charged)
	s.accepted = append(s.accepted, i)
	r := s.ends(i)
	if r.reason == "" {
		r = s.begins(i)
	}
	if r.reason == "" {
		r = s.ruled(s.accepted[len(s.accepted)-1:])
	}
	if r.reason != "" {
		s.undo(journal)
		s.untake(taken)
		s.uncharge(charged)
		s.omitted, s.accepted = s.omitted[:omitted], s.accepted[:len(s.accepted)-1]
	}
	return r
}

// verdict is what the caller may keep.
func (s *Scratch) verdict() Verification {
	slices.Sort(s.accepted)
	v := Verification{Plan: s.effective(), Committed: slices.Clone(s.accepted), Nodes: len(s.open)}
	for i := range s.refused {
		if r := &s.refused[i]; r.reason != "" {
			v.Rejected = append(v.Rejected, model.Rejection{Group: i, Places: s.leftOut(i), NodeID: r.nodeID, Reason: r.reason})
			v.Causes = append(v.Causes, r.cause)
		}
	}
	return v
}
