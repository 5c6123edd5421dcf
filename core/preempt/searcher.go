package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// searcher evaluates nodes for one worker: it gathers options into calls, asks
// the policy, and checks what it answers.
type searcher struct {
	f    *Finder
	idle bool

	columns sdk.Columns // of every hook that sees candidates
	delta   *asked      // nil: the base gap holds for every candidate
	victims asked
	ceiling int64 // highest priority that may be evicted

	batch     batch
	eligible  []int32 // positions in the node's rows
	mustLeave []uint8 // by eligible
	gaps      []int32
	selection sdk.Selection
	scores    sdk.VictimScores
	order     []int32
	seen      []uint32 // by row of the call: stamp of the option that picked it
	stamp     uint32
	trial     trial
	arena     []int32

	recheck    sdk.Recheck
	block      int
	fault      error
	faultBlock int
}

// asked is an instance of a version, held for a search.
type asked struct {
	version  *policy.Version
	instance policy.Instance
}

func ask(v *policy.Version) (asked, error) {
	in, err := v.Acquire()
	return asked{v, in}, err
}

func (a *asked) release() {
	if a.instance != nil {
		a.version.Release(a.instance)
		a.instance = nil
	}
}

// begin gets instances for a search of f.
func (s *searcher) begin(f *Finder) (err error) {
	s.f, s.idle = f, false
	s.recheck, s.fault, s.arena = sdk.Recheck{}, nil, s.arena[:0]
	s.ceiling = Ceiling(f.req.Group.Job.Priority, f.req.Policy, f.req.Delta)
	s.columns = 0
	s.delta = nil
	if v := f.req.Policy; v.Hooks().Has(policy.HookDelta) {
		a, err := ask(v)
		if err != nil {
			return err
		}
		s.delta, s.columns = &a, v.Info().Columns
	}
	chooser := f.req.Policy
	if chooser.Hooks()&(policy.HookScoreVictims|policy.HookSelectVictims) == 0 {
		chooser = f.req.Default
	}
	if s.victims, err = ask(chooser); err != nil {
		return err
	}
	s.columns |= chooser.Info().Columns
	s.batch.begin(f, s.columns)
	return nil
}

// end gives the instances back.
func (s *searcher) end() {
	s.victims.release()
	if s.delta != nil {
		s.delta.release()
		s.delta = nil
	}
	s.idle = true
}

// searchBlocks evaluates every step-th block of nodes, beginning with first.
func (s *searcher) searchBlocks(first, step int) {
	nodes := len(s.f.req.Nodes)
	for block := first; block*blockNodes < nodes && s.fault == nil; block += step {
		s.block = block
		for k := block * blockNodes; k < min((block+1)*blockNodes, nodes); k++ {
			s.queue(k)
		}
		s.flush()
	}
}

// queue evaluates the node at k afresh: it lays its options out for the next
// call, or finds that none can fit.
func (s *searcher) queue(k int) {
	f := s.f
	for i := f.first[k]; i < f.first[k+1]; i++ {
		f.options[i].alive = false
	}
	pos := int(f.req.Nodes[k])
	chunk, i := f.snap.Chunk(pos/state.ChunkSize), pos%state.ChunkSize
	f.why[k] = NoCandidates
	if int64(chunk.MinPriority(i)) > s.ceiling || chunk.Schedulable()>>i&1 == 0 {
		return
	}
	if f.req.Rules != nil && !f.req.Rules.Allows(int32(pos)) {
		return
	}
	rows := chunk.Rows(i)
	if s.candidates(rows, int32(pos)); len(s.eligible) == 0 {
		return
	}
	f.why[k] = NotEnough
	var claims model.Vector
	room := f.snap.RoomFor(int32(pos), f.req.Group.Job.Key(), f.req.Group.Job.Priority, f.req.Now, &claims)
	if !s.enough(room, rows) {
		return
	}
	s.layOut(k, chunk.Node(i), room, rows)
	if len(s.batch.rows) >= batchRows {
		s.flush()
	}
}

