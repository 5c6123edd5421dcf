package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/server"
)

// Reload reads the configuration again and applies the keys that can change at run time:
// log level, certificates, rates, workers and policies. If any other key differs, nothing
// is applied, because a partially applied configuration is one that was never written. On
// an error the active configuration does not change.
func (p *Process) Reload(ctx context.Context) (changed []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify.send(stateReloading(monotonic()))
	defer p.notify.send(stateReady)
	changed, err = p.reload(ctx)
	p.metrics.recordReload(err)
	if err != nil {
		p.log.ErrorContext(ctx, "failed to reload configuration; the previous one stays active", "err", err)
		return nil, err
	}
	p.log.InfoContext(ctx, "configuration reloaded", "changed", changed)
	return changed, nil
}

func (p *Process) reload(ctx context.Context) ([]string, error) {
	next, err := p.config.Reload()
	if err != nil {
		return nil, err
	}
	changed, refused := p.config.Changes(next)
	if len(refused) > 0 {
		return nil, fmt.Errorf("%s cannot change while the process runs: restart the process, or revert the change", strings.Join(refused, ", "))
	}
	if p.certs == nil != (next.TLS.Cert == "" && next.TLS.CA == "") || p.certs.hasServerCertificate() != (next.TLS.Cert != "") {
		return nil, errors.New("tls.cert: TLS cannot be enabled or disabled while the process runs: restart the process")
	}
	if p.certs != nil {
		if err := p.certs.load(next.TLS); err != nil {
			return nil, err
		}
	}
	keys, err := next.Gossip.KeyList()
	if err != nil {
		return nil, fmt.Errorf("gossip.keys: %w", err)
	}
	if p.server != nil {
		if err := p.server.pool.updateKeys(keys); err != nil {
			return nil, err
		}
	}
	return p.applyReload(ctx, next, changed)
}

// applyReload applies the changed keys. Only policies can fail at this point: failures are
// reported, and the other policies are loaded.
func (p *Process) applyReload(ctx context.Context, next *config.Loaded, changed []string) ([]string, error) {
	c := &next.Config
	p.level.Set(parseLevel(c.Log.Level))
	p.config = next
	if p.http.guard != nil {
		p.http.guard.setToken(c.Telemetry.Token)
	}
	if p.server == nil {
		return changed, nil
	}
	p.server.api.SetRate(requestRate(c), c.Limits.Burst)
	if err := p.server.server.Reload(server.Reloadable{Workers: &c.Server.Workers}); err != nil {
		return nil, err
	}
	loaded, err := p.server.loadPolicies(ctx, c)
	for _, name := range loaded {
		changed = append(changed, "policy "+name)
	}
	return changed, err
}
