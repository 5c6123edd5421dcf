package preempt

import (
	"cmp"
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

	columns sdk.Columns // of the hook that picks victims
	delta   *asked      // nil: the base gap holds for every candidate
	victims asked
	ceiling int64 // highest priority that may be evicted

	plain     bool    // amounts alone decide whether the ask fits
	separates bool    // some rows may exclude the preemptor
	ascending bool    // candidates above the first sufficient priority do not matter
	quick     bool    // queueQuickly does
	lacks     []int64 // of the place at hand
	missing   []int64 // scratch of queueQuickly

	lower     batch // candidates of lower priority, for PriorityDelta
	batch     batch
	twins     twins
	eligible  []*state.Row
	mustLeave []uint8 // by eligible
	gaps      []int32
	selection sdk.Selection
	scores    sdk.VictimScores
	order     []int32
	seen      []uint32 // by row of the call: stamp of the option that picked it
	stamp     uint32
	trial     trial
	picks     []int32      // of the option at hand that remain
	kept      []int32      // victims of the options of a call, as positions among their candidates
	arena     []*state.Row // of option.victims
	needs     []float64    // of option.need

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

func ask(v *policy.Version, tell func(policy.Call)) (asked, error) {
	in, err := v.AcquireFor(tell)
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
	s.recheck, s.fault = sdk.Recheck{}, nil
	s.arena, s.needs = s.arena[:0], s.needs[:0]
	s.ceiling = Ceiling(f.req.Group.Job.Priority, f.req.Policy, f.req.Delta)
	s.delta = nil
	if v := f.req.Policy; v.Hooks().Has(policy.HookDelta) {
		a, err := ask(v, f.req.Tell)
		if err != nil {
			return err
		}
		s.delta = &a
	}
	chooser := f.req.Policy
	if chooser.Hooks()&(policy.HookScoreVictims|policy.HookSelectVictims) == 0 {
		chooser = f.req.Default
	}
	if s.victims, err = ask(chooser, f.req.Tell); err != nil {
		return err
	}
	s.columns = chooser.Info().Columns
	s.separates = f.req.Rules != nil && f.req.Rules.Separates()
	s.plain = len(f.req.Group.Ask.Ports) == 0 && len(f.req.Group.Ask.Devices) == 0 && !s.separates
	s.ascending = chooser.Info().Ascending
	s.quick = s.plain && s.ascending && s.delta == nil && f.req.Ties.ByID() &&
		(f.req.Rules == nil || len(f.req.Group.Colocate) == 0)
	s.renew()
	return nil
}

// reads is whether a hook that the searcher asks reads a column.
func (s *searcher) reads(column sdk.Columns) bool {
	return s.columns.Has(column) || s.delta != nil && s.delta.version.Info().Columns.Has(column)
}

// renew empties the calls in the making; shared tables are made afresh.
func (s *searcher) renew() {
	s.batch.begin(s.f, s.columns)
	s.twins.begin(s.columns)
	if s.delta != nil {
		s.lower.begin(s.f, s.delta.version.Info().Columns)
	}
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
		s.finish()
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
	p := place{k: int32(k), chunk: chunk, i: int32(i), rows: chunk.Rows(i)}
	if len(chunk.Claims(i)) > 0 {
		p.claimed = s.claimed(int32(pos))
	}
	if s.quick {
		s.queueQuickly(&p)
		return
	}
	if s.short(&p) {
		f.why[k] = NotEnough
		return
	}
	s.candidates(&p, int32(pos))
	if len(s.eligible) == 0 {
		return
	}
	if s.delta != nil {
		s.lower.rows = append(s.lower.rows, s.eligible...)
		s.lower.addOption(f, &p, f.watch.appendLacks(s.lacks[:0], &p, &f.req.Group.Ask), s.mustLeave)
		if len(s.lower.rows) >= batchRows {
			s.askDelta()
		}
		return
	}
	s.layOut(p)
}

// claimed is what a node with claims offers.
func (s *searcher) claimed(pos int32) *model.Room {
	g := s.f.req.Group
	room := s.f.snap.RoomFor(pos, g.Job.Key(), g.Job.Priority, s.f.req.Now, new(model.Vector))
	return &room
}

// queueQuickly is queue for what most searches are: a policy that goes by
// ascending priority, and an ask that amounts alone decide. It reads no further
// than the first priority with which the ask fits.
func (s *searcher) queueQuickly(p *place) {
	f := s.f
	ask := &f.req.Group.Ask
	own := f.req.Group.Job
	s.lacks = f.watch.appendLacks(s.lacks[:0], p, ask)
	s.missing = append(s.missing[:0], s.lacks...)
	missing := 0
	for _, lack := range s.lacks[:f.watch.asked] {
		if lack > 0 {
			missing++
		}
	}
	from, rows := len(s.batch.rows), s.batch.rows
	level := int32(0)
	for x := range p.rows {
		row := &p.rows[x]
		if int64(row.Priority) > s.ceiling || missing == 0 && row.Priority != level {
			break
		}
		job := row.Group.Job
		if job.NonPreemptible || job == own || job.ID == own.ID && job.Namespace == own.Namespace {
			continue
		}
		level = row.Priority
		rows = append(rows, row)
		missing -= f.watch.frees(s.missing, &row.Group.Ask.Vec)
	}
	s.batch.rows = rows[:from]
	if len(rows) > from {
		f.why[p.k] = NotEnough
	}
	if missing > 0 || len(rows) == from {
		return
	}
	p.option = f.first[p.k]
	if s.twins.usable && s.follow(p, rows[from:]) {
		return
	}
	s.batch.rows = rows
	s.batch.addOption(f, p, s.lacks, nil)
	if len(rows) >= batchRows {
		s.flush()
	}
}

// short is whether amounts are missing even with every row gone up to the
// highest priority that may be evicted: a quick look that spares most nodes of a
// full cluster the collecting of candidates.
func (s *searcher) short(p *place) bool {
	ask := &s.f.req.Group.Ask
	for _, d := range ask.Dims {
		free := p.free(int(d))
		for at := 0; at < len(p.rows) && free < ask.Vec[d] && int64(p.rows[at].Priority) <= s.ceiling; at++ {
			free += p.rows[at].Group.Ask.Vec[d]
		}
		if free < ask.Vec[d] {
			return true
		}
	}
	return false
}

// candidates collects the rows that may be evicted at all: of low enough
// priority, preemptible, and of another job.
func (s *searcher) candidates(p *place, pos int32) {
	f := s.f
	own := f.req.Group.Job
	s.eligible, s.mustLeave = s.eligible[:0], s.mustLeave[:0]
	for at := range p.rows {
		row := &p.rows[at]
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
		s.eligible, s.mustLeave = append(s.eligible, row), append(s.mustLeave, s.mustGo(pos, row))
	}
	if s.separates {
		for at := range p.rows {
			if f.req.Rules.Separated(pos, &p.rows[at]) {
				p.separated++
			}
		}
	}
	if !f.req.Ties.ByID() {
		s.shuffle()
	}
}

// mustGo is why a row must leave whatever it frees.
func (s *searcher) mustGo(pos int32, row *state.Row) (why uint8) {
	if s.separates && s.f.req.Rules.Separated(pos, row) {
		why |= sdk.MustLeaveSeparation
	}
	for _, port := range s.f.req.Group.Ask.Ports {
		if slices.Contains(row.Group.Ask.Ports, port) {
			why |= sdk.MustLeavePort
		}
	}
	return why
}

// shuffle reorders candidates of equal priority by the seed.
func (s *searcher) shuffle() {
	marks := make(map[*state.Row]uint8, len(s.eligible))
	for i, at := range s.eligible {
		marks[at] = s.mustLeave[i]
	}
	slices.SortFunc(s.eligible, func(a, b *state.Row) int {
		if a.Priority != b.Priority {
			return cmp.Compare(a.Priority, b.Priority)
		}
		return s.f.req.Ties.Compare(a.Alloc.ID, b.Alloc.ID)
	})
	for i, at := range s.eligible {
		s.mustLeave[i] = marks[at]
	}
}

// layOut appends the node's options, one for each way of serving its devices,
// to the next call, each with the candidates that matter to it.
func (s *searcher) layOut(p place) {
	f := s.f
	f.why[p.k] = NotEnough
	defer func() {
		if len(s.batch.rows) >= batchRows {
			s.flush()
		}
	}()
	s.lacks = f.watch.appendLacks(s.lacks[:0], &p, &f.req.Group.Ask)
	first, last := f.first[p.k], f.first[p.k+1]
	if s.plain {
		if n := s.reachPlain(&p); n > 0 {
			p.option = first
			s.addOption(&p, n)
		}
		return
	}
	choices := p.node().DeviceChoices(&f.req.Group.Ask)
	for i := first; i < last; i++ {
		p.option, p.choice = i, choices[f.options[i].device]
		if n := s.reach(&p); n > 0 {
			s.addOption(&p, n)
		}
	}
}

// addOption adds an option with the first n candidates to the next call.
func (s *searcher) addOption(p *place, n int) {
	s.batch.rows = append(s.batch.rows, s.eligible[:n]...)
	s.batch.addOption(s.f, p, s.lacks, s.mustLeave[:n])
}

// reachPlain is how many candidates matter when amounts alone decide: all of
// them, or for a policy that goes by ascending priority those up to the first
// priority with which the ask fits. 0 means that it does not fit even with every
// candidate gone.
func (s *searcher) reachPlain(p *place) int {
	ask := &s.f.req.Group.Ask
	n := 0
	for _, d := range ask.Dims {
		free := p.free(int(d))
		at := 0
		for ; at < len(s.eligible) && free < ask.Vec[d]; at++ {
			free += s.eligible[at].Group.Ask.Vec[d]
		}
		if free < ask.Vec[d] {
			return 0
		}
		n = max(n, at)
	}
	return s.level(n)
}

// level extends a prefix of the candidates to the end of its priority; without
// an ascending policy to all of them.
func (s *searcher) level(n int) int {
	if !s.ascending {
		return len(s.eligible)
	}
	for n < len(s.eligible) && n > 0 && s.eligible[n].Priority == s.eligible[n-1].Priority {
		n++
	}
	return n
}

// reach is reachPlain for asks with ports, devices or separation: it tries the
// option, priority by priority.
func (s *searcher) reach(p *place) int {
	s.trial.reset(p, &s.f.req.Group.Ask, &s.f.watch, s.lacks)
	for n := 0; n < len(s.eligible); {
		for to := s.level(n + 1); n < to; n++ {
			s.trial.remove(s.eligible[n], s.mustLeave[n])
		}
		if s.trial.fits() {
			return n
		}
	}
	return 0
}

// finish asks about whatever has been gathered.
func (s *searcher) finish() {
	s.askDelta()
	s.flush()
}

// flush asks the policy about the options laid out and takes its answer over.
func (s *searcher) flush() {
	defer s.forget()
	if len(s.batch.places) == 0 || s.fault != nil {
		return
	}
	s.batch.complete(s.f)
	switch info := s.victims.version.Info(); {
	case s.victims.version.Hooks().Has(policy.HookSelectVictims):
		s.fail(s.selectVictims())
	case info.Adaptive:
		s.fail(s.scoreAdaptively())
	default:
		s.fail(s.scoreVictims())
	}
	if s.fault == nil {
		s.finishTwins()
	}
}

// forget empties the call.
func (s *searcher) forget() {
	s.batch.reset()
	s.twins.reset()
	s.kept = s.kept[:0]
}

// fail remembers the first fault and the block it happened in.
func (s *searcher) fail(err error) bool {
	if err != nil && s.fault == nil {
		s.fault, s.faultBlock = err, s.block
	}
	return err != nil
}

// askDelta asks which of the lower candidates gathered may be evicted, and lays
// the options out with those alone.
func (s *searcher) askDelta() {
	b := &s.lower
	defer b.reset()
	if s.delta == nil || len(b.places) == 0 || s.fault != nil {
		return
	}
	b.complete(s.f)
	c := &b.cand
	s.gaps = slices.Grow(s.gaps[:0], len(b.rows))[:len(b.rows)]
	for i := range s.gaps {
		s.gaps[i] = c.Preemptor.Delta
	}
	v := s.delta.version
	if s.fail(v.Count("PriorityDelta", s.delta.instance.PriorityDelta(c, s.gaps, &s.recheck))) {
		return
	}
	for o := range b.places {
		p := b.places[o]
		s.eligible, s.mustLeave = s.eligible[:0], s.mustLeave[:0]
		for row := c.FirstRow[o]; row < c.FirstRow[o+1]; row++ {
			if int64(c.Preemptor.Priority)-int64(c.Rows.Priority[row]) >= int64(s.gaps[row]) {
				s.eligible = append(s.eligible, b.rows[row])
				s.mustLeave = append(s.mustLeave, s.mustGo(s.f.req.Nodes[p.k], b.rows[row]))
			}
		}
		if len(s.eligible) > 0 {
			s.layOut(p)
		}
	}
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
		return cmp.Compare(x, y)
	}
	return cmp.Compare(s.scores.Score[a], s.scores.Score[b])
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
	f := s.f
	p := &s.batch.places[o]
	opt := &f.options[p.option]
	s.trial.reset(p, &f.req.Group.Ask, &f.watch, s.batch.lacksOf(o, &f.watch))
	before := s.fitOf()
	n, fits, err := s.evict(o, picks, whole)
	if err != nil {
		return err
	}
	if f.why[p.k] != Possible {
		f.why[p.k] = Declined
	}
	if !fits || n == 0 {
		return nil
	}
	f.why[p.k] = Possible
	s.picks = append(s.picks[:0], picks[:n]...)
	if !whole && n > 1 {
		s.picks = s.spare(o, s.picks)
	}
	s.fill(opt, s.picks)
	s.keep(o, s.picks)
	if s.f.columns.Has(sdk.VictimColumns) {
		from := len(s.needs)
		for d := range s.batch.cand.Need {
			s.needs = append(s.needs, s.batch.cand.Need[d][o]+s.batch.cand.Freed[d][o])
		}
		opt.need = s.needs[from:]
	}
	opt.fitBefore, opt.fitAfter = before, s.fitOf()
	return nil
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
		s.trial.remove(b.rows[row], s.marks(o, row))
		n++
		fits = s.trial.fits()
	}
	return n, fits, nil
}