// candidates collects the rows that may be evicted at all: of low enough
// priority, preemptible, and of another job.
func (s *searcher) candidates(rows []state.Row, pos int32) {
	f := s.f
	own := f.req.Group.Job
	s.eligible, s.mustLeave = s.eligible[:0], s.mustLeave[:0]
	separates := f.req.Rules != nil && f.req.Rules.Separates()
	for at := range rows {
		row := &rows[at]
		if int64(row.Priority) > s.ceiling {
			break
		}
		job := row.Group.Job
		if job.NonPreemptible || job == own || (job.ID == own.ID && job.Namespace == own.Namespace) {
			continue
		}
		if f.req.Rules != nil && f.req.Rules.Anchors(row) {
			continue
		}
		var must uint8
		if separates && f.req.Rules.Separated(pos, row) {
			must |= sdk.MustLeaveSeparation
		}
		if holdsPort(row, f.req.Group.Ask.Ports) {
			must |= sdk.MustLeavePort
		}
		s.eligible, s.mustLeave = append(s.eligible, int32(at)), append(s.mustLeave, must)
	}
	if !f.req.Ties.ByID() {
		s.shuffle(rows)
	}
}

func holdsPort(row *state.Row, ports []uint16) bool {
	for _, p := range ports {
		if slices.Contains(row.Group.Ask.Ports, p) {
			return true
		}
	}
	return false
}

// shuffle reorders candidates of equal priority by the seed.
func (s *searcher) shuffle(rows []state.Row) {
	marks := make(map[int32]uint8, len(s.eligible))
	for i, at := range s.eligible {
		marks[at] = s.mustLeave[i]
	}
	slices.SortFunc(s.eligible, func(a, b int32) int {
		if p, q := rows[a].Priority, rows[b].Priority; p != q {
			return int(int64(p) - int64(q))
		}
		return s.f.req.Ties.Compare(rows[a].Alloc.ID, rows[b].Alloc.ID)
	})
	for i, at := range s.eligible {
		s.mustLeave[i] = marks[at]
	}
}

// enough is whether the ask's amounts fit once every candidate is gone: a cheap
// test that spares a call for nodes that no victim set can help.
func (s *searcher) enough(room model.Room, rows []state.Row) bool {
	ask := &s.f.req.Group.Ask
	for _, d := range ask.Dims {
		free := room.Free[int(d)*room.Stride]
		for _, at := range s.eligible {
			if free >= ask.Vec[d] {
				break
			}
			free += rows[at].Group.Ask.Vec[d]
		}
		if free < ask.Vec[d] {
			return false
		}
	}
	return true
}

// layOut appends the node's options, one for each way of serving its devices,
// to the next call. Options that fit with every candidate gone are kept alone.
func (s *searcher) layOut(k int, node *model.Node, room model.Room, rows []state.Row) {
	f := s.f
	ask := &f.req.Group.Ask
	choices := node.DeviceChoices(ask)
	plain := len(ask.Ports) == 0 && len(ask.Devices) == 0 && !s.separates()
	for i := f.first[k]; i < f.first[k+1]; i++ {
		choice := choices[f.options[i].device]
		if !plain && !s.fitsWithoutAll(node, room, rows, choice, int32(f.req.Nodes[k])) {
			continue
		}
		for e, at := range s.eligible {
			s.batch.addRow(f, node, choice, int(at), &rows[at], s.mustLeave[e])
		}
		s.batch.addOption(f, i, k, node, room, choice)
		if s.columns.Has(sdk.MustLeaveColumn) {
			s.batch.cand.MustLeave = append(s.batch.cand.MustLeave, s.countMustLeave())
		}
	}
}

func (s *searcher) separates() bool {
	return s.f.req.Rules != nil && s.f.req.Rules.Separates()
}

func (s *searcher) countMustLeave() (n int32) {
	for _, m := range s.mustLeave {
		if m != 0 {
			n++
		}
	}
	return n
}

// fitsWithoutAll tries the option with every candidate gone, ports, devices and
// separation included.
func (s *searcher) fitsWithoutAll(node *model.Node, room model.Room, rows []state.Row, choice []int16, pos int32) bool {
	s.trial.reset(node, room, &s.f.req.Group.Ask, choice, s.f.dims.Len(), s.separated(rows, pos))
	for e, at := range s.eligible {
		s.trial.remove(&rows[at], s.mustLeave[e]&sdk.MustLeaveSeparation != 0)
	}
	return s.trial.fits()
}

// separated counts the node's rows that exclude the preemptor, candidates or not.
func (s *searcher) separated(rows []state.Row, pos int32) int {
	if !s.separates() {
		return 0
	}
	n := 0
	for at := range rows {
		if s.f.req.Rules.Separated(pos, &rows[at]) {
			n++
		}
	}
	return n
}

