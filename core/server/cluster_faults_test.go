package server

import (
	"context"
	"time"
)

// faults runs a schedule of faults. Several may overlap; all have ended when it returns.
func (c *simCluster) faults() {
	var undo []func()
	for i := range c.size.faults {
		c.changeVoters(i)
		time.Sleep(time.Duration(200+c.rand.IntN(1500)) * time.Millisecond)
		for len(undo) > 0 && c.rand.IntN(3) > 0 {
			undo[0]()
			undo = undo[1:]
		}
		if over := c.fault(); over != nil {
			undo = append(undo, over)
		}
	}
	time.Sleep(time.Second)
	for _, over := range undo {
		over()
	}
}

// target returns a server, preferably the leader.
func (c *simCluster) target() *simServer {
	s := c.servers[c.rand.IntN(len(c.servers))]
	if c.rand.IntN(3) == 0 {
		return s
	}
	for _, o := range c.servers {
		if r := o.run.Load(); r != nil && r.node.IsLeader() {
			return o
		}
	}
	return s
}

// fault starts a fault and returns a function that ends it, or nil if it has ended.
func (c *simCluster) fault() (over func()) {
	s := c.target()
	r := s.run.Load()
	long := c.rand.IntN(2) == 0
	switch c.rand.IntN(15) {
	case 0, 1:
		over := c.partition(s, true, true)
		if long {
			time.Sleep(isolationTimeout)
			c.checkIsolatedReads(s)
		}
		return over
	case 2:
		return c.partition(s, true, false)
	case 3:
		return c.partition(s, false, true)
	case 4:
		other := c.servers[c.rand.IntN(len(c.servers))]
		return c.cut([][2]string{{s.id, other.id}, {other.id, s.id}})
	case 5:
		return c.crash(s)
	case 6:
		if !long {
			return c.crash(s)
		}
		return c.crash(c.servers...) // all servers lose power
	case 7:
		c.net.pause(s.id, true)
		disk := s.disk
		disk.hang(true)
		return func() { disk.hang(false); c.net.pause(s.id, false) }
	case 8:
		c.net.setQuality(0.05*float64(c.rand.IntN(4)), 0.1*float64(c.rand.IntN(3)), time.Duration(5+c.rand.IntN(60))*time.Millisecond)
		return func() { c.net.setQuality(0, 0, 4*time.Millisecond) }
	case 9:
		disk := s.disk
		disk.slowDown(time.Duration(10+c.rand.IntN(200)) * time.Millisecond)
		return func() { disk.slowDown(0) }
	case 10:
		disk := s.disk
		if long {
			disk.hang(true)
			return func() { disk.hang(false) }
		}
		disk.failNext(1 + c.rand.IntN(3))
		return func() { disk.failNext(0) }
	case 11:
		s.clock.jump(time.Duration(c.rand.IntN(600)-300) * time.Second)
	case 12:
		if r == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(c.ctx, time.Second)
		defer cancel()
		_ = r.node.Transfer(ctx) // fails unless it leads
	case 13:
		c.net.setHanging(s.id, true)
		return func() { c.net.setHanging(s.id, false) }
	default:
		agent := c.agents[c.rand.IntN(len(c.agents))].id
		if long {
			agent = c.members[c.rand.IntN(len(c.members))].id
		}
		var links [][2]string
		for _, o := range c.servers {
			links = append(links, [2]string{agent, o.id}, [2]string{o.id, agent})
		}
		return c.cut(links)
	}
	return nil
}

// partition cuts the messages that a server sends, or those that it receives.
func (c *simCluster) partition(s *simServer, out, in bool) func() {
	var links [][2]string
	for _, o := range c.servers {
		if o == s {
			continue
		}
		if out {
			links = append(links, [2]string{s.id, o.id})
		}
		if in {
			links = append(links, [2]string{o.id, s.id})
		}
	}
	return c.cut(links)
}

func (c *simCluster) cut(links [][2]string) func() {
	for _, l := range links {
		c.net.setCut(l[0], l[1], true)
	}
	return func() {
		for _, l := range links {
			c.net.setCut(l[0], l[1], false)
		}
	}
}

// crash crashes servers until the returned function starts them again.
func (c *simCluster) crash(servers ...*simServer) func() {
	for _, s := range servers {
		s.crash()
	}
	return func() {
		for _, s := range servers {
			if s.run.Load() == nil && !s.absent.Load() {
				s.start()
			}
		}
	}
}
