package metrics

import (
	"math"
	"slices"
	"strconv"
)

// Finish ends the run and returns its metrics. After Finish only Series may be
// called.
func (c *Collector) Finish(at int64) *Metrics {
	c.advance(at)
	c.evicted.countBrokenGangs()
	m := c.counters
	e := &c.evicted
	m.Preemptions, m.Victims, m.UselessVictims = e.preemptions, e.victims, e.useless
	m.RepeatVictims, m.PingPong = e.repeat, e.pingPong
	m.VictimsPerPreemption = perPreemption(e.perPreemption)
	if e.judged == e.preemptions {
		m.RegretVictims = &e.regret
	}
	if c.cfg.Budgets {
		m.BudgetViolations = &e.budget
	}
	if c.cfg.Moves {
		m.Moved = &c.moved
	}
	if c.gangs() {
		m.GangsBroken = &e.broken
	}
	slices.Sort(e.depths)
	m.CascadeDepth = Depth{P99: at1000(e.depths, 990), Max: at1000(e.depths, 1000)}

	m.Unplaced = c.demand.waiting
	c.closeWaits(&m)
	m.InversionSeconds = Round(c.demand.inversion.seconds())
	c.capacity(&m)
	c.finishWork(&m)
	m.Jain = c.jain()
	m.DecisionLatency = latency(c.latency)
	return &m
}

// gangs reports whether any job is a gang.
func (c *Collector) gangs() bool {
	return slices.ContainsFunc(c.work.order, func(g *groupRow) bool { return g.job.gang })
}

// closeWaits counts open waits as if they ended now. If they were excluded, a policy
// that never places its jobs would get good figures.
func (c *Collector) closeWaits(m *Metrics) {
	for _, g := range c.work.order {
		for _, w := range g.waits {
			for range w.n {
				g.level.delays = append(g.level.delays, c.now-w.since)
				if c.cfg.Until <= 0 && c.now-w.since <= c.cfg.StarveAfter {
					m.Starved++ // no event is left: the wait never ends
				}
			}
		}
	}
	for _, b := range c.demand.bands() {
		delays := b.delays()
		if len(delays) == 0 {
			continue
		}
		if m.QueueDelay == nil {
			m.QueueDelay = map[string]Quantiles{}
		}
		m.QueueDelay[b.name] = Quantiles{
			Mean: Round(mean(delays) / 1e9),
			P50:  seconds(at1000(delays, 500)), P90: seconds(at1000(delays, 900)),
			P99: seconds(at1000(delays, 990)), Max: seconds(at1000(delays, 1000)),
		}
		first, _ := slices.BinarySearch(delays, c.cfg.StarveAfter+1)
		m.Starved += len(delays) - first
	}
}

// mean returns the arithmetic mean of at least one value. Callers sort the values, so that
// equal values have equal sums.
func mean(sorted []int64) float64 {
	sum := 0.0
	for _, v := range sorted {
		sum += float64(v)
	}
	return sum / float64(len(sorted))
}

// delays returns all waits of a band, ascending.
func (b *band) delays() []int64 {
	var all []int64
	for _, l := range b.levels {
		all = append(all, l.delays...)
	}
	slices.Sort(all)
	return all
}

// capacity sets utilisation and fragmentation.
func (c *Collector) capacity(m *Metrics) {
	for i, name := range c.cols.names {
		sum := c.nodes.over(i)
		if !sum.cap.zero() {
			set(&m.Utilisation, name, sum.held.ratio(sum.cap))
		}
		if !sum.free.zero() && c.nodes.hasTypicalRequest() {
			set(&m.Fragmentation, name, sum.stranded.ratio(sum.free))
		}
	}
}

func set(m *map[string]float64, name string, value float64) {
	if *m == nil {
		*m = map[string]float64{}
	}
	(*m)[name] = Round(value)
}

