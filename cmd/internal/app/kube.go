package app

import (
	"fmt"
	"os"

	"github.com/cede-scheduler/cede/core/kube/extender"
	"github.com/cede-scheduler/cede/core/model"
)

// makeExtender creates the extender for kube-scheduler. If the server runs in the cluster
// of the pods, it binds them itself.
func (s *serverComponents) makeExtender() (*extender.Extender, error) {
	cfg := extender.Config{
		Policies: s.server, Settings: func() *model.SchedulerConfig { return s.server.Snapshot().Config() },
		Logger: s.env.log, Registry: s.env.metrics.registry,
	}
	binder, err := extender.InCluster(os.Getenv, extender.ServiceAccount)
	if err != nil {
		return nil, fmt.Errorf("cannot read the service account of this pod: %w", err)
	}
	if binder != nil {
		cfg.Binder = binder
	}
	return extender.New(cfg)
}
