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

// newToken is never zero, which stands for "no token".
func (b *Broker) newToken() Token {
	for {
		if t := Token(b.cfg.Rand.Uint64()); t != 0 {
			return t
		}
	}
}
