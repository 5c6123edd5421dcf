package scheduler

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
)

// Screen tells whether a blocked evaluation may be able to use a node, so that
// room for one small task does not wake ten thousand evaluations that need
// more. It errs on the side of waking: what it turns away could not have been
// placed, by room or by eviction.
//
// It hands room out: what it lets through is taken to use what it asks for, and
// those asked after it are judged on the rest. Owed names the nodes where that
// turned somebody away, who must be asked again once the first have had their
// turn, for they may have gone elsewhere.
type Screen struct {
	Snap     *state.Snapshot
	Policies *policy.Set
	Now      int64

	// Needs keeps what evaluations need from one screen to the next; nil: nothing
	// is kept.
	Needs Needs

	Owed map[string]struct{}
	left map[string]*model.Vector // what is handed out no more, by node
	node place                    // the node asked about last
	soon []level                  // of that node; see levels
	pool pool                     // the member cluster asked about last

	judges rules // see rules
}

// place is a node as a screen sees it.
type place struct {
	id          string
	pos         int32
	schedulable bool
	free        model.Vector // claims aside
	claimed     bool         // there are claims
	rows        []state.Row
	node        *model.Node
}

// MayPlace is whether some group that the evaluation could not place may go to
// the node, or replicas of its binding to the cluster.
func (s *Screen) MayPlace(eval *model.Evaluation, nodeID string) bool {
	id, cluster := model.ParseClusterLocation(nodeID)
	switch binding := eval.Type == model.JobBinding; {
	case cluster != binding:
		return false
	case cluster:
		return s.mayBind(eval, id)
	}
	if s.node.id != nodeID && !s.look(nodeID) {
		return false
	}
	n := s.Needs.of(eval, s)
	if n == nil {
		return true
	}
	if n.exceeds(s.upTo(n.ceiling)) {
		return n.elsewhere
	}
	passes := n.elsewhere
	for i, g := range n.groups {
		o := offer{Screen: s, group: g, alone: n.alone[i], need: n, eval: eval}
		passes = o.accepted() || passes
	}
	return passes
}

// Excludes is whether a node has too little for any of the groups that the
// evaluation could not place, with everybody gone who may be evicted for them.
func (s *Screen) Excludes(eval *model.Evaluation, nodeID string, noted *any) bool {
	if s.node.id != nodeID && !s.look(nodeID) {
		return true
	}
	n, known := (*noted).(*need)
	if !known || n.of != s.rules() {
		if n = s.Needs.of(eval, s); n == nil {
			return false
		}
		*noted = n
	}
	return !n.elsewhere && n.exceeds(s.upTo(n.ceiling))
}

// upTo is what the node has with everything gone up to a priority.
func (s *Screen) upTo(ceiling int64) *model.Vector {
	levels := s.levels()
	at := len(levels) - 1
	for at > 0 && int64(levels[at].priority) > ceiling {
		at--
	}
	return &levels[at].room
}

// ofPriority is the node's rows of one priority.
func (s *Screen) ofPriority(priority int32) []state.Row {
	levels := s.levels()
	for at := len(levels) - 1; at > 0; at-- {
		if levels[at].priority != priority {
			continue
		}
		to := len(s.node.rows)
		if at+1 < len(levels) {
			to = levels[at+1].first
		}
		return s.node.rows[levels[at].first:to]
	}
	return nil
}

// levels is the node by the priorities on it, ascending, beginning with what is free.
// They are worked out once for all who ask about the node.
func (s *Screen) levels() []level {
	if len(s.soon) == 0 {
		s.soon = append(s.soon, level{room: s.node.free})
		for i := range s.node.rows {
			row := &s.node.rows[i]
			last := &s.soon[len(s.soon)-1]
			if len(s.soon) == 1 || row.Priority != last.priority {
				s.soon = append(s.soon, level{row.Priority, i, last.room})
				last = &s.soon[len(s.soon)-1]
			}
			last.room.Add(&row.Group.Ask.Vec)
		}
	}
	return s.soon
}

// look reads a node.
func (s *Screen) look(nodeID string) bool {
	pos, ok := s.Snap.Position(nodeID)
	if !ok {
		return false
	}
	chunk, i := s.Snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	p := place{
		id: nodeID, pos: pos, schedulable: chunk.Eligible()>>i&1 == 1, rows: chunk.Rows(i),
		node: chunk.Node(i), claimed: chunk.HasClaims()>>i&1 == 1,
	}
	for d := range s.Snap.Dims().Len() {
		p.free[d] = chunk.Free(d)[i]
	}
	s.node, s.soon = p, s.soon[:0]
	return true
}

