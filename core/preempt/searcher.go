package preempt

import (
	"cmp"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/protect"
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

	amounts   bool    // the ask is for neither ports nor devices
	separates bool    // some rows may exclude the preemptor
	ascending bool    // candidates above the first sufficient priority do not matter
	quick     bool    // queueQuickly does
	around    bool    // ascending only where no budget is overrun
	strict    bool    // there are strict budgets
	foretells bool    // foretell may know what an option costs
	wide      bool    // evictions on other nodes may make a node possible
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
	wholes    []int32      // picks whose job goes whole, on a guarded node
	kept      []int32      // victims of the options of a call, as positions among their candidates
	arena     []*state.Row // of answer.victims
	needs     []float64    // of answer.need
	answers   answers

	counted []groupCount // scratch of leastFor, as are below and starts
	below   []int64
	starts  []int64
	line    line // scratch of foretell
	units   map[model.JobKey]*unit
	mates   []*state.Row    // scratch of goesWith and charge
	charged protect.Charges // of the option or node at hand
	tight   []bool          // by eligible: it overruns a budget
	reached []bool          // by eligible
	costs   protect.Charges // scratch of costsOf
	blocked []int32         // picks of the option at hand that strict budgets kept
	retries []place         // of options to ask about again
	// unsettled is whether something beside the nodes' room stood in the way.
	unsettled bool

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
	in, err := v.AcquireObserved(tell)
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
	s.recheck, s.fault, s.unsettled = sdk.Recheck{}, nil, false
	s.arena, s.needs, s.answers.used = s.arena[:0], s.needs[:0], 0
	s.ceiling = Ceiling(f.req.Group.Job.Priority, f.req.Policy, f.req.Delta)
	s.delta = nil
	if v := f.req.Policy; v.Hooks().Has(policy.HookDelta) {
		a, err := ask(v, f.req.OnCall)
		if err != nil {
			return err
		}
		s.delta = &a
	}
	chooser := f.req.Policy
	if chooser.Hooks()&(policy.HookScoreVictims|policy.HookSelectVictims) == 0 {
		chooser = f.req.Default
	}
	if s.victims, err = ask(chooser, f.req.OnCall); err != nil {
		return err
	}
	s.columns = chooser.Info().Columns
	s.separates = f.req.Rules != nil && f.req.Rules.HasSeparation()
	s.wide = s.separates && f.req.RemoteEvictions
	s.amounts = len(f.req.Group.Ask.Ports)+len(f.req.Group.Ask.Devices) == 0
	s.ascending = chooser.Info().Ascending
	s.around = s.ascending && s.columns.Has(sdk.BudgetColumns) && len(f.snap.Budgets()) > 0
	s.strict = f.snap.StrictBudgetCount() > 0
	s.quick = s.amounts && s.ascending && s.delta == nil && f.req.TieOrder.ByID() &&
		(f.req.Rules == nil || len(f.req.Group.Colocate) == 0)
	s.foretells = s.canForetell()
	s.renew()
	return nil
}

// reads is whether a hook that the searcher asks reads a column.
func (s *searcher) reads(column sdk.Columns) bool {
	return s.columns.Has(column) || s.delta != nil && s.delta.version.Info().Columns.Has(column)
}

// renew empties the calls in the making; shared tables are made afresh.
func (s *searcher) renew() {
	clear(s.units)
	s.batch.begin(s.f, s.columns)
	s.twins.begin(s.columns)
	if s.delta != nil {
		s.lower.begin(s.f, s.delta.version.Info().Columns)
	}
}

// renewShared brings the shared tables up to date.
func (s *searcher) renewShared() {
	s.batch.cand.Shared = s.f.sharedFor(s.columns, &s.batch.strings)
	if s.delta != nil {
		s.lower.cand.Shared = s.f.sharedFor(s.delta.version.Info().Columns, &s.lower.strings)
	}
}

// end gives the instances back.
func (s *searcher) end() {
	clear(s.units)
	s.victims.release()
	if s.delta != nil {
		s.delta.release()
		s.delta = nil
	}
	s.idle = true
}

