package broker

import (
	"fmt"
	"strconv"
)

// Token names one delivery of one evaluation. It is random so that a worker of
// an earlier leader, or one whose lease ran out, cannot hit upon the delivery
// of another; it is no secret and guards against mistakes, not malice.
type Token uint64

// String is the token as 16 hexadecimal digits.
func (t Token) String() string { return fmt.Sprintf("%016x", uint64(t)) }

// ParseToken is the inverse of String.
func ParseToken(s string) (Token, error) {
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("evaluation token %q: want 16 hexadecimal digits", s)
	}
	return Token(n), nil
}

// hintBits of a token are the number of its entry, or 0 where that is larger, so
// that settling a delivery need not hash the evaluation's id. The rest is random:
// to be mistaken for another delivery of the same entry is a chance of 2^-40.
const hintBits = 24

const hintMask = 1<<hintBits - 1

// newToken is never zero, which stands for "no token".
func (b *Broker) newToken(e *entry) Token {
	hint := Token(0)
	if e.id <= hintMask {
		hint = Token(e.id)
	}
	for {
		if t := Token(b.cfg.Rand.Uint64())&^hintMask | hint; t != 0 {
			return t
		}
	}
}

// leased is the entry of an evaluation, found by way of the token if possible.
func (b *Broker) leased(evalID string, token Token) *entry {
	if hint := uint32(token & hintMask); hint != 0 && hint <= b.entries.used {
		if e := b.entries.at(hint); e.state == StateUnacked && e.token == token && e.eval.ID == evalID {
			return e
		}
	}
	return b.lookup(evalID)
}