// flush asks the policy about the options gathered and takes its answer over.
func (s *searcher) flush() {
	defer s.batch.reset()
	if len(s.batch.options) == 0 || s.fault != nil {
		return
	}
	b := &s.batch
	b.cand.Strings = b.strings.list
	if s.delta != nil {
		if s.fail(s.askDelta()) {
			return
		}
	}
	if s.columns.Has(sdk.AnnotationColumns) {
		addAnnotations(&b.cand.Rows, b.rows)
	}
	info := s.victims.version.Info()
	switch {
	case s.victims.version.Hooks().Has(policy.HookSelectVictims):
		s.fail(s.selectVictims())
	case info.Adaptive:
		s.fail(s.scoreAdaptively())
	default:
		s.fail(s.scoreVictims())
	}
}

// fail remembers the first fault and the block it happened in.
func (s *searcher) fail(err error) bool {
	if err != nil && s.fault == nil {
		s.fault, s.faultBlock = err, s.block
	}
	return err != nil
}

// askDelta drops candidates whose gap is too small.
func (s *searcher) askDelta() error {
	b := &s.batch
	c := &b.cand
	s.gaps = slices.Grow(s.gaps[:0], len(b.rows))[:len(b.rows)]
	for i := range s.gaps {
		s.gaps[i] = c.Preemptor.Delta
	}
	v := s.delta.version
	if err := v.Count("PriorityDelta", s.delta.instance.PriorityDelta(c, s.gaps, &s.recheck)); err != nil {
		return err
	}
	b.keep(func(row int) bool {
		return int64(c.Preemptor.Priority)-int64(c.Rows.Priority[row]) >= int64(s.gaps[row])
	})
	return nil
}

// selectVictims takes the policy's own lists.
func (s *searcher) selectVictims() error {
	c, v := &s.batch.cand, s.victims.version
	s.selection.Reset()
	if err := v.Count("SelectVictims", s.victims.instance.SelectVictims(c, &s.selection)); err != nil {
		return err
	}
	s.noteRecheck(s.selection.Recheck)
	if s.selection.Len() != c.Len() {
		return v.Misanswer("SelectVictims", "answered %d options of %d", s.selection.Len(), c.Len())
	}
	for o := range c.Len() {
		if err := s.accept(o, s.selection.Rows(o), v.KeepsRedundant()); err != nil {
			return err
		}
	}
	return nil
}

// scoreVictims orders each option's candidates by the policy's tiers and scores.
func (s *searcher) scoreVictims() error {
	c := &s.batch.cand
	if err := s.askScores(); err != nil {
		return err
	}
	for o := range c.Len() {
		s.order = s.order[:0]
		for row := c.FirstRow[o]; row < c.FirstRow[o+1]; row++ {
			if !math.IsInf(s.scores.Score[row], 1) {
				s.order = append(s.order, row)
			}
		}
		slices.SortStableFunc(s.order, s.compareScored)
		if err := s.accept(o, s.order, false); err != nil {
			return err
		}
	}
	return nil
}

// askScores calls ScoreVictims and checks what it wrote.
func (s *searcher) askScores() error {
	c, v := &s.batch.cand, s.victims.version
	n := c.Rows.Len()
	s.scores.Tier = slices.Grow(s.scores.Tier[:0], n)[:n]
	s.scores.Score = slices.Grow(s.scores.Score[:0], n)[:n]
	clear(s.scores.Tier)
	clear(s.scores.Score)
	s.scores.Recheck = sdk.Recheck{}
	if err := v.Count("ScoreVictims", s.victims.instance.ScoreVictims(c, &s.scores)); err != nil {
		return err
	}
	s.noteRecheck(s.scores.Recheck)
	for row, score := range s.scores.Score {
		if math.IsNaN(score) || math.IsInf(score, -1) {
			return v.Misanswer("ScoreVictims", "row %d has the score %v; only finite scores and +Inf (never) mean something", row, score)
		}
	}
	return nil
}

func (s *searcher) compareScored(a, b int32) int {
	if x, y := s.scores.Tier[a], s.scores.Tier[b]; x != y {
		return compare(x, y)
	}
	return compare(s.scores.Score[a], s.scores.Score[b])
}

func (s *searcher) noteRecheck(r sdk.Recheck) {
	if t := r.Time(); t != 0 {
		s.recheck.At(t)
	}
}

// accept evicts the picks (rows of the call) of option o one by one until the
// group fits, then spares in reverse what is not needed. With whole the list
// stands as it is.
func (s *searcher) accept(o int, picks []int32, whole bool) error {
	f, b := s.f, &s.batch
	k := int(b.nodes[o])
	opt := &f.options[b.options[o]]
	s.resetTrial(o)
	before := s.fitOf(opt)
	n, fits, err := s.evict(o, picks, whole)
	if err != nil {
		return err
	}
	if f.why[k] != Possible {
		f.why[k] = Declined
	}
	if !fits || n == 0 {
		return nil
	}
	f.why[k] = Possible
	from := len(s.arena)
	for _, row := range picks[:n] {
		s.arena = append(s.arena, row)
	}
	kept := s.arena[from:]
	if !whole {
		kept = s.spare(kept)
		s.arena = s.arena[:from+len(kept)]
	}
	s.fill(opt, kept)
	opt.fitBefore, opt.fitAfter = before, s.fitOf(opt)
	return nil
}

