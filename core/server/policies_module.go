package server

import (
	"context"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
)

// PolicyModule is the module of a version, as this server keeps it, with its digest
// checked. The version may be named by a unique prefix of its id; "" is the active
// one, or else the only one that is loaded.
func (s *Server) PolicyModule(_ context.Context, name, version string) (*model.PolicyVersion, []byte, error) {
	v, err := s.policies.meant(name, version)
	if err != nil {
		return nil, nil, err
	}
	switch v.Kind {
	case model.PolicyBuiltin:
		return nil, nil, apierror.New(apierror.CodeConflict, "%s@%s is built in: there is no module of it", name, shortVersion(v.ID)).
			WithHint("every cede of the same release has it")
	case model.PolicyProcess:
		return nil, nil, apierror.New(apierror.CodeConflict, "%s@%s is an executable: each server has its own copy, and none travels", name, shortVersion(v.ID)).
			WithHint("take the one whose checksum is %s", v.Digest)
	}
	module, err := s.policies.module(v)
	if err != nil {
		return nil, nil, apierror.New(apierror.CodeUnavailable, "%s@%s: %v", name, shortVersion(v.ID), err).WithHint("ask another server")
	}
	return v, module, nil
}

// meant is the version that somebody means who may have named none.
func (p *policies) meant(name, version string) (*model.PolicyVersion, error) {
	if version != "" {
		return p.version(name, version)
	}
	snap := p.store.Snapshot()
	if s := snap.PolicyState(name); s != nil && s.Active != "" {
		return p.version(name, s.Active)
	}
	list := versionsOf(snap, name)
	switch {
	case len(list) == 1:
		return list[0], nil
	case len(list) > 1:
		return nil, apierror.New(apierror.CodeInvalid, "no version of policy %s is active, and %d are loaded: %s", name, len(list), shortVersions(list)).
			WithHint("name one, as in %s@%s", name, shortVersion(list[0].ID))
	case p.builtins[name] != nil:
		return nil, apierror.New(apierror.CodeConflict, "%s is built in: there is no module of it", name).WithHint("every cede of the same release has it")
	}
	return p.version(name, "") // says that there is none
}
