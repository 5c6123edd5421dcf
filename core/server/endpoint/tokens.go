package endpoint

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// maxTokenText is the maximum length of the namespace of a token, in bytes.
const maxTokenText = 256

// Tokens creates, deletes and authenticates access tokens.
type Tokens struct{ writer *logwriter.Writer }

// BootstrapToken creates the first token, which has all permissions. It fails if a token
// exists. The secret is returned only here.
func (e *Tokens) BootstrapToken(ctx context.Context) (secret string, t *model.Token, err error) {
	return e.create(ctx, &model.Token{Name: "bootstrap", Roles: []string{string(acl.Management)}}, true)
}

// NewToken describes a token to create.
type NewToken struct {
	Name      string
	Roles     []string
	Namespace string        // that it is bound to; "": none
	TTL       time.Duration // 0: it does not expire
}

// CreateToken creates a token. The secret is returned only here.
func (e *Tokens) CreateToken(ctx context.Context, n NewToken) (secret string, t *model.Token, err error) {
	parsed, err := acl.ParseRoles(n.Roles)
	switch {
	case err != nil:
		return "", nil, apierror.New(apierror.CodeInvalid, "%v", err)
	case n.TTL < 0:
		return "", nil, apierror.New(apierror.CodeInvalid, "token TTL must not be negative: %v", n.TTL)
	case strings.ContainsAny(n.Namespace, " \t\n/*\x00") || len(n.Namespace) > maxTokenText:
		return "", nil, apierror.New(apierror.CodeInvalid, "invalid namespace %.60q for a token", n.Namespace).
			WithHint("name one namespace, or none: the token is then valid for all")
	case n.Namespace != "" && slices.Contains(parsed, acl.Management):
		return "", nil, apierror.New(apierror.CodeInvalid, "a management token cannot be bound to a namespace: it could create a token for all of them").
			WithHint("omit the namespace, or give the token the role %s", acl.Operate)
	}
	t = &model.Token{Name: strings.TrimSpace(n.Name), Namespace: n.Namespace}
	for _, r := range parsed {
		t.Roles = append(t.Roles, string(r))
	}
	slices.Sort(t.Roles)
	if n.TTL > 0 {
		t.ExpiresAt = e.writer.Now() + int64(n.TTL)
	}
	return e.create(ctx, t, false)
}

func (e *Tokens) create(ctx context.Context, t *model.Token, first bool) (string, *model.Token, error) {
	var secret string
	secret, t.Hash = acl.NewSecret()
	t.Accessor, t.CreateTime = acl.NewAccessor(), e.writer.Now()
	result, err := e.writer.Commit(ctx, &replication.PutToken{Token: t, Bootstrap: first})
	if err != nil {
		return "", nil, err
	}
	created := *t
	created.CreateIndex = result.Index
	return secret, &created, nil
}

// DeleteToken revokes a token.
func (e *Tokens) DeleteToken(ctx context.Context, accessor string) (uint64, error) {
	if _, err := logwriter.Find(ctx, e.writer, func(snap *state.Snapshot) *model.Token { return snap.Token(accessor) }, "no token %q", accessor); err != nil {
		return 0, err
	}
	return e.writer.CommitIndex(ctx, &replication.DeleteToken{Accessor: accessor})
}

// Authenticate returns the token of a secret. It returns false if there is none, or if it
// has expired.
func (e *Tokens) Authenticate(secret string) (*model.Token, bool) {
	if !acl.IsWellFormed(secret) {
		return nil, false
	}
	t := e.writer.Snapshot().TokenByHash(acl.Hash(secret))
	if t == nil || t.Expired(e.writer.Now()) {
		return nil, false
	}
	return t, true
}
