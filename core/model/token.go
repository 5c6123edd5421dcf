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

// An AuditRecord describes one change by an operator: the action, its object, and the
// origin of the request. The leader composes it before the change is proposed, so that all
// servers store the same text.
type AuditRecord struct {
	Index uint64 // of the entry that took effect, and the record's identity
	Time  int64  // of the entry, in Unix nanoseconds

	Action string // such as policy.activate
	Object string // name of the object that was changed; "": there is only one
	Detail string // the change in words

	AuditOrigin
}

// An AuditOrigin is the source of a change.
type AuditOrigin struct {
	Actor     string // accessor of the token, TrialActor or ServerActor; "": the request had no token
	ActorName string // name of the token when it was used; "": none
	Address   string // IP address of the client's connection; "": no request was involved
	Via       string // ID of the server that received the request, if another one leads
	RequestID string // that the logs of the servers contain; "": no request was involved
}

// ServerActor is the actor of changes that servers make without a request, such as taking
// a faulty policy version out of service.
const ServerActor = "server"
