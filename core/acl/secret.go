package acl

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// secretPrefix starts every secret, so that scanners for leaked credentials
// can find one.
const secretPrefix = "cede_"

// secretBytes is how much chance is in a secret: too much to guess, so that an
// unsalted hash of it is safe at rest and can be looked up by.
const secretBytes = 32

// NewSecret makes a secret of 256 random bits, and the hash to keep of it.
func NewSecret() (secret string, hash [32]byte) {
	var raw [secretBytes]byte
	_, _ = rand.Read(raw[:]) // never fails
	secret = secretPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
	return secret, Hash(secret)
}

// NewAccessor makes a name for a token. It is no secret.
func NewAccessor() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

// Hash is what is kept of a secret.
func Hash(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// Matches is whether secret is what hash was made of. It takes as long
// whichever it is. The zero hash matches nothing.
func Matches(secret string, hash [32]byte) bool {
	have := Hash(secret)
	return subtle.ConstantTimeCompare(have[:], hash[:]) == 1
}

// IsWellFormed is whether text has the form of a secret. What has not is refused
// before anybody looks for it.
func IsWellFormed(text string) bool {
	rest, ok := strings.CutPrefix(text, secretPrefix)
	return ok && len(rest) == base64.RawURLEncoding.EncodedLen(secretBytes)
}
