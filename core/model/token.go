package model

// A Token grants its roles to the holder of its secret. The secret itself is not
// part of the state.
type Token struct {
	Accessor    string   // identifies the token; not secret
	Name        string   // for users
	Hash        [32]byte // sha256 of the secret
	Roles       []string
	Namespace   string // namespace of the roles; "" for all
	CreateTime  int64  // Unix nanoseconds
	ExpiresAt   int64  // Unix nanoseconds; 0: never
	CreateIndex uint64
}

// Expired reports whether the token is no longer valid at now, in Unix nanoseconds.
func (t *Token) Expired(now int64) bool { return t.ExpiresAt != 0 && now >= t.ExpiresAt }

// A Signer is the public key with which a server signs certificates of decisions. It
// remains in the state when the server is removed, so that its certificates can be verified.
type Signer struct {
	ServerID    string
	Key         [32]byte // ed25519
	Time        int64    // when the server published it, in Unix nanoseconds
	CreateIndex uint64
}