// finishWork sets wasted work and goodput. Resources are added as shares of the
// cluster; otherwise a node's memory in MiB would outweigh its millicores.
func (c *Collector) finishWork(m *Metrics) {
	w := &c.work
	ran := slices.Clone(w.ran)
	for _, r := range w.byID { // integer sums: the order does not matter
		for i, use := range r.use {
			ran[i].add(use, r.age(c.now))
		}
	}
	var useful, wasted float64
	for i, name := range c.cols.names {
		lost := w.wasted[i].seconds()
		_, unit := WorkUnit(name)
		set(&m.WastedWork, name, lost)
		set(&m.WastedHours, name, lost/unit)
		capacity := c.nodes.over(i).cap
		if capacity.zero() {
			continue
		}
		good := ran[i]
		good.minus(w.wasted[i])
		good.minus(w.spoiled[i])
		useful += good.ratio(capacity)
		wasted += w.wasted[i].ratio(capacity)
	}
	if useful+wasted > 0 {
		goodput := Round(useful / (useful + wasted))
		m.Goodput = &goodput
	}
}

// jain returns Jain's index of the namespaces' shares, or nil if there are fewer than
// two.
func (c *Collector) jain() *float64 {
	names := make([]*namespaceRow, 0, len(c.work.names))
	for _, n := range c.work.names {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b *namespaceRow) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	if len(names) < 2 {
		return nil
	}
	var sum, squares float64
	exponent := weightExponent(names, c.cfg.Weight)
	for _, n := range names {
		x := c.share(n, exponent)
		sum += x
		squares += float64(x * x)
	}
	if squares == 0 {
		return nil
	}
	index := Round(float64(sum*sum) / float64(float64(len(names))*squares))
	return &index
}

// weightExponent returns the binary exponent of the least weight. Jain's index does not
// depend on the scale of the shares, and without one the shares of very small weights are
// infinite.
func weightExponent(names []*namespaceRow, weight func(namespace string) float64) int {
	least := math.Inf(1)
	for _, n := range names {
		least = min(least, weightOf(n, weight))
	}
	_, exponent := math.Frexp(least)
	return exponent
}

func weightOf(n *namespaceRow, weight func(namespace string) float64) float64 {
	if weight == nil {
		return 1
	}
	return weight(n.name)
}

// share returns the dominant share of a namespace divided by its weight, which is divided
// by 2^exponent before.
func (c *Collector) share(n *namespaceRow, exponent int) float64 {
	n.advance(c.now)
	weight := math.Ldexp(weightOf(n, c.cfg.Weight), -exponent)
	var dominant float64
	for i := range n.held {
		sum, held := c.nodes.over(i), n.integral[i]
		if c.now == 0 { // like nodeTable.over: the current values
			held.add(n.held[i], 1)
		}
		dominant = max(dominant, held.ratio(sum.cap))
	}
	return dominant / weight
}

func perPreemption(victims []int) *PerPreemption {
	if len(victims) == 0 {
		return nil
	}
	slices.Sort(victims)
	sum := 0
	for _, v := range victims {
		sum += v
	}
	return &PerPreemption{
		Mean: Round(float64(sum) / float64(len(victims))), P95: at1000(victims, 950), Max: at1000(victims, 1000),
	}
}

func latency(ns []int64) *Latency {
	if len(ns) == 0 {
		return nil
	}
	slices.Sort(ns)
	micros := func(permille int) float64 { return Round(float64(at1000(ns, permille)) / 1e3) }
	return &Latency{P50: micros(500), P99: micros(990), P999: micros(999)}
}

// at1000 returns a quantile by nearest rank: the smallest of the sorted values that
// at least permille of them do not exceed. The result is a value that occurred, or 0
// if there is none.
func at1000[T int | int64](sorted []T, permille int) T {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*permille+999)/1000-1)]
}

func seconds(ns int64) float64 { return Round(float64(ns) / 1e9) }

// Round returns x with six decimals, which removes noise from the last digits. It
// converts through decimal text, which is exact on every machine.
func Round(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', 6, 64), 64)
	return y
}
