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

// NewSecret returns a secret of 256 random bits, and its hash for storage.
func NewSecret() (secret string, hash [32]byte) {
	var raw [secretBytes]byte
	_, _ = rand.Read(raw[:]) // never fails
	secret = secretPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
	return secret, Hash(secret)
}

// NewAccessor returns a new name for a token. It is not secret.
func NewAccessor() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

// Hash returns the hash of a secret.
func Hash(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// Matches reports whether hash is the hash of secret, in constant time. It returns
// false for the zero hash.
func Matches(secret string, hash [32]byte) bool {
	have := Hash(secret)
	return subtle.ConstantTimeCompare(have[:], hash[:]) == 1
}

// IsWellFormed reports whether text has the form of a secret. A request with
// another text is refused before any lookup.
func IsWellFormed(text string) bool {
	rest, ok := strings.CutPrefix(text, secretPrefix)
	return ok && len(rest) == base64.RawURLEncoding.EncodedLen(secretBytes)
}
