package broker

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// A Token identifies one delivery of one evaluation. It is random, so that a worker
// of an earlier leader, or one whose lease expired, cannot refer to the delivery of
// another worker. It is not secret: it guards against mistakes, not attacks.
type Token uint64

// String returns the token as 16 hexadecimal digits.
func (t Token) String() string { return fmt.Sprintf("%016x", uint64(t)) }

// ParseToken parses the result of Token.String. It returns an error if s is not
// hexadecimal or too long.
func ParseToken(s string) (Token, error) {
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("evaluation token %q: want 16 hexadecimal digits", s)
	}
	return Token(n), nil
}

// The hintBits of a token are the number of its entry, or 0 if that is larger, so
// that an ack need not hash the evaluation ID. The rest is random: the chance to
// match another delivery of the same entry is 2^-40.
const hintBits = 24

const hintMask = 1<<hintBits - 1

// newToken returns a new token. It is never zero, which stands for "no token".
func newToken(r *rand.Rand, e *entry) Token {
	hint := Token(0)
	if e.id <= hintMask {
		hint = Token(e.id)
	}
	for {
		if t := Token(r.Uint64())&^hintMask | hint; t != 0 {
			return t
		}
	}
}

// leased returns the entry of an evaluation, found by the hint of the token if
// possible.
func (s *entrySet) leased(evalID string, token Token) *entry {
	if hint := uint32(token & hintMask); hint != 0 && hint <= s.entries.used {
		if e := s.entries.at(hint); e.state == StateUnacked && e.token == token && e.eval.ID == evalID {
			return e
		}
	}
	return s.lookup(evalID)
}
