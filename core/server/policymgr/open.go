package policymgr

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
)

// open opens a version unless that was tried before.
func (m *Manager) open(ctx context.Context, v *model.PolicyVersion) {
	if _, tried := m.versions.get(v.ID); tried || ctx.Err() != nil {
		return
	}
	opened, err := m.openModule(ctx, v)
	if ctx.Err() != nil {
		discard(opened)
		return // the server is stopping, which is no fault of the version
	}
	m.versions.put(v, opened, err, m.cfg.Clock.Now().UnixNano())
	if err != nil {
		m.cfg.Logger.WarnContext(ctx, "policy version rejected", "policy", v.Name, "version", v.ID, "digest", v.Digest, "err", err)
		return
	}
	m.cfg.Logger.InfoContext(ctx, "policy version ready", "policy", v.Name, "version", v.ID, "digest", v.Digest)
	m.active.opened(v.ID)
}

// discard releases a version that is not used.
func discard(v *policy.Version) {
	if v != nil {
		v.AddRef()
		v.ReleaseRef()
	}
}

// openModule opens a version from the module that this server stores.
func (m *Manager) openModule(ctx context.Context, v *model.PolicyVersion) (*policy.Version, error) {
	var module []byte
	if v.HasModule() {
		var err error
		if module, err = m.module(v); err != nil {
			return nil, err
		}
	}
	opened, err := m.cfg.Host.Open(ctx, v, module)
	if err != nil {
		return nil, err
	}
	if opened.ID != v.ID {
		discard(opened)
		return nil, fmt.Errorf("the module gives version %s on this server: the servers run different releases", model.ShortVersion(opened.ID))
	}
	return opened, nil
}

// module returns the module of a version after verifying its digest.
func (m *Manager) module(v *model.PolicyVersion) ([]byte, error) {
	if m.cfg.Modules == nil {
		return nil, errors.New("this server stores no modules")
	}
	module, err := m.cfg.Modules.Get(v.Digest)
	if err != nil {
		return nil, fmt.Errorf("module not found on this server: %w", err)
	}
	sum := sha256.Sum256(module)
	if digest := "sha256:" + hex.EncodeToString(sum[:]); digest != v.Digest {
		return nil, fmt.Errorf("module on this server is damaged: its digest is %s", digest)
	}
	return module, nil
}

// reportCheck writes this server's check of a version into the log, unless the state has
// the same result.
func (m *Manager) reportCheck(ctx context.Context, v *model.PolicyVersion) error {
	e, tried := m.versions.get(v.ID)
	if stored, ok := v.Checks[m.cfg.ServerID]; !tried || ok && equalChecks(stored, e.check) {
		return nil
	}
	_, err := m.apply(ctx, &replication.CheckPolicy{Version: v.ID, Server: m.cfg.ServerID, Check: e.check})
	if refusal, ok := errors.AsType[*replication.Refusal](err); ok {
		m.cfg.Logger.DebugContext(ctx, "policy check not recorded", "version", v.ID, "reason", refusal.Message)
		return nil // the version was unloaded meanwhile
	}
	return err
}

// isReported reports whether the state has the result of this server's last attempt to
// open a version.
func (m *Manager) isReported(v *model.PolicyVersion) bool {
	e, tried := m.versions.get(v.ID)
	return tried && equalChecks(v.Checks[m.cfg.ServerID], e.check)
}

// equalChecks reports whether two checks have the same result, at any time.
func equalChecks(a, b model.PolicyCheck) bool { return a.OK == b.OK && a.Error == b.Error }

// retry makes this server open a version again that it rejected.
func (m *Manager) retry(id string) {
	m.versions.remove(id)
	m.wakeUp()
}
