package model

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
