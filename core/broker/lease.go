package broker

// A delivery is leased: the worker settles it (Ack, Nack), renews it, or loses
// it. All leases are equally long, so a list in order of their start is in
// order of their end, and one timer at its head serves them all.

func (b *Broker) startLease(e *entry, now int64) {
	e.paused = false
	e.at = now + int64(b.cfg.NackTimeout)
	b.leases.push(e)
	b.arm(now)
}

func (b *Broker) endLease(e *entry) {
	if !e.paused {
		b.leases.remove(e)
	}
	e.paused = false
}

// Renew starts the lease anew. A worker that computes for long calls it now and
// then; on a paused lease it only checks the token.
func (b *Broker) Renew(evalID string, token Token) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.outstanding(evalID, token)
	if err != nil || e.paused {
		return err
	}
	b.leases.remove(e)
	b.startLease(e, b.now())
	return nil
}

// PauseTimer stops the lease from running out, while the work waits for
// something that is not the worker's fault: its plan is queued.
func (b *Broker) PauseTimer(evalID string, token Token) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.outstanding(evalID, token)
	if err != nil || e.paused {
		return err
	}
	b.leases.remove(e)
	e.paused = true
	b.disarmIfIdle()
	return nil
}

// ResumeTimer starts a paused lease anew, at its full length.
func (b *Broker) ResumeTimer(evalID string, token Token) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.outstanding(evalID, token)
	if err != nil || !e.paused {
		return err
	}
	b.startLease(e, b.now())
	return nil
}

// Outstanding is the token of an evaluation that is being worked on. The
// planner compares it with the plan's.
func (b *Broker) Outstanding(evalID string) (Token, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.lookup(evalID); e != nil && e.state == StateUnacked {
		return e.token, true
	}
	return 0, false
}

// outstanding is the entry that token leases.
func (b *Broker) outstanding(evalID string, token Token) (*entry, error) {
	if !b.enabled {
		return nil, ErrDisabled
	}
	e := b.leased(evalID, token)
	switch {
	case e == nil:
		return nil, ErrNotOutstanding
	case token != 0 && token == e.rare().expired:
		return nil, ErrNackTimeout
	case e.state != StateUnacked:
		return nil, ErrNotOutstanding
	case token != e.token:
		return nil, ErrTokenMismatch
	}
	return e, nil
}

// expireLeases nacks every delivery whose time is up.
func (b *Broker) expireLeases(now int64) {
	for e := b.leases.head; e != nil && e.at <= now; e = b.leases.head {
		e.own().expired = e.token
		b.giveBack(e, now)
	}
}
