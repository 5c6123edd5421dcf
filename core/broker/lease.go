package broker

// A delivery is leased: the worker acks or nacks it, renews it, or loses it. All
// leases have the same length, so a list in order of their start is in order of
// their end, and one timer at its head serves them all.

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

// Renew restarts the lease. A worker with a long computation calls it periodically.
// If the lease is paused, it only checks the token.
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

// PauseTimer stops the lease while the worker waits for something beyond its
// control: its plan is queued.
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

// ResumeTimer restarts a paused lease at its full length.
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

// Outstanding returns the token of a delivered evaluation; it returns false if
// there is none. The planner compares it with the token of a plan.
func (b *Broker) Outstanding(evalID string) (Token, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.lookup(evalID); e != nil && e.state == StateUnacked {
		return e.token, true
	}
	return 0, false
}

// outstanding returns the entry that the token leases, or the reason why there is
// none.
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

// expireLeases nacks every delivery with an expired lease.
func (b *Broker) expireLeases(now int64) {
	for e := b.leases.head; e != nil && e.at <= now; e = b.leases.head {
		e.own().expired = e.token
		b.handleNack(e, now)
	}
}
