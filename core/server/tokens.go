package server

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

// maxTokenText bounds what a token is called and bound to, in bytes.
const maxTokenText = 256

// BootstrapToken makes the first token, which may do everything. It is refused
// once there is any. The secret is shown here and never again.
func (s *Server) BootstrapToken(ctx context.Context) (secret string, t *model.Token, err error) {
	return s.putToken(ctx, &model.Token{Name: "bootstrap", Roles: []string{string(acl.Management)}}, true)
}

// NewToken is what a token is to be.
type NewToken struct {
	Name      string
	Roles     []string
	Namespace string        // that it is bound to; "": to none
	TTL       time.Duration // 0: valid until it is deleted
}

// CreateToken makes a token.
func (s *Server) CreateToken(ctx context.Context, n NewToken) (secret string, t *model.Token, err error) {
	parsed, err := acl.ParseRoles(n.Roles)
	switch {
	case err != nil:
		return "", nil, apierror.New(apierror.CodeInvalid, "%v", err)
	case n.TTL < 0:
		return "", nil, apierror.New(apierror.CodeInvalid, "a token cannot be valid for %v", n.TTL)
	case strings.ContainsAny(n.Namespace, " \t\n/*\x00") || len(n.Namespace) > maxTokenText:
		return "", nil, apierror.New(apierror.CodeInvalid, "%.60q is no namespace that a token can be bound to", n.Namespace).
			WithHint("name one namespace, or none: the token then is good for all")
	case n.Namespace != "" && slices.Contains(parsed, acl.Management):
		return "", nil, apierror.New(apierror.CodeInvalid, "a token for management is bound to no namespace: whoever makes tokens can make one for everything").
			WithHint("leave the namespace out, or give the token the role %s", acl.Operate)
	}
	t = &model.Token{Name: strings.TrimSpace(n.Name), Namespace: n.Namespace}
	for _, r := range parsed {
		t.Roles = append(t.Roles, string(r))
	}
	slices.Sort(t.Roles)
	if n.TTL > 0 {
		t.ExpiresAt = s.writer.Now() + int64(n.TTL)
	}
	return s.putToken(ctx, t, false)
}

func (s *Server) putToken(ctx context.Context, t *model.Token, first bool) (string, *model.Token, error) {
	var secret string
	secret, t.Hash = acl.NewSecret()
	t.Accessor, t.CreateTime = acl.NewAccessor(), s.writer.Now()
	result, err := s.writer.Commit(ctx, &replication.PutToken{Token: t, Bootstrap: first})
	if err != nil {
		return "", nil, err
	}
	made := *t
	made.CreateIndex = result.Index
	return secret, &made, nil
}

// DeleteToken makes a token void.
func (s *Server) DeleteToken(ctx context.Context, accessor string) (uint64, error) {
	if _, err := logwriter.Find(ctx, s.writer, func(snap *state.Snapshot) *model.Token { return snap.Token(accessor) }, "there is no token %q", accessor); err != nil {
		return 0, err
	}
	return s.writer.CommitIndex(ctx, &replication.DeleteToken{Accessor: accessor})
}

// Authenticate is the token that a secret belongs to; false when there is none,
// or it has expired.
func (s *Server) Authenticate(secret string) (*model.Token, bool) {
	if !acl.IsWellFormed(secret) {
		return nil, false
	}
	t := s.Snapshot().TokenByHash(acl.Hash(secret))
	if t == nil || t.Expired(s.writer.Now()) {
		return nil, false
	}
	return t, true
}