// searchBlocks evaluates every step-th block of the nodes asked about, beginning with first.
func (s *searcher) searchBlocks(first, step int) {
	todo := s.f.asking
	for block := first; block*blockNodes < len(todo) && s.fault == nil; block += step {
		s.block = block
		for _, k := range todo[block*blockNodes : min((block+1)*blockNodes, len(todo))] {
			s.queue(int(k))
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
	f.why[k], f.reach[k] = NoCandidates, math.MinInt32
	if int64(chunk.MinPriority(i)) > s.ceiling && !s.wide || chunk.Eligible()>>i&1 == 0 {
		return
	}
	if s.isHopeless(pos) {
		f.why[k] = Insufficient
		return
	}
	p := place{k: int32(k), chunk: chunk, i: int32(i), rows: chunk.Rows(i)}
	if s.strict {
		f.stoppedBy[k] = 0
	}
	if f.req.Rules != nil && !f.req.Rules.Allows(int32(pos)) && !s.lookElsewhere(&p, int32(pos)) {
		f.why[k] = s.missed(p.k, NoCandidates)
		return
	}
	if chunk.HasClaims()>>i&1 == 1 {
		p.claimed = s.claimed(int32(pos))
	}
	p.guarded = s.guarded(&p) || p.limits != nil
	p.apart = s.separates && f.req.Rules.HasSeparatedRows(int32(pos))
	p.plain = s.amounts && !p.apart && p.limits == nil
	if s.quick && p.plain && !p.guarded && (!s.around || !s.mayOverrun(p.rows)) {
		s.queueQuickly(&p)
		return
	}
	if s.short(&p) {
		f.why[k] = Insufficient
		return
	}
	s.candidates(&p, int32(pos))
	if len(s.eligible) == 0 {
		f.why[k] = s.missed(p.k, NoCandidates)
		return
	}
	if s.delta != nil {
		if p.guarded {
			s.addCompany(&p)
		}
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
func (s *searcher) claimed(pos int32) *model.FreeCapacity {
	g := s.f.req.Group
	room := s.f.snap.FreeCapacityFor(pos, g.Job.Key(), g.Job.Priority, s.f.req.Now, new(model.Vector))
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
		if job.NonPreemptible || f.ownBelow && (job == own || job.ID == own.ID && job.Namespace == own.Namespace) {
			continue
		}
		level = row.Priority
		rows = append(rows, row)
		missing -= f.watch.frees(s.missing, &row.Group.Ask.Vec)
	}
	s.batch.rows = rows[:from]
	if len(rows) > from {
		f.why[p.k] = Insufficient
	}
	if missing > 0 || len(rows) == from {
		return
	}
	p.option, f.reach[p.k] = f.first[p.k], level
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
		if f.req.Rules != nil && f.req.Rules.IsAffinityTarget(pos, row) {
			continue
		}
		if p.guarded && !s.mayGo(p, row) {
			continue
		}
		s.eligible = append(s.eligible, row)
	}
	s.mustLeave = zeroed(s.mustLeave, len(s.eligible))
	if p.apart || len(f.req.Group.Ask.Ports) > 0 {
		for at, row := range s.eligible {
			s.mustLeave[at] = s.mustGo(pos, row)
		}
	}
	if p.apart {
		for at := range p.rows {
			if f.req.Rules.Separated(pos, &p.rows[at]) {
				p.separated++
			}
		}
	}
	p.separated += int32(len(p.elsewhere()))
	if !f.req.TieOrder.ByID() {
		s.shuffle()
	}
	for _, row := range p.elsewhere() {
		s.insertEligible(row, sdk.MustLeaveSeparation)
	}
}

// mustGo is why a row must leave whatever it frees.
func (s *searcher) mustGo(pos int32, row *state.Row) (why uint8) {
	if s.wide && row.Alloc.NodePos != pos {
		return sdk.MustLeaveSeparation
	}
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
		return s.f.req.TieOrder.Compare(a.Alloc.ID, b.Alloc.ID)
	})
	for i, at := range s.eligible {
		s.mustLeave[i] = marks[at]
	}
}

// layOut appends the node's options, one for each way of serving its devices,
// to the next call, each with the candidates that matter to it.
func (s *searcher) layOut(p place) {
	f := s.f
	f.why[p.k] = s.missed(p.k, Insufficient)
	if p.guarded && s.strict && s.delta != nil {
		p.limits = &limits{elsewhere: p.elsewhere(), all: slices.Clone(s.eligible)}
	}
	defer func() {
		if len(s.batch.rows) >= batchRows {
			s.flush()
		}
	}()
	s.lacks = f.watch.appendLacks(s.lacks[:0], &p, &f.req.Group.Ask)
	s.narrow(&p)
	first, last := f.first[p.k], f.first[p.k+1]
	if p.plain {
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
	s.f.reach[p.k] = max(s.f.reach[p.k], s.eligible[n-1].Priority)
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
	return s.level(p, n)
}

// level extends a prefix of the candidates to the end of its priority; without
// an ascending policy to all of them.
func (s *searcher) level(p *place, n int) int {
	if !s.ascending || p.showsAll {
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
		for to := s.level(p, n+1); n < to; n++ {
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

// flush asks the policy about the options laid out and takes its answer over. Where
// it chose somebody whom a strict budget keeps, it is asked again without them.
func (s *searcher) flush() {
	s.ask()
	for len(s.retries) > 0 && s.fault == nil {
		s.layOutAgain()
		s.ask()
	}
	s.retries = nil
	s.forget()
}

func (s *searcher) ask() {
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
	if s.fail(v.RecordCall("PriorityDelta", s.delta.instance.PriorityDelta(c, s.gaps, &s.recheck))) {
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
		if p.guarded {
			s.keepUnits(&p, b.rows[c.FirstRow[o]:c.FirstRow[o+1]])
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
	if err := v.RecordCall("SelectVictims", s.victims.instance.SelectVictims(c, &s.selection)); err != nil {
		return err
	}
	s.noteRecheck(s.selection.Recheck)
	if s.selection.Len() != c.Len() {
		return v.RecordBadAnswer("SelectVictims", "answered %d options of %d", s.selection.Len(), c.Len())
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
	if err := v.RecordCall("ScoreVictims", s.victims.instance.ScoreVictims(c, &s.scores)); err != nil {
		return err
	}
	s.noteRecheck(s.scores.Recheck)
	for row, score := range s.scores.Score {
		if math.IsNaN(score) || math.IsInf(score, -1) {
			return v.RecordBadAnswer("ScoreVictims", "row %d has the score %v; only finite scores and +Inf (never) mean something", row, score)
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
