package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
)

// BootstrapToken makes the first token, which may do everything. It is refused
// once there is any. The secret is shown here and never again.
func (s *Server) BootstrapToken(ctx context.Context) (secret string, t *model.Token, err error) {
	return s.putToken(ctx, &model.Token{Name: "bootstrap", Roles: []string{string(acl.Management)}}, true)
}

// CreateToken makes a token with roles, valid for ttl; 0: until it is deleted.
func (s *Server) CreateToken(ctx context.Context, name string, roles []string, ttl time.Duration) (secret string, t *model.Token, err error) {
	parsed, err := acl.ParseRoles(roles)
	if err != nil {
		return "", nil, fail(CodeInvalid, "%v", err)
	}
	if ttl < 0 {
		return "", nil, fail(CodeInvalid, "a token cannot be valid for %v", ttl)
	}
	t = &model.Token{Name: strings.TrimSpace(name)}
	for _, r := range parsed {
		t.Roles = append(t.Roles, string(r))
	}
	slices.Sort(t.Roles)
	if ttl > 0 {
		t.ExpiresAt = s.now() + int64(ttl)
	}
	return s.putToken(ctx, t, false)
}

func (s *Server) putToken(ctx context.Context, t *model.Token, first bool) (string, *model.Token, error) {
	var secret string
	secret, t.Hash = acl.NewSecret()
	t.Accessor, t.CreateTime = acl.NewAccessor(), s.now()
	result, err := s.do(ctx, &replication.PutToken{Token: t, Bootstrap: first})
	if err != nil {
		return "", nil, err
	}
	made := *t
	made.CreateIndex = result.Index
	return secret, &made, nil
}

// DeleteToken makes a token void.
func (s *Server) DeleteToken(ctx context.Context, accessor string) (uint64, error) {
	if s.Snapshot().Token(accessor) == nil {
		return 0, fail(CodeNotFound, "there is no token %q", accessor)
	}
	return s.index(s.do(ctx, &replication.DeleteToken{Accessor: accessor}))
}

// Authenticate is the token that a secret belongs to; false when there is none,
// or it has expired.
func (s *Server) Authenticate(secret string) (*model.Token, bool) {
	if !acl.Plausible(secret) {
		return nil, false
	}
	t := s.Snapshot().TokenByHash(acl.Hash(secret))
	if t == nil || t.Expired(s.now()) {
		return nil, false
	}
	return t, true
}