func (s *searcher) resetTrial(o int) {
	f, b := s.f, &s.batch
	opt := &f.options[b.options[o]]
	pos := int(opt.pos)
	chunk, i := f.snap.Chunk(pos/state.ChunkSize), pos%state.ChunkSize
	ask := &f.req.Group.Ask
	var claims model.Vector
	room := f.snap.RoomFor(opt.pos, f.req.Group.Job.Key(), f.req.Group.Job.Priority, f.req.Now, &claims)
	var choice []int16
	if len(ask.Devices) > 0 {
		choice = chunk.Node(i).DeviceChoices(ask)[opt.device]
	}
	s.trial.reset(chunk.Node(i), room, ask, choice, f.dims.Len(), s.separated(chunk.Rows(i), opt.pos))
}

// evict removes picks until the group fits and tells how many it took.
func (s *searcher) evict(o int, picks []int32, whole bool) (n int, fits bool, err error) {
	b := &s.batch
	first, last := b.cand.FirstRow[o], b.cand.FirstRow[o+1]
	s.stamp++
	if len(s.seen) < len(b.rows) {
		s.seen = make([]uint32, 2*len(b.rows))
	}
	fits = s.trial.fits()
	for _, row := range picks {
		if fits && !whole {
			break
		}
		if row < first || row >= last {
			return 0, false, s.victims.version.Misanswer("SelectVictims",
				"option %d lists row %d, which is none of its rows %d to %d", o, row, first, last-1)
		}
		if s.seen[row] == s.stamp {
			return 0, false, s.victims.version.Misanswer("SelectVictims", "option %d lists row %d twice", o, row)
		}
		s.seen[row] = s.stamp
		s.trial.remove(&b.rows[row], s.isSeparated(row))
		n++
		fits = s.trial.fits()
	}
	return n, fits, nil
}

func (s *searcher) isSeparated(row int32) bool {
	return s.separates() && s.f.req.Rules.Separated(s.f.options[s.optionOf(row)].pos, &s.batch.rows[row])
}

// optionOf is the option of Finder.options that a row of the call belongs to.
func (s *searcher) optionOf(row int32) int32 {
	o, _ := slices.BinarySearchFunc(s.batch.cand.FirstRow, row, func(first, row int32) int {
		if first <= row {
			return -1
		}
		return 1
	})
	return s.batch.options[o-1]
}

// spare puts victims back in reverse order of picking where the group still
// fits, and returns those that remain. The last pick is always needed: without
// it the group did not fit.
func (s *searcher) spare(picks []int32) []int32 {
	const spared = -1
	for i := len(picks) - 2; i >= 0; i-- {
		row := &s.batch.rows[picks[i]]
		separated := s.isSeparated(picks[i])
		s.trial.restore(row, separated)
		if s.trial.fits() {
			picks[i] = spared
		} else {
			s.trial.remove(row, separated)
		}
	}
	return slices.DeleteFunc(picks, func(row int32) bool { return row == spared })
}

// fill records an option's victims. rows of the call become positions in the
// node's rows.
func (s *searcher) fill(opt *option, picks []int32) {
	opt.alive, opt.victims = true, picks
	opt.highest, opt.sum, opt.lost = math.MinInt32, 0, 0
	lost := s.f.columns.Has(sdk.LostWorkColumn)
	for i, row := range picks {
		r := &s.batch.rows[row]
		opt.highest = max(opt.highest, r.Priority)
		opt.sum += int64(r.Priority)
		if lost {
			opt.lost += r.Group.LostWork(r.Alloc.Age(s.f.req.Now))
		}
		picks[i] = s.batch.at[row]
	}
}

// fitOf ranks the node with the group placed in the trial's room.
func (s *searcher) fitOf(opt *option) float64 {
	if !s.f.columns.Has(sdk.FitColumns) {
		return 0
	}
	t := &s.trial
	return Fit(s.f.req.Algorithm, t.node.Avail[model.CPU], t.node.Avail[model.Memory],
		t.free[model.CPU]-t.ask.Vec[model.CPU], t.free[model.Memory]-t.ask.Vec[model.Memory])
}
