package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Pressure configures evictions by the node itself. Memory cannot be overcommitted
// indefinitely: if no allocation is evicted, the kernel kills an arbitrary process.
type Pressure struct {
	// Interval is how often memory is checked. Default: 2 s.
	Interval time.Duration
	// MinAvailable is the minimum of free bytes. 0: 5 % of the total.
	MinAvailable int64
	// MaxStall is the maximum share of time, in percent over ten seconds, in which
	// all processes stall for memory (the kernel's PSI, full avg10). 0: it is not
	// checked.
	MaxStall float64
	// Read returns the machine's memory; nil: from /proc.
	Read func() (Memory, error)
}

// Memory is the state of a machine's memory.
type Memory struct {
	Total, Available int64   // bytes
	Stall            float64 // percent of the last ten seconds; 0 if the kernel does not report it
}

// low describes a shortage of memory; it returns "" if there is none.
func (p *Pressure) low(m Memory) string {
	least := p.MinAvailable
	least = cmp.Or(least, m.Total/20)
	switch {
	case m.Available < least:
		return fmt.Sprintf("the node has %d MiB of free memory, less than %d MiB", m.Available>>20, least>>20)
	case p.MaxStall > 0 && m.Stall > p.MaxStall:
		return fmt.Sprintf("processes on the node stalled for memory %.1f %% of the time, more than %.1f %%", m.Stall, p.MaxStall)
	}
	return ""
}

// watchMemory evicts one allocation at a time while memory is short, and checks again
// once it has ended: a kill in progress frees memory soon, and another eviction
// meanwhile would be unnecessary.
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
				continue // memory is read later, when the kernel has reclaimed it
			default:
				continue
			}
		}
		m, err := p.Read()
		if err != nil {
			a.log.ErrorContext(ctx, "failed to watch memory pressure", "err", err)
			return
		}
		if why := p.low(m); why != "" {
			evicting = a.evictOne(ctx, why)
		}
	}
}

// usage is the memory that an allocation uses and has requested, in bytes.
type usage struct {
	r            *runner
	used, asked  int64
	priority     int
	overByAmount int64
}

// evictOne evicts the next allocation and returns it, or nil if there is none.
func (a *Agent) evictOne(ctx context.Context, why string) *runner {
	list := a.usages()
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, evictionOrder)
	u := list[0]
	a.mu.Lock()
	defer a.mu.Unlock()
	text := fmt.Sprintf("evicted by its node: %s; it used %d MiB and requested %d MiB, at priority %d", why, u.used>>20, u.asked>>20, u.priority)
	a.log.WarnContext(ctx, "evicting an allocation because memory is short", "alloc_id", u.r.alloc.ID, "job_id", u.r.alloc.JobID, "used_bytes", u.used, "requested_bytes", u.asked, "reason", why)
	u.r.stop(text, EvictedByPressure)
	return u.r
}

// evictionOrder is that of Kubernetes: allocations that use more than they requested
// come first, then the lowest priority, then the highest use beyond the request.
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

// usages returns the running allocations that may be evicted.
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
