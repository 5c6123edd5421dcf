package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Pressure says when a node evicts by itself: memory is what a machine cannot
// stretch, and if nobody acts the kernel kills whom it likes.
type Pressure struct {
	// Interval is how often memory is looked at. Default: 2 s.
	Interval time.Duration
	// MinAvailable is how many bytes must be left. 0: a twentieth of all there is.
	MinAvailable int64
	// MaxStall is the share of time, in percent over ten seconds, for which
	// everything may stand still for want of memory (the kernel's PSI, full
	// avg10). 0: it is not looked at.
	MaxStall float64
	// Read reads the machine's memory; nil: /proc.
	Read func() (Memory, error)
}

// Memory is the state of a machine's memory.
type Memory struct {
	Total, Available int64   // bytes
	Stall            float64 // percent of the last ten seconds; 0 where the kernel does not say
}

// low says what is wrong with memory; empty: nothing.
func (p *Pressure) low(m Memory) string {
	least := p.MinAvailable
	if least == 0 {
		least = m.Total / 20
	}
	switch {
	case m.Available < least:
		return fmt.Sprintf("the node has %d MiB of memory left, less than %d MiB", m.Available>>20, least>>20)
	case p.MaxStall > 0 && m.Stall > p.MaxStall:
		return fmt.Sprintf("work on the node stood still for want of memory %.1f %% of the time, more than %.1f %%", m.Stall, p.MaxStall)
	}
	return ""
}

// watchMemory evicts one allocation at a time while memory is short, and looks
// again once it is gone: a kill that is under way frees memory soon, and a second
// one would have been for nothing.
func (a *Agent) watchMemory(ctx context.Context) {
	p := *a.c.Pressure
	if p.Interval <= 0 {
		p.Interval = 2 * time.Second
	}
	if p.Read == nil {
		p.Read = ReadMemory
	}
	var evicting *runner
	for {
		sleep(ctx, p.Interval)
		if ctx.Err() != nil {
			return
		}
		if evicting != nil {
			select {
			case <-evicting.gone:
				evicting = nil
				continue // memory is read a little later, when it has been given back
			default:
				continue
			}
		}
		m, err := p.Read()
		if err != nil {
			a.log.ErrorContext(ctx, "memory pressure is not watched", "err", err)
			return
		}
		if why := p.low(m); why != "" {
			evicting = a.evictOne(ctx, why)
		}
	}
}

// usage is what an allocation uses and asked for, in bytes.
type usage struct {
	r            *runner
	used, asked  int64
	priority     int
	overByAmount int64
}

// evictOne evicts the allocation whose turn it is; nil: there is none.
func (a *Agent) evictOne(ctx context.Context, why string) *runner {
	list := a.usages()
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, evictionOrder)
	u := list[0]
	a.mu.Lock()
	defer a.mu.Unlock()
	text := fmt.Sprintf("evicted by its node: %s; it used %d MiB and asked for %d MiB, at priority %d", why, u.used>>20, u.asked>>20, u.priority)
	a.log.WarnContext(ctx, "memory is short; evicting", "alloc_id", u.r.alloc.ID, "job_id", u.r.alloc.JobID, "used_bytes", u.used, "asked_bytes", u.asked, "reason", why)
	u.r.stop(text, EvictedByPressure)
	return u.r
}

// evictionOrder is Kubernetes': whoever uses more than it asked for goes before
// whoever does not, then the lowest priority, then whoever uses most beyond what it
// asked for.
func evictionOrder(x, y usage) int {
	over := func(u usage) int {
		if u.overByAmount > 0 {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(over(x), over(y)),
		cmp.Compare(x.priority, y.priority),
		cmp.Compare(y.overByAmount, x.overByAmount),
		cmp.Compare(x.r.alloc.ID, y.r.alloc.ID),
	)
}

// usages is what runs and may be evicted.
func (a *Agent) usages() []usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []usage
	for _, r := range a.runners {
		if r.phase != phaseRunning || !r.stopping.IsZero() || r.status != StatusRunning {
			continue
		}
		u := usage{r: r, priority: r.alloc.Priority}
		for i := range r.alloc.Tasks {
			t := &r.alloc.Tasks[i]
			if p := r.processes[t.Name]; p != nil {
				u.used += p.Memory()
			}
			u.asked += t.MemoryMB << 20
		}
		u.overByAmount = u.used - u.asked
		list = append(list, u)
	}
	return list
}
