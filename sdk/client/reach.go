package client

import (
	"context"
	"net/http"
	"time"
)

const (
	// reachEvery is how long one server may take to answer that it is there before the
	// next one is asked beside it. Over a slow line that picks another server, which is as
	// good.
	reachEvery = 500 * time.Millisecond
	// reachWithin bounds the search. Then the request goes where it would have gone.
	reachWithin = 3 * time.Second
)

// reach finds one of several servers that answers, before the first request. A process
// that was stopped, or a machine that hangs, takes connections and never answers, and a
// request cannot find that out: a write without a key may be sent to one server only, and
// a slow answer is no silence. So they are asked whether they are there, which can be
// asked of several at a time; the first in the list goes first.
func (c *Client) reach(ctx context.Context) {
	list := *c.addresses.Load()
	if len(list) < 2 || c.silence <= 0 || c.reached.Swap(true) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	first := c.preferred.Load()
	next, out := uint32(0), 0
	answers := make(chan answerOf, len(list))
	for {
		if next < uint32(len(list)) {
			at := (first + next) % uint32(len(list))
			go func() { answers <- answerOf{at, c.there(ctx, list[at])} }()
			next, out = next+1, out+1
		}
		timer := time.NewTimer(min(reachEvery, c.silence))
		select {
		case a := <-answers:
			timer.Stop()
			if out--; a.there {
				c.preferred.CompareAndSwap(first, a.at)
				return
			}
			if out == 0 && next == uint32(len(list)) {
				return // nobody is: the request says so
			}
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// answerOf is whether the server at a position of the list is there.
type answerOf struct {
	at    uint32
	there bool
}

// there is whether a server answers anything at all. It is told no secret.
func (c *Client) there(ctx context.Context, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/livez", nil)
	if err != nil {
		return false
	}
	req.Header.Set("User-Agent", c.userAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return false
	}
	drain(resp.Body)
	_ = resp.Body.Close()
	return true
}