// level is what is on a node of one priority; the first of a list is nothing.
type level struct {
	priority int32
	first    int          // of its rows
	room     model.Vector // once they are gone, and all below
}

// offer is a node offered to a group.
type offer struct {
	*Screen
	group *model.Group
	alone bool // need.alone of the group
	need  *need
	eval  *model.Evaluation
}

// accepted is whether the group may use the node.
func (o *offer) accepted() bool {
	g, p := o.group, &o.node
	if !p.schedulable {
		return false
	}
	if o.replaces() {
		return true
	}
	// Claims only take room away, so what is there without them tells at a glance.
	if !o.fits(&p.free) || o.apart() || !g.IsFeasible(p.node) {
		return false
	}
	whole := p.free
	if p.claimed {
		if whole = o.room(p.pos); !o.fits(&whole) {
			return false
		}
	}
	left := o.left[p.id]
	if left == nil {
		left = &model.Vector{}
		*left = whole
	} else if !o.fits(left) {
		o.owe()
		return false
	}
	o.handOut(left)
	return true
}

// replaces is whether an allocation of an earlier version of the job is on the
// node: it is to be replaced, and leaves its room to the new one.
func (o *offer) replaces() bool {
	return o.group.Job.Version > 0 && slices.ContainsFunc(o.node.rows, func(row state.Row) bool {
		return row.Group.Job.Version != o.group.Job.Version && row.Group.Job.Key() == o.group.Job.Key()
	})
}

// apart is whether an instance of the group's own job on the node keeps it away:
// that is never evicted for it, and when it ends the node is offered again.
// Others may keep it away as well, but seldom; then it is woken in vain.
func (o *offer) apart() bool {
	g, node := o.group, o.node.node
	if len(g.Labels)+len(g.Separate) == 0 {
		return false
	}
	rows := o.ofPriority(g.Job.Priority)
	for i := range rows {
		other := rows[i].Group
		switch {
		case other.Job != g.Job && o.need.first:
		case o.alone && other.Job == g.Job && other.SeparationClass() == g.SeparationClass():
			return true
		case other.Job.Key() == g.Job.Key() && (excludes(g, other, node) || excludes(other, g, node)):
			return true
		}
	}
	return false
}

// owe notes that the node's room has been handed out to others.
func (o *offer) owe() {
	if o.Owed == nil {
		o.Owed = map[string]struct{}{}
	}
	o.Owed[o.node.id] = struct{}{}
}

// room is what the node offers to the group before anything is handed out.
func (o *offer) room(pos int32) (whole model.Vector) {
	var claims model.Vector
	room := o.Snap.FreeCapacityFor(pos, o.group.Job.Key(), o.group.Job.Priority, o.Now, &claims)
	for d := range o.Snap.Dims().Len() {
		whole[d] = room.Free[d*room.Stride]
	}
	return whole
}

// fits is whether one instance fits in what is free, or would with everything
// gone that may be evicted for it.
func (o *offer) fits(free *model.Vector) bool {
	ask := &o.group.Ask
	for _, d := range ask.Dims {
		left := free[d]
		for at := 0; at < len(o.node.rows) && left < ask.Vec[d] && int64(o.node.rows[at].Priority) <= o.need.ceiling; at++ {
			left += o.node.rows[at].Group.Ask.Vec[d]
		}
		if left < ask.Vec[d] {
			return false
		}
	}
	return true
}

// handOut takes what the group will use off what is left: one instance, and as
// many more as it wants and fit. A gang is not counted: it may need other nodes
// as well, and then takes nothing here.
func (o *offer) handOut(left *model.Vector) {
	if o.group.Job.AllAtOnce {
		return
	}
	if o.left == nil {
		o.left = map[string]*model.Vector{}
	}
	o.left[o.node.id] = left
	instances := max(1, o.eval.Queued[o.group.Name])
	if o.group.Job.Type.PerNode() {
		instances = 1
	}
	for ; instances > 0 && o.fits(left); instances-- {
		left.Sub(&o.group.Ask.Vec)
	}
}
