package model

// Token is what somebody may do who knows its secret. The secret itself is
// nowhere in the state.
type Token struct {
	Accessor    string   // names the token; no secret
	Name        string   // for people
	Hash        [32]byte // sha256 of the secret
	Roles       []string
	Namespace   string // the roles hold in it alone; "": in all
	CreateTime  int64  // Unix nanoseconds
	ExpiresAt   int64  // Unix nanoseconds; 0: never
	CreateIndex uint64
}

// Expired is whether the token holds no more at now, in Unix nanoseconds.
func (t *Token) Expired(now int64) bool { return t.ExpiresAt != 0 && now >= t.ExpiresAt }
