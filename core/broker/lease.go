package broker

// A delivery is leased: the worker acks or nacks it, renews it, or loses it. All
// leases have the same length, so a list in order of their start is in order of
// their end, and one timer at its head serves them all.

func (b *Broker) startLease(e *entry, now int64) {
	b.due.startLease(e, now+int64(b.cfg.NackTimeout))
	b.due.arm(&b.queue.entrySet, now)
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
	b.due.leases.remove(e)
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
	b.due.leases.remove(e)
	e.paused = true
	b.due.disarmIfIdle(&b.queue.entrySet)
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

// outstanding returns the entry that the token leases, or the reason why there is
// none.
func (b *Broker) outstanding(evalID string, token Token) (*entry, error) {
	if !b.enabled {
		return nil, ErrDisabled
	}
	e := b.queue.leased(evalID, token)
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
	for e := b.due.leases.head; e != nil && e.at <= now; e = b.due.leases.head {
		e.own().expired = e.token
		b.handleNack(e, now)
	}
}