// marks is why a row of the call must leave; it matters for separation alone.
func (s *searcher) marks(o int, row int32) uint8 {
	if !s.separates {
		return 0
	}
	return s.separationMark(o, row)
}

func (s *searcher) separationMark(o int, row int32) uint8 {
	if s.f.req.Rules.Separated(s.f.options[s.batch.places[o].option].pos, s.batch.rows[row]) {
		return sdk.MustLeaveSeparation
	}
	return 0
}

// spare puts victims back in reverse order of picking where the group still
// fits, and returns those that remain. The last pick is always needed: without
// it the group did not fit.
func (s *searcher) spare(o int, picks []int32) []int32 {
	const spared = -1
	for i := len(picks) - 2; i >= 0; i-- {
		row, marks := s.batch.rows[picks[i]], s.marks(o, picks[i])
		s.trial.restore(row, marks)
		if s.trial.fits() {
			picks[i] = spared
		} else {
			s.trial.remove(row, marks)
		}
	}
	return slices.DeleteFunc(picks, func(row int32) bool { return row == spared })
}

// fill records an option's victims.
func (s *searcher) fill(opt *option, picks []int32) {
	from := len(s.arena)
	opt.alive, opt.highest, opt.sum, opt.lost = true, math.MinInt32, 0, 0
	for _, at := range picks {
		row := s.batch.rows[at]
		s.arena = append(s.arena, row)
		opt.highest = max(opt.highest, row.Priority)
		opt.sum += int64(row.Priority)
	}
	opt.victims = s.arena[from:len(s.arena):len(s.arena)]
	if s.f.columns.Has(sdk.LostWorkColumn) {
		opt.lost = s.lostWork(opt.victims)
	}
}

func (s *searcher) lostWork(victims []*state.Row) (lost int64) {
	for _, row := range victims {
		lost += row.Group.LostWork(row.Alloc.Age(s.f.req.Now))
	}
	return lost
}

// keep remembers the victims of option o for its twins.
func (s *searcher) keep(o int, picks []int32) {
	if len(s.twins.list) == 0 {
		return
	}
	p := &s.batch.places[o]
	p.kept, p.keeps = int32(len(s.kept)), int32(len(picks))
	for _, row := range picks {
		s.kept = append(s.kept, row-s.batch.cand.FirstRow[o])
	}
}

// fitOf ranks the node with the group placed in the trial's room.
func (s *searcher) fitOf() float64 {
	if !s.f.columns.Has(sdk.FitColumns) {
		return 0
	}
	return s.trial.rank(s.f.req.Algorithm)
}
